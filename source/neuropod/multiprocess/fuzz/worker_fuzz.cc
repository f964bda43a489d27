// What a host may write, as the worker reads it: requests, and control messages.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "neuropod/base/error.hh"
#include "neuropod/core/generic_tensor.hh"
#include "neuropod/multiprocess/channel/host_channel.hh"
#include "neuropod/multiprocess/serialization/ipc_serialization.hh"
#include "neuropod/multiprocess/worker/input_tensors.hh"

namespace neuropod::multiprocess {
namespace {

constexpr size_t kNumInputs = 3;

struct Worker {
  std::shared_ptr<Arena> channel_arena = Arena::create("fuzz", HostChannel::arena_bytes());
  HostChannel host{channel_arena, RuntimeOptions::Spin::kNever};
  std::shared_ptr<WorkerChannel> channel = std::make_shared<WorkerChannel>(channel_arena);
  std::shared_ptr<Arena> arena = Arena::create("fuzz", 1 << 16);
  InputTensors inputs{kNumInputs, get_generic_tensor_allocator(), channel, arena, arena};
};

}  // namespace

int fuzz_one(const uint8_t* data, size_t size) {
  static auto* const worker = new Worker;
  const std::string body(reinterpret_cast<const char*>(data), size);
  std::memcpy(worker->arena->data(), data, std::min(size, worker->arena->size()));
  BodyWriter reply;
  worker->inputs.begin_call();
  try {
    BodyReader reader(body);
    BoundInputs bound(kNumInputs);
    TensorRecord record;
    while (reader.next(&record)) worker->inputs.bind(record, &bound);
    reply.begin_reply();
    worker->inputs.finish_call(&reply);
  } catch (const Error&) {
    reply.write_error(ErrorCode::kInvalidArgument, "");
    worker->inputs.finish_call(&reply);
  }
  try {
    deserialize(body);
  } catch (const Error&) {
  }
  return 0;
}

}  // namespace neuropod::multiprocess

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return neuropod::multiprocess::fuzz_one(data, size);
}
