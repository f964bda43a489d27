#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "neuropod/backends/worker_memory.hh"
#include "neuropod/core/memory_pool.hh"
#include "neuropod/multiprocess/shm/arena_blocks.hh"

namespace neuropod::multiprocess {

/// The output arena of one host as the worker uses it: a pool of blocks that are found again by
/// their address. Thread-safe.
class ResultArena {
 public:
  explicit ResultArena(std::shared_ptr<Arena> arena);

  /// Null if nothing is left.
  void* allocate(size_t bytes) noexcept;
  void free(void* data) noexcept;

  struct Block {
    uint64_t offset = 0;  // in the arena
    uint64_t bytes = 0;
  };
  /// The live block that holds [data, data + bytes).
  std::optional<Block> find(const void* data, size_t bytes) const;

  const Arena& arena() const noexcept { return *arena_; }
  uint64_t live_bytes() const noexcept { return pool_->stats().live_bytes; }
  void trim() { pool_->trim(); }
  /// No host reads it any more; true if nothing in it is live.
  bool close() noexcept;
  bool is_dead() const noexcept;

 private:
  struct Entry {
    uint64_t bytes = 0;
    Deleter release;
  };
  const std::shared_ptr<Arena> arena_;
  const std::shared_ptr<MemoryPool> pool_;
  mutable std::mutex mutex_;
  std::unordered_map<const void*, Entry> live_;
  bool closed_ = false;
};

/// What frameworks allocate from: the arena of the host whose call the thread runs. One per
/// process, since a framework has one allocator; never destroyed, since it may free at any time.
class ResultMemory : public WorkerMemory {
 public:
  static ResultMemory& instance();

  void* allocate(size_t bytes) noexcept override;
  void free(void* data) noexcept override;
  bool owns(const void* data) const noexcept override;

  std::shared_ptr<ResultArena> add(std::shared_ptr<Arena> arena);
  /// The arena stays mapped until what is live in it has been freed.
  void remove(const std::shared_ptr<ResultArena>& arena);

  /// While it lives, this thread's allocations come from `arena`.
  class Call {
   public:
    explicit Call(ResultArena& arena) noexcept;
    ~Call();
    Call(const Call&) = delete;
  };

 private:
  ResultMemory();
  std::shared_ptr<ResultArena> arena_of(const void* data) const;

  const uint64_t generation_;  // of the process; a child that the model forks has another
  mutable std::shared_mutex mutex_;
  std::vector<std::shared_ptr<ResultArena>> arenas_;
};

}  // namespace neuropod::multiprocess
