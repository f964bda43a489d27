#include "neuropod/multiprocess/channel/call_message.hh"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "neuropod/internal/neuropod_tensor.hh"

namespace neuropod::multiprocess {
namespace {

// A body is a Head, what its kind says, then per tensor a Record, its dims, its name if it has one,
// its content if it is inline; last the kept inputs. Every part begins at a multiple of 8.
enum Kind : uint32_t { kRequest = 1, kReply = 2, kError = 3 };
constexpr size_t kMostMessage = 1 << 20;

struct Head {
  uint32_t kind;
  uint32_t first;    // request: requested outputs; error: its code
  uint32_t tensors;  // error: kept inputs
  uint32_t kept;     // reply: kept inputs; error: bytes of the message
};

struct Record {
  uint32_t name;
  uint32_t named_bytes;
  uint8_t type;
  uint8_t place;
  uint16_t unused;
  uint32_t dims;
  uint64_t bytes;
  uint64_t offset;
  uint64_t block;
};

struct Kept {
  uint64_t record;
  uint64_t token;
};

constexpr size_t padded(size_t bytes) { return (bytes + 7) & ~size_t{7}; }

[[noreturn]] void fail(std::string_view problem) {
  throw_error(ErrorCode::kInvalidArgument, fmt::format("a broken message of a call: {}", problem));
}

// Asked of the number: an enumeration must not hold another.
bool is_dtype(uint8_t value) {
  switch (value) {
#define NEUROPOD_IS_DTYPE(enumerator, number, name, cpp_type) case enumerator:
    NEUROPOD_FOR_EACH_DTYPE(NEUROPOD_IS_DTYPE)
#undef NEUROPOD_IS_DTYPE
    return true;
    default:
      return false;
  }
}

}  // namespace

void BodyWriter::put(const void* data, size_t bytes) {
  const size_t at = buffer_.size();
  buffer_.resize(at + padded(bytes));
  if (bytes > 0) std::memcpy(buffer_.data() + at, data, bytes);
}

void BodyWriter::begin(uint32_t kind) {
  buffer_.clear();
  tensors_ = kept_ = 0;
  const Head head{kind, 0, 0, 0};
  put(&head, sizeof head);
}

void BodyWriter::begin_request(const std::vector<uint32_t>& requested_outputs) {
  begin(kRequest);
  const auto count = static_cast<uint32_t>(requested_outputs.size());
  std::memcpy(buffer_.data() + offsetof(Head, first), &count, sizeof count);
  put(requested_outputs.data(), count * sizeof(uint32_t));
}

void BodyWriter::begin_reply() { begin(kReply); }

void BodyWriter::write_error(ErrorCode code, std::string_view message) {
  message = message.substr(0, kMostMessage);
  begin(kError);
  const Head head{kError, static_cast<uint32_t>(code), 0, static_cast<uint32_t>(message.size())};
  std::memcpy(buffer_.data(), &head, sizeof head);
  put(message.data(), message.size());
}

char* BodyWriter::add_record(uint32_t name, std::string_view named, TensorType type,
                             const std::vector<int64_t>& dims, Place place, uint64_t offset,
                             uint64_t bytes, uint64_t block) {
  ++tensors_;
  const Record record{name,
                      static_cast<uint32_t>(named.size()),
                      static_cast<uint8_t>(type),
                      static_cast<uint8_t>(place),
                      0,
                      static_cast<uint32_t>(dims.size()),
                      bytes,
                      offset,
                      block};
  const size_t dim_bytes = dims.size() * sizeof(int64_t);
  const size_t content = place == Place::kInline ? padded(bytes) : 0;
  const size_t at = buffer_.size();
  buffer_.resize(at + sizeof record + dim_bytes + padded(named.size()) + content);
  char* to = buffer_.data() + at;
  std::memcpy(to, &record, sizeof record);
  to += sizeof record;
  if (dim_bytes > 0) std::memcpy(to, dims.data(), dim_bytes);
  to += dim_bytes;
  if (!named.empty()) std::memcpy(to, named.data(), named.size());
  return to + padded(named.size());
}

void BodyWriter::add(uint32_t name, std::string_view named, TensorType type,
                     const std::vector<int64_t>& dims, Place place, uint64_t offset, uint64_t bytes,
                     uint64_t block) {
  add_record(name, named, type, dims, place, offset, bytes, block);
}

void* BodyWriter::add_inline(uint32_t name, std::string_view named, TensorType type,
                             const std::vector<int64_t>& dims, uint64_t bytes) {
  return add_record(name, named, type, dims, Place::kInline, 0, bytes, 0);
}

void BodyWriter::add_kept(uint32_t record, uint64_t token) {
  ++kept_;
  const Kept kept{record, token};
  put(&kept, sizeof kept);
}

std::string_view BodyWriter::finish() {
  Head head{};
  std::memcpy(&head, buffer_.data(), sizeof head);
  if (head.kind == kError) {
    head.tensors = kept_;
  } else {
    head.tensors = tensors_;
    head.kept = kept_;
  }
  std::memcpy(buffer_.data(), &head, sizeof head);
  return {buffer_.data(), buffer_.size()};
}

const void* BodyReader::take(size_t bytes) {
  if (bytes > rest_.size()) fail("it ends early");
  const void* begin = rest_.data();
  rest_.remove_prefix(std::min(padded(bytes), rest_.size()));
  return begin;
}

BodyReader::BodyReader(std::string_view body) : rest_(body) {
  Head head{};
  std::memcpy(&head, take(sizeof head), sizeof head);
  switch (head.kind) {
    case kRequest: {
      if (head.first > kMostTensors) fail("too many requested outputs");
      const void* requested = take(head.first * sizeof(uint32_t));
      requested_.resize(head.first);
      if (head.first > 0) std::memcpy(requested_.data(), requested, head.first * sizeof(uint32_t));
      break;
    }
    case kReply:
      break;
    case kError:
      if (head.first > static_cast<uint32_t>(ErrorCode::kCancelled)) fail("an unknown error code");
      is_error_ = true;
      code_ = static_cast<ErrorCode>(head.first);
      message_ = {static_cast<const char*>(take(head.kept)), head.kept};
      if (head.tensors > rest_.size() / sizeof(Kept)) fail("more kept inputs than it has room for");
      num_kept_ = head.tensors;
      return;
    default:
      fail("of an unknown kind");
  }
  if (head.tensors > kMostTensors || head.tensors * sizeof(Record) > rest_.size()) {
    fail("more tensors than it has room for");
  }
  if (head.kept > head.tensors + kMostTensors || head.kept * sizeof(Kept) > rest_.size()) {
    fail("more kept inputs than it has room for");
  }
  num_tensors_ = head.tensors;
  num_kept_ = head.kept;
}

bool BodyReader::next(TensorRecord* record) {
  if (num_read_ == num_tensors_) return false;
  ++num_read_;
  Record read{};
  std::memcpy(&read, take(sizeof read), sizeof read);
  if (read.dims > kMostDims) fail("a tensor of too many dimensions");
  if (read.place > static_cast<uint8_t>(Place::kInline)) fail("a tensor in an unknown place");
  if (!is_dtype(read.type)) fail("a tensor of an unknown dtype");
  record->name = read.name;
  record->type = static_cast<TensorType>(read.type);
  record->place = static_cast<Place>(read.place);
  record->bytes = read.bytes;
  record->offset = read.offset;
  record->block = read.block;
  const void* dims = take(read.dims * sizeof(int64_t));
  record->dims.resize(read.dims);
  if (read.dims > 0) std::memcpy(record->dims.data(), dims, read.dims * sizeof(int64_t));
  record->named = {static_cast<const char*>(take(read.named_bytes)), read.named_bytes};

  const size_t element = get_bytes_per_element(record->type);
  const uint64_t count = internal::count_elements(record->type, record->dims);
  if (record->type == STRING_TENSOR) {
    if (count >= read.bytes / sizeof(uint64_t)) fail("fewer bytes than its strings need");
  } else {
    if (count * element != read.bytes) fail("a tensor whose bytes don't fit its dimensions");
    // Nothing has more alignment than its size, halved for complex ones; 8 is enough for all.
    if (record->place != Place::kInline && read.offset % std::min<size_t>(element, 8) != 0) {
      fail("a tensor at an address that its dtype can't have");
    }
  }
  record->content = nullptr;
  if (record->place == Place::kInline) record->content = take(read.bytes);
  return true;
}

std::vector<InputKept> BodyReader::kept_inputs() {
  std::vector<InputKept> inputs;
  inputs.reserve(num_kept_);
  for (; num_kept_ > 0; --num_kept_) {
    Kept kept{};
    std::memcpy(&kept, take(sizeof kept), sizeof kept);
    if (kept.record > kMostTensors) fail("a kept input that isn't there");
    inputs.push_back({static_cast<uint32_t>(kept.record), kept.token});
  }
  return inputs;
}

uint64_t string_content_bytes(const std::vector<std::string_view>& strings) noexcept {
  uint64_t bytes = (strings.size() + 1) * sizeof(uint64_t);
  for (const std::string_view text : strings) bytes += text.size();
  return bytes;
}

void write_string_content(const std::vector<std::string_view>& strings, void* to) noexcept {
  char* offsets = static_cast<char*>(to);
  char* bytes = offsets + (strings.size() + 1) * sizeof(uint64_t);
  uint64_t at = 0;
  std::memcpy(offsets, &at, sizeof at);
  for (const std::string_view text : strings) {
    if (!text.empty()) std::memcpy(bytes + at, text.data(), text.size());
    at += text.size();
    offsets += sizeof at;
    std::memcpy(offsets, &at, sizeof at);
  }
}

std::vector<std::string_view> read_string_content(const void* content, uint64_t bytes,
                                                  uint64_t count) {
  if (count >= bytes / sizeof(uint64_t)) fail("fewer bytes than its strings need");
  const auto* offsets = static_cast<const char*>(content);
  const char* text = offsets + (count + 1) * sizeof(uint64_t);
  const uint64_t most = bytes - (count + 1) * sizeof(uint64_t);
  std::vector<std::string_view> strings;
  strings.reserve(count);
  uint64_t begin = 0;
  std::memcpy(&begin, offsets, sizeof begin);
  if (begin != 0) fail("strings that don't begin at 0");
  for (uint64_t i = 1; i <= count; ++i) {
    uint64_t end = 0;
    std::memcpy(&end, offsets + i * sizeof end, sizeof end);
    if (end < begin || end > most) fail("a string outside its tensor");
    strings.emplace_back(text + begin, end - begin);
    begin = end;
  }
  return strings;
}

}  // namespace neuropod::multiprocess
