#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "neuropod/backends/call_control.hh"
#include "neuropod/neuropod.hh"

namespace neuropod::internal {

/// One call of infer_async().
struct AsyncCallState {
  NeuropodValueMap inputs;
  std::vector<std::string> requested_outputs;
  Neuropod::InferCallback done;
  CallControl control;
};

/// Runs a model's asynchronous calls on up to concurrency() threads, which the first calls start.
/// Thread-safe.
class AsyncCalls {
 public:
  explicit AsyncCalls(std::shared_ptr<NeuropodBackend> backend) : backend_(std::move(backend)) {}
  /// Cancels what waits, waits for what runs. A thread whose callback drops the last copy of the
  /// model is left to end by itself.
  ~AsyncCalls();
  AsyncCalls(const AsyncCalls&) = delete;
  AsyncCalls& operator=(const AsyncCalls&) = delete;

  AsyncCall submit(NeuropodValueMap inputs, std::vector<std::string> requested_outputs,
                   Neuropod::InferCallback done);

 private:
  // What the threads refer to, which may outlive this.
  struct Queue {
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<std::shared_ptr<AsyncCallState>> waiting;
    size_t idle = 0;
    bool closed = false;
  };
  static void serve(const std::shared_ptr<Queue>& queue,
                    const std::shared_ptr<NeuropodBackend>& backend);

  const std::shared_ptr<NeuropodBackend> backend_;
  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::vector<std::thread> threads_;  // guarded by the queue's mutex
};

}  // namespace neuropod::internal
