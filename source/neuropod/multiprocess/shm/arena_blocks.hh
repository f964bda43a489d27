#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "neuropod/core/memory_pool.hh"
#include "neuropod/multiprocess/shm/arena.hh"

namespace neuropod::multiprocess {

/// Blocks of an arena, for a MemoryPool above it, which keeps and reuses them. Only one of the
/// processes that share an arena allocates in it. What is free is known outside the arena, so a
/// peer that writes where it shouldn't can't break this.
///
/// Best fit over a tree of free ranges, neighbours joined, 64-byte aligned. A freed range of 64 KiB
/// or more is given back to the system at once (the pool above decides what is worth keeping).
///
/// **Ownership**: keeps the arena. **Thread safety**: thread-safe.
class ArenaBlocks : public DeviceMemory {
 public:
  /// `cap`: bytes that may be handed out at once, at most the arena's size; `reserved`: bytes at
  /// its beginning that are left alone.
  explicit ArenaBlocks(std::shared_ptr<Arena> arena, uint64_t reserved = 0);
  ~ArenaBlocks() override;

  bool has_device(NeuropodDevice device) const noexcept override;  // the CPU
  void* allocate(size_t bytes, NeuropodDevice device) noexcept override;
  void free(void* data, size_t bytes, NeuropodDevice device) noexcept override;
  void copy(void* to, NeuropodDevice to_device, const void* from, NeuropodDevice from_device,
            size_t bytes) override;

  const std::shared_ptr<Arena>& arena() const noexcept;
  /// Bytes handed out now.
  uint64_t used_bytes() const noexcept;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace neuropod::multiprocess
