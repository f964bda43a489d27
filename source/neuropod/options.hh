#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace neuropod {

/// A device index: `Device::CPU`, or the index of a GPU, from 0. Indices above 7 are allowed.
using NeuropodDevice = int;

namespace Device {
constexpr NeuropodDevice CPU = -1;
constexpr NeuropodDevice GPU0 = 0;
constexpr NeuropodDevice GPU1 = 1;
constexpr NeuropodDevice GPU2 = 2;
constexpr NeuropodDevice GPU3 = 3;
constexpr NeuropodDevice GPU4 = 4;
constexpr NeuropodDevice GPU5 = 5;
constexpr NeuropodDevice GPU6 = 6;
constexpr NeuropodDevice GPU7 = 7;
}  // namespace Device

/// How a model is loaded and run. A plain aggregate: the fields that existing applications set come
/// first, in the order they know.
struct RuntimeOptions {
  /// Run the model in a process of its own, a worker: it can't harm this program, and may use
  /// another version of its framework. docs/out_of_process.md.
  bool use_ope = false;

  /// Whether threads that wait for the other side look for its answer before they sleep.
  enum class Spin {
    kAuto,    ///< where it pays: never on the core of the other side, never for long
    kNever,   ///< no; least CPU time
    kAlways,  ///< until the answer is there; for machines with cores to spare
  };

  /// Settings of out-of-process execution; without effect while `use_ope` is false. What
  /// contradicts itself or can't be had is Error(invalid_argument) when the model is loaded.
  struct OPEOptions {
    /// Accepted for existing applications, without effect: memory is kept for reuse and given back
    /// when it is disused.
    bool free_memory_every_cycle = true;

    /// The path of the socket of a worker that runs already (`neuropod-worker --listen PATH`): the
    /// model is loaded there. Empty: a worker of its own. With it, what shapes a worker's process
    /// (cpus to env, startup of it, core_dumps, num_workers) can't be given.
    std::string control_queue_name;

    /// The CPUs that the worker may run on; empty: those of this process.
    std::vector<int> cpus;
    /// The CPU time that all threads of one worker may use, in CPUs (1.5: one and a half); 0: no
    /// limit. Needs a writable cgroup.
    double cpu_quota = 0;
    /// Threads the framework uses for one operation; 0: RuntimeOptions::threads.
    int threads = 0;
    /// Added to the worker's niceness, 0 to 19.
    int nice = 0;
    /// Bytes of memory that a worker may use, tensors included; 0: no limit.
    uint64_t memory_limit = 0;
    /// What the worker finds in CUDA_VISIBLE_DEVICES: indices or UUIDs, separated by commas; empty:
    /// RuntimeOptions::visible_device. The worker's GPU 0 is the first of them.
    std::string gpu;
    /// Environment variables that the worker gets besides those of this process, or instead.
    std::map<std::string, std::string> env;

    /// How long a worker may take to start and load the model.
    std::chrono::milliseconds startup_timeout{120'000};
    /// A call's deadline, counted from infer(); none: a call may take as long as it likes.
    std::optional<std::chrono::milliseconds> timeout;
    /// How long a worker may go on with a call that is late or was cancelled before it is killed.
    std::chrono::milliseconds kill_grace{1'000};
    /// How often a call is run again whose worker died. Not for stateful models.
    int retries = 0;

    /// Workers that share the calls; each holds the whole model.
    int num_workers = 1;
    /// Calls that one worker runs at once.
    int concurrency = 1;
    Spin spin = Spin::kAuto;
    /// Whether a worker that crashes may leave a core file.
    bool core_dumps = false;
  } ope_options;

  /// Where inputs marked "GPU" in the package go and where the model runs. Without such a device it
  /// means the CPU.
  NeuropodDevice visible_device = Device::GPU0;

  /// False: only the configuration is read; `load_model()` loads the model later.
  bool load_model_at_construction = true;

  /// Skip the checks of tensors against the specs. Unknown names are refused all the same.
  bool disable_shape_and_type_checking = false;

  /// Compare every file of the package with the hashes in its manifest before the model is loaded.
  /// A package without a manifest has nothing to compare.
  bool verify_hashes = true;

  /// Threads the framework uses for one operation of this model; 0 leaves the framework's default.
  int threads = 0;

  /// Apply today's rules (a missing input is an error, symbols bind across inputs and outputs) to
  /// packages written before they existed. Packages with a `format_version` always follow them.
  bool strict = false;

  /// Count this model's calls, times and bytes: NeuropodBackend::stats() and metrics_text().
  bool collect_metrics = true;

  /// False: refuse packages that bring compiled code (custom operators), with invalid_package.
  bool allow_native_code = true;

  /// Paths of public keys (Ed25519, PEM): only a package signed by one of them is loaded, and every
  /// file of it is verified. Empty: signatures aren't looked at.
  std::vector<std::string> require_signature;
};

}  // namespace neuropod
