#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "neuropod/multiprocess/managed_worker.hh"

namespace neuropod::multiprocess {

/// The workers of one model. Thread-safe.
class WorkerPool {
 public:
  using Clock = std::chrono::steady_clock;

  /// `count` workers that are like `spec`. Starts nothing.
  WorkerPool(const WorkerSpec& spec, int count);
  /// Ends them.
  ~WorkerPool();

  /// Starts all. Returns at once; choose() waits for them.
  void start();

  /// Waits until each has loaded the model. What one of them failed with leaves, after the others
  /// were ended; so does Error(cancelled) when `interrupted`, asked every 50 ms, says so.
  void wait_until_loaded(const std::function<bool()>& interrupted);

  /// A worker and the life of it that takes a call.
  struct Choice {
    ManagedWorker* worker = nullptr;
    std::shared_ptr<Incarnation> incarnation;
  };

  /// The worker with the fewest calls. Waits for one that is being started, until `until`;
  /// `interrupted` is asked at least every 50 ms. Nothing: that came, or the interruption. Throws
  /// what problem() says if none is to be expected soon (unavailable), or at all.
  std::optional<Choice> choose(std::optional<Clock::time_point> until,
                               const std::function<bool()>& interrupted);

  /// Asks the workers to give kept memory back.
  void trim();
  std::vector<WorkerInfo> info() const;
  uint64_t deaths() const;
  uint64_t restarts() const;
  const LoadReply& reply() const noexcept { return reply_; }

 private:
  // What the workers' callbacks refer to, which may come after the pool is gone.
  struct Changes {
    std::mutex mutex;
    std::condition_variable condition;
    std::atomic<uint64_t> count{0};  // changes under `mutex`
  };

  const std::chrono::milliseconds startup_timeout_;
  const std::shared_ptr<Changes> changes_;
  std::vector<std::unique_ptr<ManagedWorker>> workers_;
  LoadReply reply_;
  std::atomic<uint32_t> turn_{0};
};

}  // namespace neuropod::multiprocess
