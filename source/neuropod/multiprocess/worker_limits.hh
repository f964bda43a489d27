#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "neuropod/base/owned_descriptor.hh"
#include "neuropod/options.hh"

namespace neuropod::multiprocess {

/// What a worker may use, checked and ready to be applied to a process.
struct WorkerLimits {
  std::vector<int> cpus;
  int nice = 0;
  bool core_dumps = false;
  uint64_t heap_bytes = 0;   ///< RLIMIT_DATA; 0: none
  uint64_t arena_bytes = 0;  ///< of the input arena and of the output arena, each; their cap
  const class WorkerCgroup* cgroup = nullptr;  ///< for this worker; null: none
};

/// Checks the options against this machine: numbers in range, CPUs that exist and are allowed,
/// options that contradict each other. Error(invalid_argument) names the option, its value and what
/// would do.
void check_ope_options(const RuntimeOptions& options, bool stateful);

/// What CUDA_VISIBLE_DEVICES must be in a worker, by `gpu` and `visible_device`, given what it is
/// here (null: not set). "" hides every GPU. Error(invalid_argument): a GPU that this process
/// doesn't see.
std::string worker_visible_gpus(const RuntimeOptions& options, const char* visible_here);

/// A cgroup of its own for one worker, with its memory limit and CPU quota; removed with the
/// object, which kills what still runs in it. cgroup v2 where a controller is delegated to us, or
/// v1's memory and cpu hierarchies where they are writable.
class WorkerCgroup {
 public:
  ~WorkerCgroup();
  WorkerCgroup(const WorkerCgroup&) = delete;

  /// Null if no cgroup can be made here; `why` says why not. `root`: where cgroups are mounted, for
  /// tests.
  static std::unique_ptr<WorkerCgroup> create(uint64_t memory_bytes, double cpu_quota,
                                              std::string* why,
                                              const std::string& root = "/sys/fs/cgroup");

  /// Moves a process into it, between fork and its first instruction (async-signal-safe), or later.
  bool add(pid_t pid) const noexcept;
  /// Whether the kernel killed something in it for memory since it was made.
  bool killed_for_memory() const noexcept;

 private:
  struct Rep;
  explicit WorkerCgroup(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

/// The limits for one worker by `options`. memory_limit: the cgroup (in `cgroup`) where there can
/// be one, otherwise half of it for the heap (RLIMIT_DATA) and half for tensors.
/// Error(invalid_argument): cpu_quota without a cgroup.
WorkerLimits worker_limits(const RuntimeOptions& options, std::unique_ptr<WorkerCgroup>* cgroup);

/// Applies everything but the cgroup to this process, which is about to become a worker.
/// Async-signal-safe. False: errno says why, `what` which.
bool apply_limits(const WorkerLimits& limits, const char** what) noexcept;

}  // namespace neuropod::multiprocess
