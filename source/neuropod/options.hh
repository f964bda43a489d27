#pragma once

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
  /// Run the model in a process of its own. Not available yet: true is refused when loading.
  bool use_ope = false;

  /// Settings of out-of-process execution; without effect while `use_ope` is false.
  struct OPEOptions {
    bool free_memory_every_cycle = true;
    std::string control_queue_name;
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
