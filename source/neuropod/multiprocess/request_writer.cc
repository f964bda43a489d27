#include "neuropod/multiprocess/request_writer.hh"

#include <algorithm>
#include <cstring>

#include "neuropod/internal/neuropod_tensor_raw_data_access.hh"

namespace neuropod::multiprocess {
namespace {

using internal::RawDataAccess;

// What bodies demand: a view of packed memory may lie anywhere, and is copied.
bool is_aligned(uint64_t offset, const NeuropodTensor& tensor) {
  const size_t count = tensor.get_num_elements();
  const size_t element = count == 0 ? 1 : RawDataAccess::get_num_bytes(tensor) / count;
  return offset % std::min<size_t>(element, 8) == 0;
}

// Its memory is kept from call to call.
thread_local BodyWriter thread_body;

}  // namespace

void RequestWriter::write(const std::vector<uint32_t>& requested_outputs,
                          const Incarnation& incarnation, CallSlot* slot) {
  body_ = &thread_body;
  body_->begin_request(requested_outputs);
  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] != nullptr) add(i, *inputs_[i], incarnation);
  }
  const std::string_view body = body_->finish();
  if (body.size() <= kSlotBodyBytes) {
    std::memcpy(slot->body.data(), body.data(), body.size());
    slot->body_bytes.store(static_cast<uint32_t>(body.size()), std::memory_order_relaxed);
    slot->spill_bytes.store(0, std::memory_order_relaxed);
    return;
  }
  spill_ = allocate_in(memory_, {static_cast<int64_t>(body.size())}, UINT8_TENSOR);
  void* to = RawDataAccess::get_untyped_data_ptr(*spill_);
  std::memcpy(to, body.data(), body.size());
  slot->body_bytes.store(0, std::memory_order_relaxed);
  slot->spill_offset.store(*memory_.arena->offset_of(to, body.size()), std::memory_order_relaxed);
  slot->spill_bytes.store(body.size(), std::memory_order_relaxed);
}

void RequestWriter::add(uint32_t index, const std::shared_ptr<NeuropodValue>& value,
                        const Incarnation& incarnation) {
  const NeuropodTensor& tensor = *value->as_tensor();
  const TensorType type = tensor.get_tensor_type();
  const auto& dims = tensor.get_dims();
  if (type != STRING_TENSOR) {
    const void* data = RawDataAccess::get_untyped_data_ptr(tensor);
    const uint64_t bytes = RawDataAccess::get_num_bytes(tensor);
    if (bytes == 0) {
      body_->add(index, {}, type, dims, Place::kInputArena, 0, 0, 0);
      return;
    }
    if (const auto offset = memory_.arena->offset_of(data, bytes);
        offset && is_aligned(*offset, tensor)) {
      body_->add(index, {}, type, dims, Place::kInputArena, *offset, bytes, 0);
      return;
    }
    // A result of the same worker.
    if (const auto offset = incarnation.output_arena->offset_of(data, bytes)) {
      body_->add(index, {}, type, dims, Place::kOutputArena, *offset, bytes, 0);
      return;
    }
  }
  const NeuropodTensor& copy = copy_of(index, tensor);
  const uint64_t bytes = RawDataAccess::get_num_bytes(copy);
  const void* data = RawDataAccess::get_untyped_data_ptr(copy);
  body_->add(index, {}, type, dims, Place::kInputArena, *memory_.arena->offset_of(data, bytes),
             bytes, 0);
}

// Of numbers: a tensor like it; of strings: their content as bytes.
const NeuropodTensor& RequestWriter::copy_of(uint32_t index, const NeuropodTensor& tensor) {
  for (const auto& [input, copy] : copies_) {
    if (input == index) return *copy;
  }
  std::shared_ptr<NeuropodTensor> copy;
  if (tensor.get_tensor_type() == STRING_TENSOR) {
    const std::vector<std::string_view> strings = RawDataAccess::get_string_views(tensor);
    copy =
        allocate_in(memory_, {static_cast<int64_t>(string_content_bytes(strings))}, UINT8_TENSOR);
    write_string_content(strings, RawDataAccess::get_untyped_data_ptr(*copy));
  } else {
    copy = allocate_in(memory_, tensor.get_dims(), tensor.get_tensor_type());
    std::memcpy(RawDataAccess::get_untyped_data_ptr(*copy),
                RawDataAccess::get_untyped_data_ptr(tensor), RawDataAccess::get_num_bytes(tensor));
    copied_bytes_ += RawDataAccess::get_num_bytes(tensor);
  }
  copies_.emplace_back(index, std::move(copy));
  return *copies_.back().second;
}

std::shared_ptr<NeuropodValue> RequestWriter::value_of(uint32_t record) const {
  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] == nullptr || record-- != 0) continue;
    for (const auto& [input, copy] : copies_) {
      if (input == i) return copy;
    }
    return *inputs_[i];
  }
  return nullptr;
}

std::shared_ptr<NeuropodValue> RequestWriter::holder_of(const void* data, uint64_t bytes) const {
  const auto* begin = static_cast<const char*>(data);
  const auto holds = [&](const NeuropodTensor& tensor) {
    const auto* first = static_cast<const char*>(RawDataAccess::get_untyped_data_ptr(tensor));
    const size_t size = RawDataAccess::get_num_bytes(tensor);
    return begin >= first && bytes <= size && static_cast<size_t>(begin - first) <= size - bytes;
  };
  for (const auto& [input, copy] : copies_) {
    if (holds(*copy)) return copy;
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] != nullptr && holds(*(*inputs_[i])->as_tensor())) return *inputs_[i];
  }
  return nullptr;
}

std::vector<std::shared_ptr<NeuropodValue>> RequestWriter::values() const {
  std::vector<std::shared_ptr<NeuropodValue>> all;
  auto copy = copies_.begin();  // in the order of the inputs
  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] == nullptr) continue;
    const bool copied = copy != copies_.end() && copy->first == i;
    all.push_back(copied ? (copy++)->second : *inputs_[i]);
  }
  if (spill_ != nullptr) all.push_back(spill_);
  return all;
}

}  // namespace neuropod::multiprocess
