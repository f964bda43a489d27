#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "neuropod/backends/call_control.hh"
#include "neuropod/multiprocess/process_local.hh"
#include "neuropod/neuropod.hh"

namespace neuropod::internal {

/// One call of infer_async().
struct AsyncCallState {
  NeuropodValueMap inputs;
  std::vector<std::string> requested_outputs;
  Neuropod::InferCallback done;
  CallControl control;
};

/// Runs a model's asynchronous calls on up to concurrency() threads, which the first calls start. A
/// forked child starts its own. Thread-safe.
class AsyncCalls {
 public:
  explicit AsyncCalls(std::shared_ptr<NeuropodBackend> backend);
  /// Cancels what waits, waits for what runs. A thread whose callback drops the last copy of the
  /// model is left to end by itself.
  ~AsyncCalls();
  AsyncCalls(const AsyncCalls&) = delete;
  AsyncCalls& operator=(const AsyncCalls&) = delete;

  AsyncCall submit(NeuropodValueMap inputs, std::vector<std::string> requested_outputs,
                   Neuropod::InferCallback done);

 private:
  // What the threads refer to, which may outlive the rest.
  struct Queue {
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<std::shared_ptr<AsyncCallState>> waiting;
    size_t idle = 0;
    bool closed = false;
  };
  // One process's.
  struct Threads {
    const std::shared_ptr<Queue> queue = std::make_shared<Queue>();
    std::vector<std::thread> threads;  // guarded by the queue's mutex
    ~Threads();
  };
  static void serve(const std::shared_ptr<Queue>& queue,
                    const std::shared_ptr<NeuropodBackend>& backend);

  const std::shared_ptr<NeuropodBackend> backend_;
  multiprocess::ProcessLocal<Threads> threads_{[] { return std::make_unique<Threads>(); }};
};

}  // namespace neuropod::internal
