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
  call.control.close();
  finish(call, std::move(outputs), error);
}

}  // namespace

AsyncCalls::AsyncCalls(std::shared_ptr<NeuropodBackend> backend) : backend_(std::move(backend)) {}

AsyncCalls::~AsyncCalls() = default;

AsyncCalls::Threads::~Threads() {
  std::deque<std::shared_ptr<AsyncCallState>> waiting;
  std::vector<std::thread> begun;
  {
    std::lock_guard lock(queue->mutex);
    queue->closed = true;
    waiting.swap(queue->waiting);
    begun.swap(threads);
  }
  queue->wake.notify_all();
  for (const auto& call : waiting) {
    finish(*call, nullptr,
           std::make_exception_ptr(Error(
               ErrorCode::kCancelled, "the model was closed before this asynchronous call began")));
  }
  for (std::thread& thread : begun) {
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
  Threads& ours = threads_.get();
  {
    std::lock_guard lock(ours.queue->mutex);
    ours.queue->waiting.push_back(call);
    if (ours.queue->idle < ours.queue->waiting.size() &&
        ours.threads.size() < static_cast<size_t>(backend_->concurrency())) {
      ours.threads.emplace_back(
          [queue = ours.queue, backend = backend_] { serve(queue, backend); });
    }
  }
  ours.queue->wake.notify_one();
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
