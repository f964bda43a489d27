#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "neuropod/backends/tensor_allocator.hh"
#include "neuropod/multiprocess/fork_detector.hh"
#include "neuropod/multiprocess/shm/arena_blocks.hh"

namespace neuropod::multiprocess {

/// A tensor in the input arena of a model: its workers read it in place. In a forked child it stays
/// readable, and what frees it there leaves the parent's memory alone.
template <typename T>
class ArenaTensor : public TypedNeuropodTensor<T> {
 public:
  ArenaTensor(std::vector<int64_t> dims, T* data, Deleter deleter, NeuropodDevice device)
      : TypedNeuropodTensor<T>(std::move(dims), data, device),
        memory_(data),
        deleter_(std::move(deleter)),
        generation_(process_generation()) {}
  ~ArenaTensor() override {
    if (process_generation() == generation_) deleter_(memory_);
  }
  bool held_elsewhere() const override { return false; }

 private:
  T* const memory_;
  const Deleter deleter_;
  const uint64_t generation_;
};

/// The memory of one model in one process: an arena, and a pool over it.
struct InputMemory {
  explicit InputMemory(uint64_t bytes);

  const std::shared_ptr<Arena> arena;
  const std::shared_ptr<ArenaBlocks> blocks;
  const std::shared_ptr<MemoryPool> pool;
};

/// Makes tensors in the memory that `memory` returns, which a forked child has one of its own of.
/// Strings are ordinary ones: they are laid out anew for each call anyway.
class ArenaAllocator : public NeuropodTensorAllocator {
 public:
  using Source = std::function<InputMemory&()>;
  /// `trimmed`: called by trim(), for what the workers keep.
  ArenaAllocator(Source memory, std::function<void()> trimmed)
      : memory_(std::move(memory)), trimmed_(std::move(trimmed)) {}

  using NeuropodTensorAllocator::allocate_tensor;
  using NeuropodTensorAllocator::tensor_from_memory;
  std::unique_ptr<NeuropodTensor> allocate_tensor(const std::vector<int64_t>& dims, TensorType type,
                                                  NeuropodDevice device = Device::CPU) override;
  std::unique_ptr<NeuropodTensor> tensor_from_memory(const std::vector<int64_t>& dims,
                                                     TensorType type, void* data,
                                                     const Deleter& deleter) override;
  std::unique_ptr<NeuropodTensor> copy_to_device(const NeuropodTensor& tensor,
                                                 NeuropodDevice device) override;
  AllocatorStats stats() const override;
  void trim() override;

 private:
  const Source memory_;
  const std::function<void()> trimmed_;
};

/// A numeric tensor in `memory`.
std::unique_ptr<NeuropodTensor> allocate_in(InputMemory& memory, const std::vector<int64_t>& dims,
                                            TensorType type);

}  // namespace neuropod::multiprocess
