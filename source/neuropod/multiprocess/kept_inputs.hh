#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "neuropod/internal/neuropod_value.hh"

namespace neuropod::multiprocess {

/// Inputs that a worker's model refers to beyond their call, by the worker's tokens. Thread-safe.
class KeptInputs {
 public:
  void keep(uint64_t token, std::shared_ptr<NeuropodValue> input) {
    std::lock_guard lock(mutex_);
    // The worker's word that it is let go may overtake the reply that says it is kept.
    if (early_.erase(token) == 0) kept_[token] = std::move(input);
  }

  void let_go(uint64_t token) {
    std::shared_ptr<NeuropodValue> input;  // goes after the lock
    std::lock_guard lock(mutex_);
    const auto found = kept_.find(token);
    if (found == kept_.end()) {
      if (early_.size() < kMostEarly) early_.insert(token);
      return;
    }
    input = std::move(found->second);
    kept_.erase(found);
  }

  void clear() {
    std::unordered_map<uint64_t, std::shared_ptr<NeuropodValue>> kept;
    std::lock_guard lock(mutex_);
    kept.swap(kept_);
    early_.clear();
  }

 private:
  static constexpr size_t kMostEarly = 1 << 16;  // more are numbers that a broken worker makes up
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<NeuropodValue>> kept_;
  std::unordered_set<uint64_t> early_;
};

}  // namespace neuropod::multiprocess
