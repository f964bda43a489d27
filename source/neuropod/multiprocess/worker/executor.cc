#include "neuropod/multiprocess/worker/executor.hh"

#include <cstring>
#include <new>
#include <string>

#include <fmt/format.h>

#include "neuropod/base/error.hh"
#include "neuropod/multiprocess/fault_point.hh"

namespace neuropod::multiprocess {
namespace {

// One thread's calls.
class Executor {
 public:
  explicit Executor(const Hosted& hosted)
      : hosted_(hosted),
        inputs_(hosted.model->get_inputs().size(), hosted.model->get_tensor_allocator(),
                hosted.channel, hosted.inputs, hosted.outputs),
        replies_(hosted.output_names, hosted.lent.get()) {}

  void run(CallSlot* slot);
  // Somebody reads the reply.
  void forget() noexcept { replies_.forget(); }
  // Nobody does, but for what the model has kept of the inputs.
  void take_back(CallSlot* slot) { fail(ErrorCode::kCancelled, "nobody waited for it", slot); }

 private:
  std::string_view request(const CallSlot& slot);
  void infer(const CallSlot& slot);
  void fail(ErrorCode code, std::string_view message, CallSlot* slot);

  const Hosted& hosted_;
  InputTensors inputs_;
  ReplyWriter replies_;
  BodyWriter body_;
  TensorRecord record_;
  std::vector<char> request_;  // a private copy: the host may change what it wrote
  std::vector<std::string> requested_;
};

std::string_view Executor::request(const CallSlot& slot) {
  const uint64_t spilled = slot.spill_bytes.load(std::memory_order_relaxed);
  const void* from = slot.body.data();
  uint64_t bytes = slot.body_bytes.load(std::memory_order_relaxed);
  if (spilled != 0) {
    bytes = spilled;
    from = hosted_.inputs->at(slot.spill_offset.load(std::memory_order_relaxed), spilled);
  } else if (bytes > kSlotBodyBytes) {
    from = nullptr;
  }
  if (from == nullptr) {
    throw_error(ErrorCode::kInvalidArgument, "the host's call lies outside its memory");
  }
  if (request_.size() < bytes) request_.resize(bytes);
  std::memcpy(request_.data(), from, bytes);
  return {request_.data(), bytes};
}

void Executor::infer(const CallSlot& slot) {
  BodyReader reader(request(slot));
  requested_.clear();
  const std::vector<TensorSpec>& outputs = hosted_.model->get_outputs();
  for (const uint32_t index : reader.requested_outputs()) {
    if (index >= outputs.size()) {
      throw_error(ErrorCode::kInvalidArgument, fmt::format("there is no output {}", index));
    }
    requested_.push_back(outputs[index].name);
  }
  BoundInputs bound(hosted_.model->get_inputs().size());
  while (reader.next(&record_)) inputs_.bind(record_, &bound);

  fault_point("before_infer");
  std::unique_ptr<NeuropodValueMap> results;
  {
    const ResultMemory::Call call(*hosted_.results);
    results = hosted_.model->infer_bound(bound, requested_);
  }
  fault_point("after_infer");
  replies_.write(*results, inputs_, &body_);
  // What is lent has an owner of its own; the rest goes before inputs are counted.
  results = nullptr;
  inputs_.finish_call(&body_);
}

void Executor::fail(ErrorCode code, std::string_view message, CallSlot* slot) {
  replies_.take_back();
  constexpr size_t kRoomForKept = 4096;
  body_.write_error(code, message.substr(0, kSlotBodyBytes - kRoomForKept));
  inputs_.finish_call(&body_);
  replies_.publish(body_.finish(), slot);
}

void Executor::run(CallSlot* slot) {
  inputs_.begin_call();
  try {
    if (slot->kind.load(std::memory_order_relaxed) == static_cast<uint32_t>(CallKind::kReset)) {
      hosted_.model->reset();
      body_.begin_reply();
    } else {
      infer(*slot);
    }
    replies_.publish(body_.finish(), slot);
  } catch (const Error& error) {
    fail(error.code(), error.message(), slot);
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::kOutOfMemory, "the worker has no memory left; smaller inputs need less", slot);
  } catch (const std::exception& exception) {
    fail(ErrorCode::kModelError, exception.what(), slot);
  }
}

}  // namespace

void run_calls(const Hosted& hosted) {
  Executor executor(hosted);
  SpinPolicy policy(SpinPolicy::Side::kWorker, hosted.spin);
  ChannelStatus& status = hosted.channel->layout().status;
  while (const auto index = hosted.channel->take(&policy)) {
    CallSlot& slot = hosted.channel->slot(*index);
    fault_point("taken");
    hosted.lent->drain();
    executor.run(&slot);
    fault_point("before_finish");
    status.calls.fetch_add(1, std::memory_order_relaxed);
    status.output_bytes.store(hosted.results->live_bytes(), std::memory_order_relaxed);
    if (hosted.channel->finish(*index, &policy)) {
      executor.forget();
    } else {
      executor.take_back(&slot);
      hosted.channel->retire(*index);
      executor.forget();
    }
    fault_point("finished");
  }
}

}  // namespace neuropod::multiprocess
