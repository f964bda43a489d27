#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "neuropod/multiprocess/fork_detector.hh"

namespace neuropod::multiprocess {

/// A `T` that belongs to one process: a forked child makes its own on first use and leaves its
/// parent's alone, whose locks may be held and whose threads aren't there. Thread-safe.
template <typename T>
class ProcessLocal {
 public:
  explicit ProcessLocal(std::function<std::unique_ptr<T>()> make) : make_(std::move(make)) {}
  /// What a parent process made stays, for ever.
  ~ProcessLocal() {
    Owned* owned = current_.load();
    if (owned != nullptr && owned->generation == process_generation()) delete owned;
  }
  ProcessLocal(const ProcessLocal&) = delete;
  ProcessLocal& operator=(const ProcessLocal&) = delete;

  T& get() {
    const uint64_t generation = process_generation();
    for (;;) {
      Owned* known = current_.load(std::memory_order_acquire);
      if (known != nullptr && known->generation == generation) return *known->value;
      uint64_t maker = maker_.load();
      if (maker == generation || !maker_.compare_exchange_strong(maker, generation)) {
        std::this_thread::yield();  // another thread makes it
        continue;
      }
      try {
        current_.store(new Owned{generation, make_()}, std::memory_order_release);
      } catch (...) {
        maker_.store(0);
        throw;
      }
    }
  }

  /// Null if this process has none yet.
  T* find() const noexcept {
    Owned* known = current_.load(std::memory_order_acquire);
    return known != nullptr && known->generation == process_generation() ? known->value.get()
                                                                         : nullptr;
  }

 private:
  struct Owned {
    const uint64_t generation;
    const std::unique_ptr<T> value;
  };
  const std::function<std::unique_ptr<T>()> make_;
  std::atomic<Owned*> current_{nullptr};
  std::atomic<uint64_t> maker_{0};
};

}  // namespace neuropod::multiprocess
