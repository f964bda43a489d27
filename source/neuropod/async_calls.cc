#include "neuropod/async_calls.hh"

#include <utility>

#include "neuropod/base/error.hh"
#include "neuropod/base/logging.hh"

namespace neuropod {
namespace internal {
namespace {

void finish(AsyncCallState& call, std::unique_ptr<NeuropodValueMap> outputs,
            std::exception_ptr error) {
  call.inputs.clear();
  try {
    std::exchange(call.done, nullptr)(std::move(outputs), std::move(error));
  } catch (const std::exception& exception) {
    log(LogLevel::kError,
        std::string("the callback of an asynchronous call threw, which it mustn't: ") +
            exception.what());
  }
}

void run(AsyncCallState& call, NeuropodBackend& backend) {
  std::unique_ptr<NeuropodValueMap> outputs;
  std::exception_ptr error;
  try {
    // A call that was cancelled while it waited isn't begun.
    if (!call.control.attach([] { return false; })) {
      throw_error(ErrorCode::kCancelled, "the call was cancelled before it began");
    }
    call.control.detach();
    const CallControl::Scope scope(call.control);
    outputs = backend.infer(call.inputs, call.requested_outputs);
  } catch (...) {
    error = std::current_exception();
  }
  finish(call, std::move(outputs), error);
}

}  // namespace

AsyncCalls::~AsyncCalls() {
  std::deque<std::shared_ptr<AsyncCallState>> waiting;
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(queue_->mutex);
    queue_->closed = true;
    waiting.swap(queue_->waiting);
    threads.swap(threads_);
  }
  queue_->wake.notify_all();
  for (const auto& call : waiting) {
    finish(*call, nullptr,
           std::make_exception_ptr(Error(
               ErrorCode::kCancelled, "the model was closed before this asynchronous call began")));
  }
  for (std::thread& thread : threads) {
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }
}

AsyncCall AsyncCalls::submit(NeuropodValueMap inputs, std::vector<std::string> requested_outputs,
                             Neuropod::InferCallback done) {
  auto call = std::make_shared<AsyncCallState>();
  call->inputs = std::move(inputs);
  call->requested_outputs = std::move(requested_outputs);
  call->done = std::move(done);
  {
    std::lock_guard lock(queue_->mutex);
    queue_->waiting.push_back(call);
    if (queue_->idle < queue_->waiting.size() &&
        threads_.size() < static_cast<size_t>(backend_->concurrency())) {
      threads_.emplace_back([queue = queue_, backend = backend_] { serve(queue, backend); });
    }
  }
  queue_->wake.notify_one();
  return AsyncCall(std::move(call));
}

void AsyncCalls::serve(const std::shared_ptr<Queue>& queue,
                       const std::shared_ptr<NeuropodBackend>& backend) {
  std::unique_lock lock(queue->mutex);
  for (;;) {
    ++queue->idle;
    queue->wake.wait(lock, [&] { return queue->closed || !queue->waiting.empty(); });
    --queue->idle;
    if (queue->waiting.empty()) return;
    const std::shared_ptr<AsyncCallState> call = std::move(queue->waiting.front());
    queue->waiting.pop_front();
    lock.unlock();
    run(*call, *backend);
    lock.lock();
  }
}

}  // namespace internal

AsyncCall::AsyncCall(std::shared_ptr<internal::AsyncCallState> state) : state_(std::move(state)) {}

bool AsyncCall::cancel() const { return state_->control.cancel(); }

}  // namespace neuropod
