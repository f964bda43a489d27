// What a worker may write, as the host reads it: replies in slots, strings in its arena, control
// messages.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "neuropod/base/error.hh"
#include "neuropod/internal/neuropod_tensor.hh"
#include "neuropod/multiprocess/reply_reader.hh"
#include "neuropod/multiprocess/serialization/ipc_serialization.hh"

namespace neuropod::multiprocess {
namespace {

constexpr size_t kOutputBytes = 1 << 16;

// A host with one call under way, made once.
struct Host {
  InputMemory memory{1 << 20};
  std::shared_ptr<Incarnation> incarnation = std::make_shared<Incarnation>();
  std::shared_ptr<NeuropodValue> x = allocate_in(memory, {16}, FLOAT_TENSOR);
  BoundInputs inputs{1};
  RequestWriter request{inputs, memory};
  std::vector<TensorSpec> outputs{{"y", {Dimension(-1)}, FLOAT_TENSOR},
                                  {"s", {Dimension(-1)}, STRING_TENSOR}};

  Host() {
    incarnation->output_arena = Arena::create("fuzz", kOutputBytes);
    incarnation->channel = std::make_shared<HostChannel>(
        Arena::create("fuzz", HostChannel::arena_bytes()), RuntimeOptions::Spin::kNever);
    inputs.set(0, &x);
    request.write({}, *incarnation, &incarnation->channel->slot(0));
  }
};

void read_everything(const NeuropodValueMap& outputs) {
  for (const auto& [name, output] : outputs) {
    const NeuropodTensor& tensor = *output->as_tensor();
    if (tensor.get_tensor_type() != STRING_TENSOR || tensor.get_num_elements() > 1000) continue;
    for (const std::string& text : tensor.as_typed_tensor<std::string>()->get_data_as_vector()) {
      if (text.size() > kOutputBytes) __builtin_trap();
    }
  }
}

}  // namespace

int fuzz_one(const uint8_t* data, size_t size) {
  static auto* const host = new Host;
  if (size < 16) return 0;
  CallSlot& slot = host->incarnation->channel->slot(1);
  uint64_t words[2];
  std::memcpy(words, data, sizeof words);
  data += sizeof words;
  size -= sizeof words;
  const size_t in_slot = std::min(size, kSlotBodyBytes);
  std::memcpy(slot.body.data(), data, in_slot);
  std::memcpy(host->incarnation->output_arena->data(), data, std::min(size, kOutputBytes));
  // Mostly what is true, sometimes anything.
  slot.body_bytes.store(words[0] % 8 == 0 ? uint32_t(words[0] >> 8) : uint32_t(in_slot));
  slot.spill_bytes.store(words[1] % 4 == 0 ? words[1] >> 2 : 0);
  slot.spill_offset.store(words[0] >> 3);
  try {
    const Reply reply =
        read_reply(host->incarnation, slot, host->outputs, host->request, *host->memory.arena);
    if (reply.outputs != nullptr) read_everything(*reply.outputs);
  } catch (const Error&) {
  }
  try {  // as of a call that was given up
    keep_inputs(host->incarnation, slot, {host->x});
  } catch (const Error&) {
  }
  host->incarnation->kept_inputs.clear();
  uint64_t released = 0;
  while (host->incarnation->channel->layout().released_outputs.pop(&released)) {
  }
  try {
    deserialize({reinterpret_cast<const char*>(data), size});
  } catch (const Error&) {
  }
  return 0;
}

}  // namespace neuropod::multiprocess

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return neuropod::multiprocess::fuzz_one(data, size);
}
