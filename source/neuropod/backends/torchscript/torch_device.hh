#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "neuropod/core/memory_pool.hh"
#include "neuropod/options.hh"

namespace neuropod {

/// True for the CPU, and for a GPU that this torch was built for and finds.
bool torch_has_device(NeuropodDevice device);

/// torch's name for a device that torch_has_device().
c10::Device to_torch_device(NeuropodDevice device);
NeuropodDevice from_torch_device(const c10::Device& device);

/// The pool a model's tensors come from: ordinary memory, or, for a model on a GPU, memory of that
/// device and pinned host memory.
std::shared_ptr<MemoryPool> make_torch_pool(const RuntimeOptions& options);

}  // namespace neuropod
