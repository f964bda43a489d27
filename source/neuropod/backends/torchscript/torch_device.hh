#pragma once

#include <c10/core/Device.h>
#include <c10/core/DeviceGuard.h>

#include <memory>

#include "neuropod/core/memory_pool.hh"
#include "neuropod/options.hh"

namespace neuropod {

/// True for the CPU, and for a GPU that this torch was built for and finds.
bool torch_has_device(NeuropodDevice device);

/// torch's name for a device that torch_has_device().
c10::Device to_torch_device(NeuropodDevice device);
NeuropodDevice from_torch_device(const c10::Device& device);

/// Makes a GPU torch's current one on this thread while it lives, so that what a model makes on
/// "cuda", without an index, is where the model is. Nothing for the CPU.
class CurrentDevice {
 public:
  explicit CurrentDevice(const c10::Device& device) {
    if (!device.is_cpu()) guard_.reset_device(device);
  }

 private:
  c10::OptionalDeviceGuard guard_;
};

/// Waits until a GPU has done what this thread asked of it, so that memory it read or wrote may be
/// used again, and throws torch's error if that failed. Nothing for the CPU.
void wait_for_device(const c10::Device& device);

/// The pool a model's tensors come from: ordinary memory, or, for a model on a GPU, memory of that
/// device and pinned host memory.
std::shared_ptr<MemoryPool> make_torch_pool(const RuntimeOptions& options);

}  // namespace neuropod
