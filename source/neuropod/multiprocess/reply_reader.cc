#include "neuropod/multiprocess/reply_reader.hh"

#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "neuropod/base/error.hh"
#include "neuropod/core/generic_tensor.hh"
#include "neuropod/multiprocess/channel/call_message.hh"
#include "neuropod/multiprocess/fork_detector.hh"

namespace neuropod::multiprocess {
namespace {

constexpr std::align_val_t kAlignment{64};
// A broken worker's word mustn't make us ask for all memory.
constexpr uint64_t kLongestBody = uint64_t{1} << 30;

[[noreturn]] void fail(const std::string& problem) {
  throw_error(ErrorCode::kInvalidArgument, "a broken answer: " + problem);
}

// Strings in place, in memory that something else owns. Writing makes them this tensor's own.
class ResultStrings : public TypedNeuropodTensor<std::string> {
 public:
  ResultStrings(std::vector<int64_t> dims, std::vector<std::string_view> views,
                std::shared_ptr<const void> owner)
      : TypedNeuropodTensor<std::string>(std::move(dims)),
        views_(std::move(views)),
        owner_(std::move(owner)) {}

  std::string_view get_element(size_t index) const override {
    return own_.empty() ? views_[index] : std::string_view(own_[index]);
  }
  void set_element(size_t index, std::string_view value) override {
    if (own_.empty()) own_.assign(views_.begin(), views_.end());
    own_[index].assign(value);
  }
  bool held_elsewhere() const override { return false; }

 private:
  const std::vector<std::string_view> views_;
  const std::shared_ptr<const void> owner_;
  std::vector<std::string> own_;
};

std::unique_ptr<NeuropodTensor> make_numeric(const TensorRecord& record, void* data,
                                             Deleter deleter) {
  return internal::wrap_numeric<GenericNeuropodTensor>(record.dims, record.type, data,
                                                       std::move(deleter), Device::CPU);
}

uint64_t count_strings(const TensorRecord& record) {
  return internal::count_elements(STRING_TENSOR, record.dims);
}

void* copy_content(const void* content, uint64_t bytes) {
  void* copy = ::operator new(bytes == 0 ? 1 : bytes, kAlignment);
  if (bytes > 0) std::memcpy(copy, content, bytes);
  return copy;
}

void free_content(void* data) { ::operator delete(data, kAlignment); }

std::unique_ptr<NeuropodTensor> own_tensor(const TensorRecord& record, const void* content) {
  void* copy = copy_content(content, record.bytes);
  if (record.type != STRING_TENSOR)
    return make_numeric(record, copy, [](void* data) { free_content(data); });
  const std::shared_ptr<const void> owner(copy, [](void* data) { free_content(data); });
  return std::make_unique<ResultStrings>(
      record.dims, read_string_content(copy, record.bytes, count_strings(record)), owner);
}

// A block of the output arena until nobody reads it.
class LentBlock {
 public:
  LentBlock(std::shared_ptr<Incarnation> incarnation, uint64_t block, uint64_t bytes)
      : incarnation_(std::move(incarnation)),
        block_(block),
        bytes_(bytes),
        generation_(process_generation()) {
    incarnation_->lent_bytes.fetch_add(bytes_, std::memory_order_relaxed);
  }
  ~LentBlock() {
    if (process_generation() != generation_) return;
    incarnation_->lent_bytes.fetch_sub(bytes_, std::memory_order_relaxed);
    incarnation_->channel->release_output(block_);
  }
  LentBlock(const LentBlock&) = delete;

 private:
  const std::shared_ptr<Incarnation> incarnation_;
  const uint64_t block_;
  const uint64_t bytes_;
  const uint64_t generation_;
};

class ReplyReader {
 public:
  ReplyReader(const std::shared_ptr<Incarnation>& incarnation,
              const std::vector<TensorSpec>& outputs, const RequestWriter& request,
              const Arena& input_arena)
      : incarnation_(incarnation), specs_(outputs), request_(request), input_arena_(input_arena) {}

  Reply read(std::string_view body) {
    BodyReader reader(body);
    Reply reply;
    if (reader.is_error()) {
      reply.code = reader.error_code();
      reply.message = reader.error_message();
      keep_inputs(reader);
      return reply;
    }
    reply.outputs = std::make_unique<NeuropodValueMap>();
    static thread_local TensorRecord record;
    while (reader.next(&record)) {
      if (!reply.outputs->emplace(name_of(record), tensor_of(record)).second) {
        fail(fmt::format("output '{}' is there twice", name_of(record)));
      }
    }
    keep_inputs(reader);
    return reply;
  }

 private:
  // What the model still refers to, whether the call succeeded or not.
  void keep_inputs(BodyReader& reader) const {
    for (const InputKept& kept : reader.kept_inputs()) {
      if (auto value = request_.value_of(kept.record)) {
        incarnation_->kept_inputs.keep(kept.token, std::move(value));
      }
    }
  }

  std::string name_of(const TensorRecord& record) const {
    if (record.name == kNamed) return std::string(record.named);
    if (record.name >= specs_.size()) fail(fmt::format("there is no output {}", record.name));
    return specs_[record.name].name;
  }

  std::shared_ptr<NeuropodValue> tensor_of(const TensorRecord& record) const {
    switch (record.place) {
      case Place::kInline:
        return own_tensor(record, record.content);
      case Place::kInputArena:
        return input_of(record);
      case Place::kOutputArena:
        return lent_tensor(record);
    }
    fail("a tensor in no place");
  }

  // A result that is a part of an input: the caller's own memory.
  std::shared_ptr<NeuropodValue> input_of(const TensorRecord& record) const {
    char* data = input_arena_.at(record.offset, record.bytes);
    auto holder = data == nullptr ? nullptr : request_.holder_of(data, record.bytes);
    if (holder == nullptr || record.type == STRING_TENSOR) {
      fail(fmt::format("output '{}' lies in memory that isn't this call's", name_of(record)));
    }
    return make_numeric(record, data, [holder](void*) {});
  }

  std::shared_ptr<NeuropodValue> lent_tensor(const TensorRecord& record) const {
    const Arena& arena = *incarnation_->output_arena;
    char* data = arena.at(record.offset, record.bytes);
    if (data == nullptr || arena.at(record.block, 1) == nullptr) {
      fail(fmt::format("output '{}' lies outside the worker's memory", name_of(record)));
    }
    auto lent = std::make_shared<LentBlock>(incarnation_, record.block, record.bytes);
    // When much of the arena is held here, the worker would run out of it.
    if (incarnation_->lent_bytes.load(std::memory_order_relaxed) > arena.size() / 2) {
      return own_tensor(record, data);
    }
    if (record.type != STRING_TENSOR) {
      return make_numeric(record, data, [lent = std::move(lent)](void*) {});
    }
    return std::make_shared<ResultStrings>(
        record.dims, read_string_content(data, record.bytes, count_strings(record)),
        std::move(lent));
  }

  const std::shared_ptr<Incarnation>& incarnation_;
  const std::vector<TensorSpec>& specs_;
  const RequestWriter& request_;
  const Arena& input_arena_;
};

// Calls `read` with a private copy of the reply in `slot`.
template <typename Function>
auto with_body(const Incarnation& incarnation, const CallSlot& slot, Function read) {
  static thread_local std::vector<char> body;  // whose memory is kept
  const uint64_t spilled = slot.spill_bytes.load(std::memory_order_relaxed);
  const uint64_t bytes = spilled != 0 ? spilled : slot.body_bytes.load(std::memory_order_relaxed);
  if (spilled == 0) {
    if (bytes > kSlotBodyBytes) fail("longer than its slot");
    if (body.size() < bytes) body.resize(bytes);
    std::memcpy(body.data(), slot.body.data(), bytes);
    return read(std::string_view(body.data(), bytes));
  }
  const uint64_t offset = slot.spill_offset.load(std::memory_order_relaxed);
  const char* from = incarnation.output_arena->at(offset, spilled);
  if (from == nullptr || spilled > kLongestBody) fail("it lies outside the worker's memory");
  const std::vector<char> copy(from, from + spilled);
  incarnation.channel->release_output(offset);
  return read(std::string_view(copy.data(), copy.size()));
}

}  // namespace

Reply read_reply(const std::shared_ptr<Incarnation>& incarnation, const CallSlot& slot,
                 const std::vector<TensorSpec>& outputs, const RequestWriter& request,
                 const Arena& input_arena) {
  ReplyReader reader(incarnation, outputs, request, input_arena);
  return with_body(*incarnation, slot,
                   [&reader](std::string_view body) { return reader.read(body); });
}

void keep_inputs(const std::shared_ptr<Incarnation>& incarnation, const CallSlot& slot,
                 const std::vector<std::shared_ptr<NeuropodValue>>& values) {
  with_body(*incarnation, slot, [&](std::string_view body) {
    BodyReader reader(body);
    if (!reader.is_error()) fail("it answers a call that nobody waits for");
    for (const InputKept& kept : reader.kept_inputs()) {
      if (kept.record < values.size()) {
        incarnation->kept_inputs.keep(kept.token, values[kept.record]);
      }
    }
  });
}

}  // namespace neuropod::multiprocess
