#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace neuropod::multiprocess {

/// What a side couldn't push yet because the queue was full. Thread-safe.
class Backlog {
 public:
  template <typename Queue>
  void push(Queue& queue, uint64_t value) {
    if (queue.push(value)) return;
    std::lock_guard lock(mutex_);
    values_.push_back(value);
    any_.store(true, std::memory_order_relaxed);
  }

  /// Pushes what fits now; cheap when there is nothing.
  template <typename Queue>
  void flush(Queue& queue) {
    if (!any_.load(std::memory_order_relaxed)) return;
    std::lock_guard lock(mutex_);
    while (!values_.empty() && queue.push(values_.back())) values_.pop_back();
    any_.store(!values_.empty(), std::memory_order_relaxed);
  }

 private:
  std::mutex mutex_;
  std::vector<uint64_t> values_;
  std::atomic<bool> any_{false};
};

}  // namespace neuropod::multiprocess
