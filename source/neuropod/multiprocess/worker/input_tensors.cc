#include "neuropod/multiprocess/worker/input_tensors.hh"

#include <utility>

#include <fmt/format.h>

#include "neuropod/base/error.hh"

namespace neuropod::multiprocess {
namespace {

std::atomic<uint64_t> last_token{0};  // process-wide, so that no two are alike

[[noreturn]] void fail(const std::string& problem) {
  throw_error(ErrorCode::kInvalidArgument, "the host's call can't be understood: " + problem);
}

}  // namespace

// The host's memory while a tensor is over it. Ends when the framework runs the tensor's deleter.
struct InputTensors::Lease {
  explicit Lease(std::shared_ptr<WorkerChannel> to) : channel(std::move(to)) {}

  static constexpr uint64_t kLive = 0;
  static constexpr uint64_t kGone = ~uint64_t{0};

  const std::shared_ptr<WorkerChannel> channel;
  std::atomic<uint64_t> state{kLive};  // or the token that was announced, or gone

  // The token under which the host is told to wait; 0 if nobody has the memory any more.
  uint64_t announce() noexcept {
    const uint64_t token = last_token.fetch_add(1) + 1;
    uint64_t expected = kLive;
    return state.compare_exchange_strong(expected, token) ? token : 0;
  }
  void end() noexcept {
    const uint64_t token = state.exchange(kGone);
    if (token == kLive || token == kGone) return;
    channel->release_input(token);
  }
};

InputTensors::InputTensors(size_t num_inputs, std::shared_ptr<NeuropodTensorAllocator> allocator,
                           std::shared_ptr<WorkerChannel> channel, std::shared_ptr<Arena> inputs,
                           std::shared_ptr<Arena> outputs)
    : allocator_(std::move(allocator)),
      channel_(std::move(channel)),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      cache_(num_inputs),
      next_(num_inputs, 0),
      strings_(num_inputs) {}

InputTensors::~InputTensors() = default;

InputTensors::Entry InputTensors::make_entry(const TensorRecord& record, char* content) const {
  Entry entry;
  entry.offset = record.offset;
  entry.bytes = record.bytes;
  entry.place = record.place;
  entry.type = record.type;
  entry.dims = record.dims;
  entry.lease = std::make_shared<Lease>(channel_);
  // The mapping must be there as long as the framework looks at it.
  const std::shared_ptr<Arena> arena = record.place == Place::kInputArena ? inputs_ : outputs_;
  entry.value = allocator_->tensor_from_memory(
      record.dims, record.type, content, [lease = entry.lease, arena](void*) { lease->end(); });
  return entry;
}

void InputTensors::bind_strings(const TensorRecord& record, const char* content,
                                BoundInputs* bound) {
  std::shared_ptr<NeuropodTensor> tensor = allocator_->allocate_tensor(record.dims, STRING_TENSOR);
  auto& strings = *tensor->as_typed_tensor<std::string>();
  const auto views = read_string_content(content, record.bytes, strings.get_num_elements());
  for (size_t i = 0; i < views.size(); ++i) strings.set_element(i, views[i]);
  strings_[record.name] = std::move(tensor);
  bound->set(record.name, &strings_[record.name]);
  used_.push_back({record.name, kNotCached});
}

void InputTensors::bind(const TensorRecord& record, BoundInputs* bound) {
  if (record.name >= cache_.size()) fail(fmt::format("there is no input {}", record.name));
  if ((*bound)[record.name] != nullptr) fail(fmt::format("input {} is there twice", record.name));
  if (record.place == Place::kInline) fail("an input lies in the message itself");
  const Arena& arena = record.place == Place::kInputArena ? *inputs_ : *outputs_;
  char* content = arena.at(record.offset, record.bytes);
  if (content == nullptr) fail(fmt::format("input {} lies outside its memory", record.name));
  if (record.type == STRING_TENSOR) return bind_strings(record, content, bound);

  std::vector<Entry>& entries = cache_[record.name];
  size_t index = 0;
  for (; index < entries.size(); ++index) {
    const Entry& entry = entries[index];
    if (entry.offset == record.offset && entry.value != nullptr && entry.place == record.place &&
        entry.type == record.type && entry.dims == record.dims) {
      break;
    }
  }
  if (index == entries.size()) {
    Entry entry = make_entry(record, content);
    if (entries.size() < kEntriesPerInput) {
      entries.push_back(std::move(entry));
    } else {
      index = next_[record.name]++ % kEntriesPerInput;
      entries[index] = std::move(entry);
    }
  }
  bound->set(record.name, &entries[index].value);
  used_.push_back({record.name, index});
}

void InputTensors::begin_call() noexcept {
  used_.clear();
  announced_.clear();
}

void InputTensors::finish_call(BodyWriter* reply) {
  for (uint32_t record = 0; record < used_.size(); ++record) {
    const Used& used = used_[record];
    if (used.entry == kNotCached) {
      strings_[used.input] = nullptr;
      continue;
    }
    Entry& entry = cache_[used.input][used.entry];
    if (entry.value.use_count() == 1 && !entry.value->as_tensor()->held_elsewhere()) continue;
    entry.value = nullptr;
    const uint64_t token = entry.lease->announce();
    if (token != 0) announced_.push_back({record, token});
    entry.lease = nullptr;
  }
  used_.clear();
  for (const InputKept& kept : announced_) reply->add_kept(kept.record, kept.token);
}

std::optional<uint64_t> InputTensors::offset_in_inputs(const void* data,
                                                       size_t bytes) const noexcept {
  const auto offset = inputs_->offset_of(data, bytes);
  if (!offset) return std::nullopt;
  for (const Used& used : used_) {
    if (used.entry == kNotCached) continue;
    const Entry& entry = cache_[used.input][used.entry];
    if (entry.place == Place::kInputArena && *offset >= entry.offset &&
        *offset - entry.offset + bytes <= entry.bytes) {
      return offset;
    }
  }
  return std::nullopt;
}

}  // namespace neuropod::multiprocess
