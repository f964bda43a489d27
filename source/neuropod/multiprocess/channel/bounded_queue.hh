#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace neuropod::multiprocess {

/// A queue of small values in memory that processes share, for any number of producers and
/// consumers; lock-free, first in first out. D. Vyukov's bounded MPMC queue: a cell's sequence
/// number says whose turn it is.
///
/// Whatever a peer writes into it, every access stays inside it and push() and pop() end: after a
/// bounded number of attempts they fail as if the queue was full, or empty.
///
/// Zeroed memory isn't an empty queue: call clear() once before it is shared.
template <typename T, uint32_t capacity>
class BoundedQueue {
  static_assert((capacity & (capacity - 1)) == 0, "a power of two");
  static_assert(std::atomic<T>::is_always_lock_free);

 public:
  void clear() noexcept {
    for (uint32_t i = 0; i < capacity; ++i) cells_[i].sequence.store(i, std::memory_order_relaxed);
    tail_.store(0, std::memory_order_relaxed);
    head_.store(0, std::memory_order_release);
  }

  /// False if it is full.
  bool push(T value) noexcept {
    uint32_t position = tail_.load(std::memory_order_relaxed);
    for (uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
      Cell& cell = cells_[position & (capacity - 1)];
      const auto ahead =
          static_cast<int32_t>(cell.sequence.load(std::memory_order_acquire) - position);
      if (ahead < 0) return false;
      if (ahead == 0 &&
          tail_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
        cell.value.store(value, std::memory_order_relaxed);
        cell.sequence.store(position + 1, std::memory_order_release);
        return true;
      }
      if (ahead > 0) position = tail_.load(std::memory_order_relaxed);
    }
    return false;
  }

  /// False if it is empty.
  bool pop(T* value) noexcept {
    uint32_t position = head_.load(std::memory_order_relaxed);
    for (uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
      Cell& cell = cells_[position & (capacity - 1)];
      const auto ahead =
          static_cast<int32_t>(cell.sequence.load(std::memory_order_acquire) - (position + 1));
      if (ahead < 0) return false;
      if (ahead == 0 &&
          head_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
        *value = cell.value.load(std::memory_order_relaxed);
        cell.sequence.store(position + capacity, std::memory_order_release);
        return true;
      }
      if (ahead > 0) position = head_.load(std::memory_order_relaxed);
    }
    return false;
  }

  /// Whether a pop() now would find nothing; a hint.
  bool looks_empty() const noexcept {
    const uint32_t position = head_.load(std::memory_order_relaxed);
    const Cell& cell = cells_[position & (capacity - 1)];
    return static_cast<int32_t>(cell.sequence.load(std::memory_order_acquire) - (position + 1)) < 0;
  }

 private:
  static constexpr uint32_t kAttempts = 1 << 16;
  struct Cell {
    std::atomic<uint32_t> sequence;
    std::atomic<T> value;
  };
  alignas(64) std::atomic<uint32_t> tail_;
  alignas(64) std::atomic<uint32_t> head_;
  alignas(64) std::array<Cell, capacity> cells_;
};

}  // namespace neuropod::multiprocess
