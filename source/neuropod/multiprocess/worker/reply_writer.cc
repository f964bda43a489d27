#include "neuropod/multiprocess/worker/reply_writer.hh"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "neuropod/base/error.hh"
#include "neuropod/internal/neuropod_tensor.hh"
#include "neuropod/internal/neuropod_tensor_raw_data_access.hh"

namespace neuropod::multiprocess {
namespace {

using internal::RawDataAccess;

// What a record may need besides its content: fixed part, dimensions, name, padding.
size_t record_bytes(const NeuropodTensor& tensor, std::string_view named) {
  return 64 + tensor.get_dims().size() * sizeof(int64_t) + named.size();
}

}  // namespace

LentResults::LentResults(std::shared_ptr<WorkerChannel> channel, std::shared_ptr<ResultArena> arena)
    : channel_(std::move(channel)), arena_(std::move(arena)) {}

LentResults::~LentResults() {
  for (auto& [offset, value] : lent_) drop(offset, value);
}

void LentResults::lend(uint64_t offset, std::shared_ptr<NeuropodValue> value) {
  std::lock_guard lock(mutex_);
  lent_[offset] = std::move(value);
}

void LentResults::drop(uint64_t offset, const std::shared_ptr<NeuropodValue>& value) noexcept {
  if (value == nullptr) arena_->free(arena_->arena().at(offset, 1));
}

void LentResults::take_back(uint64_t offset) {
  std::shared_ptr<NeuropodValue> value;
  {
    std::lock_guard lock(mutex_);
    const auto found = lent_.find(offset);
    if (found == lent_.end()) return;  // a number that the host made up
    value = std::move(found->second);
    lent_.erase(found);
  }
  drop(offset, value);
}

void LentResults::drain() {
  uint64_t offset = 0;
  while (channel_->next_released_output(&offset)) take_back(offset);
}

void ReplyWriter::lend(uint64_t offset, std::shared_ptr<NeuropodValue> value) {
  lent_.lend(offset, std::move(value));
  lent_now_.push_back(offset);
}

char* ReplyWriter::lend_block(std::string_view what, uint64_t bytes, uint64_t* offset) {
  ResultArena& arena = lent_.arena();
  void* data = arena.allocate(bytes);
  if (data == nullptr) {
    lent_.drain();
    arena.trim();
    data = arena.allocate(bytes);
  }
  if (data == nullptr) {
    throw_error(
        ErrorCode::kOutOfMemory,
        fmt::format("no room for {} of {} bytes: the worker's memory for results has {} bytes, "
                    "and {} of them are in use; free earlier results, or raise "
                    "ope_options.memory_limit",
                    what, bytes, arena.arena().size(), arena.live_bytes()));
  }
  *offset = *arena.arena().offset_of(data, bytes);
  lend(*offset, nullptr);
  return static_cast<char*>(data);
}

void ReplyWriter::write(const NeuropodValueMap& outputs, const InputTensors& inputs,
                        BodyWriter* body) {
  lent_now_.clear();
  body->begin_reply();
  for (const auto& [name, output] : outputs) write_output(name, output, inputs, body);
}

void ReplyWriter::take_back() {
  for (const uint64_t offset : lent_now_) lent_.take_back(offset);
  lent_now_.clear();
}

void ReplyWriter::write_output(const std::string& name,
                               const std::shared_ptr<NeuropodValue>& output,
                               const InputTensors& inputs, BodyWriter* body) {
  if (output == nullptr) return;  // the host says that it is missing
  const size_t found = names_.find(name);
  const bool known = found != NameIndex::kNotFound;
  const uint32_t index = known ? static_cast<uint32_t>(found) : kNamed;
  const std::string_view named = known ? std::string_view() : std::string_view(name);

  const NeuropodTensor* tensor = output->as_tensor();
  std::shared_ptr<NeuropodTensor> on_cpu;
  if (tensor->get_device() != Device::CPU) {
    on_cpu = output->as_tensor()->to(Device::CPU);
    tensor = on_cpu.get();
  }
  if (tensor->get_tensor_type() == STRING_TENSOR) return write_strings(index, named, *tensor, body);

  const void* data = RawDataAccess::get_untyped_data_ptr(*tensor);
  const size_t bytes = RawDataAccess::get_num_bytes(*tensor);
  const auto& dims = tensor->get_dims();
  const TensorType type = tensor->get_tensor_type();
  if (bytes > 0) {
    const size_t element = bytes / tensor->get_num_elements();
    if (const auto offset = inputs.offset_in_inputs(data, bytes);
        offset && *offset % std::min<size_t>(element, 8) == 0) {
      body->add(index, named, type, dims, Place::kInputArena, *offset, bytes, 0);
      return;
    }
  }
  if (bytes <= kInlineOutputBytes &&
      body->size() + record_bytes(*tensor, named) + bytes <= kSlotBodyBytes) {
    void* to = body->add_inline(index, named, type, dims, bytes);
    if (bytes > 0) std::memcpy(to, data, bytes);
    return;
  }
  // Alone in its memory: nobody will change it, and what it keeps is mostly what is wanted.
  if (output.use_count() == 1 && tensor->sole_owner()) {
    const auto block = lent_.arena().find(data, bytes);
    if (block && block->bytes / 2 <= bytes) {
      body->add(index, named, type, dims, Place::kOutputArena, block->offset, bytes, block->offset);
      lend(block->offset, output);
      return;
    }
  }
  uint64_t offset = 0;
  char* to = lend_block(fmt::format("output '{}'", name), bytes, &offset);
  std::memcpy(to, data, bytes);
  body->add(index, named, type, dims, Place::kOutputArena, offset, bytes, offset);
}

void ReplyWriter::write_strings(uint32_t index, std::string_view named,
                                const NeuropodTensor& tensor, BodyWriter* body) {
  const std::vector<std::string_view> strings = RawDataAccess::get_string_views(tensor);
  const uint64_t bytes = string_content_bytes(strings);
  if (bytes <= kInlineOutputBytes &&
      body->size() + record_bytes(tensor, named) + bytes <= kSlotBodyBytes) {
    write_string_content(strings,
                         body->add_inline(index, named, STRING_TENSOR, tensor.get_dims(), bytes));
    return;
  }
  uint64_t offset = 0;
  write_string_content(strings, lend_block("an output of strings", bytes, &offset));
  body->add(index, named, STRING_TENSOR, tensor.get_dims(), Place::kOutputArena, offset, bytes,
            offset);
}

void ReplyWriter::publish(std::string_view body, CallSlot* slot) {
  if (body.size() <= kSlotBodyBytes) {
    std::memcpy(slot->body.data(), body.data(), body.size());
    slot->body_bytes.store(static_cast<uint32_t>(body.size()), std::memory_order_relaxed);
    slot->spill_bytes.store(0, std::memory_order_relaxed);
    return;
  }
  uint64_t offset = 0;
  std::memcpy(lend_block("a reply", body.size(), &offset), body.data(), body.size());
  slot->body_bytes.store(0, std::memory_order_relaxed);
  slot->spill_offset.store(offset, std::memory_order_relaxed);
  slot->spill_bytes.store(body.size(), std::memory_order_relaxed);
}

}  // namespace neuropod::multiprocess
