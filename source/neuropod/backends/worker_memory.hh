#pragma once

#include <cstddef>

#include "neuropod/base/visibility.hh"

namespace neuropod {

/// Memory of a worker process that the host of its model can read in place, for what a framework
/// allocates while it runs a call: a result that lies in it needn't be copied.
///
/// A framework's allocator asks allocate() first and takes ordinary memory when the answer is null.
/// **Thread safety**: thread-safe.
class NEUROPOD_EXPORT WorkerMemory {
 public:
  virtual ~WorkerMemory();

  /// At least `bytes` > 0 bytes, 64-byte aligned, uninitialised. Null when the calling thread isn't
  /// running a call (loading a model, a thread of the framework's own), when nothing is left, and
  /// in a child that the model forked, whose writes the host would see.
  virtual void* allocate(size_t bytes) noexcept = 0;

  /// Takes back what allocate() gave; on any thread, at any time, also after the call.
  virtual void free(void* data) noexcept = 0;

  /// Whether `data` lies in this memory, given back or not.
  virtual bool owns(const void* data) const noexcept = 0;
};

/// Makes the framework of a plug-in allocate from `memory`, which lives as long as the process.
/// Called at most once, by a worker, before the first model is loaded. False if the framework
/// can't.
using AdoptProcessMemory = bool (*)(WorkerMemory& memory);

/// Called by NEUROPOD_REGISTER_PROCESS_MEMORY while a plug-in is opened. Returns true.
NEUROPOD_EXPORT bool register_process_memory(const char* platform, AdoptProcessMemory adopt);

/// Lets the plug-in that serves `platform` in this process adopt `memory`, the first time it is
/// called. False if there is none or it can't. For workers, after load_backend() and before
/// NeuropodBackend::load_model().
NEUROPOD_EXPORT bool adopt_process_memory(const char* platform, WorkerMemory& memory);

}  // namespace neuropod

/// Declares how a plug-in's framework adopts a worker's memory; once per plug-in, beside
/// REGISTER_NEUROPOD_BACKEND. A plug-in without it works all the same: its results are copied once.
#define NEUROPOD_REGISTER_PROCESS_MEMORY(platform, function)              \
  [[maybe_unused]] static const bool neuropod_process_memory_registered = \
      ::neuropod::register_process_memory(platform, function);
