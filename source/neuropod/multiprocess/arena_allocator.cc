#include "neuropod/multiprocess/arena_allocator.hh"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "neuropod/base/error.hh"
#include "neuropod/core/generic_tensor.hh"
#include "neuropod/internal/neuropod_tensor_raw_data_access.hh"

namespace neuropod::multiprocess {
namespace {

void require_cpu(NeuropodDevice device) {
  if (device == Device::CPU) return;
  throw_error(
      ErrorCode::kInvalidArgument,
      fmt::format("device {} isn't this process's: the model runs in a process of its own, which "
                  "brings inputs to its GPU; allocate them on the CPU",
                  device));
}

}  // namespace

InputMemory::InputMemory(uint64_t bytes)
    : arena(Arena::create("neuropod-inputs", bytes, kLeastArenaBytes)),
      blocks(std::make_shared<ArenaBlocks>(arena)),
      pool(MemoryPool::create(blocks)) {}

std::unique_ptr<NeuropodTensor> allocate_in(InputMemory& memory, const std::vector<int64_t>& dims,
                                            TensorType type) {
  const size_t bytes = internal::get_checked_num_bytes(dims, type);
  MemoryPool::Block block;
  try {
    block = memory.pool->allocate(bytes, Device::CPU);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory) throw;
    throw_error(
        ErrorCode::kOutOfMemory,
        fmt::format("no room for a tensor of {} bytes: the model's memory for inputs, which its "
                    "workers share, has {} bytes, and {} of them are in use; free tensors, or "
                    "raise ope_options.memory_limit",
                    bytes, memory.arena->size(), memory.pool->stats().live_bytes));
  }
  try {
    return internal::wrap_numeric<ArenaTensor>(dims, type, block.data, block.release, Device::CPU);
  } catch (...) {
    block.release(block.data);
    throw;
  }
}

std::unique_ptr<NeuropodTensor> ArenaAllocator::allocate_tensor(const std::vector<int64_t>& dims,
                                                                TensorType type,
                                                                NeuropodDevice device) {
  if (type == STRING_TENSOR) {
    internal::get_checked_num_bytes(dims, type);
    return std::make_unique<GenericNeuropodTensor<std::string>>(dims);
  }
  require_cpu(device);
  return allocate_in(memory_(), dims, type);
}

std::unique_ptr<NeuropodTensor> ArenaAllocator::tensor_from_memory(const std::vector<int64_t>& dims,
                                                                   TensorType type, void* data,
                                                                   const Deleter& deleter) {
  internal::LentMemory lent(data, deleter);
  internal::check_lent_memory(type, data, internal::get_checked_num_bytes(dims, type));
  // Wherever it lies: a call takes what lies in the arena as it is, and copies anything else.
  auto tensor =
      internal::wrap_numeric<GenericNeuropodTensor>(dims, type, data, lent.deleter(), Device::CPU);
  lent.hand_over();
  return tensor;
}

std::unique_ptr<NeuropodTensor> ArenaAllocator::copy_to_device(const NeuropodTensor& tensor,
                                                               NeuropodDevice device) {
  auto copy = allocate_tensor(tensor.get_dims(), tensor.get_tensor_type(), device);
  if (tensor.get_tensor_type() == STRING_TENSOR) {
    internal::copy_strings(*copy, tensor);
  } else {
    using Raw = internal::RawDataAccess;
    const size_t bytes = Raw::get_num_bytes(tensor);
    require_cpu(tensor.get_device());
    if (bytes > 0) {
      std::memcpy(Raw::get_untyped_data_ptr(*copy), Raw::get_untyped_data_ptr(tensor), bytes);
    }
  }
  return copy;
}

AllocatorStats ArenaAllocator::stats() const { return memory_().pool->stats(); }

void ArenaAllocator::trim() {
  memory_().pool->trim();
  trimmed_();
}

}  // namespace neuropod::multiprocess
