#include "neuropod/serialization/serialization.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <istream>
#include <new>
#include <sstream>
#include <utility>

#include "neuropod/base/error.hh"
#include "neuropod/internal/neuropod_tensor_raw_data_access.hh"
#include "neuropod/serialization/checked_stream.hh"

namespace neuropod {
namespace {

using internal::ChecksumReader;
using internal::ChecksumWriter;
using internal::RawDataAccess;

// docs/formats/tensor_serialization.md holds the grammar.
constexpr std::string_view kMagic = "NPOD";
constexpr uint8_t kVersion = 1;
enum Kind : uint8_t { kSingleValue = 1, kValueMap = 2 };
constexpr std::string_view kTensorTag = "neuropodtensor";
constexpr size_t kLongestTag = 255;
constexpr uint64_t kLongestName = uint64_t{1} << 20;

const char* name_of(uint8_t kind) { return kind == kSingleValue ? "one value" : "a map of values"; }

[[noreturn]] void throw_unreadable(const std::string& reason) {
  throw_error(ErrorCode::kInvalidArgument, "can't read the serialized value: " + reason);
}

const ValueFormat* find_format(const ValueFormats& formats, std::string_view tag) {
  const auto found = std::find_if(formats.begin(), formats.end(),
                                  [tag](const ValueFormat& format) { return format.tag == tag; });
  return found == formats.end() ? nullptr : &*found;
}

// ---- writing

void write_tensor(ChecksumWriter& out, const NeuropodTensor& tensor) {
  if (tensor.get_device() != Device::CPU) {
    throw_error(ErrorCode::kInvalidArgument,
                fmt::format("a tensor on device {} can't be serialized; call .to(CPU) first",
                            tensor.get_device()));
  }
  const bool is_string = tensor.get_tensor_type() == STRING_TENSOR;
  const std::vector<std::string_view> strings =
      is_string ? RawDataAccess::get_string_views(tensor) : std::vector<std::string_view>();
  uint64_t content = RawDataAccess::get_num_bytes(tensor);
  for (const std::string_view string : strings) content += sizeof(uint64_t) + string.size();

  out.write_u64(1 + 4 + 8 * tensor.get_dims().size() + content);
  out.write_u8(static_cast<uint8_t>(tensor.get_tensor_type()));
  out.write_u32(static_cast<uint32_t>(tensor.get_dims().size()));
  for (const int64_t dim : tensor.get_dims()) out.write_u64(static_cast<uint64_t>(dim));
  if (is_string) {
    for (const std::string_view string : strings) out.write_u64(string.size());
    for (const std::string_view string : strings) out.write_bytes(string);
  } else {
    out.write_bytes(RawDataAccess::get_untyped_data_ptr(tensor),
                    RawDataAccess::get_num_bytes(tensor));
  }
}

void write_value(ChecksumWriter& out, const NeuropodValue& value, const ValueFormats& formats) {
  const std::string tag = value.is_tensor() ? std::string(kTensorTag) : value.get_serialize_tag();
  const ValueFormat* format = value.is_tensor() ? nullptr : find_format(formats, tag);
  if (!value.is_tensor() && (format == nullptr || tag.empty() || tag.size() > kLongestTag)) {
    throw_error(
        ErrorCode::kInvalidArgument,
        fmt::format("no format to serialize a value with the tag '{}' (1 to {} bytes); pass one in "
                    "`formats`",
                    tag, kLongestTag));
  }
  out.write_u8(static_cast<uint8_t>(tag.size()));
  out.write_bytes(tag);
  if (format == nullptr) {
    write_tensor(out, *value.as_tensor());
  } else {
    std::ostringstream payload;
    format->write(payload, value);
    const std::string bytes = payload.str();
    out.write_u64(bytes.size());
    out.write_bytes(bytes);
  }
}

void write_header(ChecksumWriter& out, Kind kind) {
  out.write_bytes(kMagic);
  out.write_u8(kVersion);
  out.write_u8(kind);
}

// ---- reading

std::vector<int64_t> read_dims(ChecksumReader& in) {
  const uint32_t rank = in.read_u32("the rank");
  if (rank > in.left() / sizeof(uint64_t)) {
    throw_unreadable(fmt::format("a rank of {} doesn't fit into its {} bytes", rank, in.left()));
  }
  const std::vector<uint64_t> words = in.read_words(rank, "the shape");
  return {words.begin(), words.end()};
}

// Elements of a stream that can't be asked for its length: read first, allocated afterwards.
std::unique_ptr<NeuropodTensor> read_unknown_length(ChecksumReader& in,
                                                    const std::vector<int64_t>& dims,
                                                    TensorType type,
                                                    NeuropodTensorAllocator& allocator) {
  std::vector<std::string> chunks;
  for (uint64_t left = in.left(); left > 0; left = in.left()) {
    chunks.push_back(in.read_string(std::min<uint64_t>(left, internal::kUntrustedChunk),
                                    "the tensor's elements"));
  }
  auto tensor = allocator.allocate_tensor(dims, type);
  auto* data = static_cast<char*>(RawDataAccess::get_untyped_data_ptr(*tensor));
  for (std::string& chunk : chunks) {
    std::memcpy(data, chunk.data(), chunk.size());
    data += chunk.size();
    std::string().swap(chunk);
  }
  return tensor;
}

std::unique_ptr<NeuropodTensor> read_numbers(ChecksumReader& in, const std::vector<int64_t>& dims,
                                             TensorType type, uint64_t count,
                                             NeuropodTensorAllocator& allocator) {
  const uint64_t bytes = count * get_bytes_per_element(type);
  if (bytes != in.left()) {
    throw_unreadable(fmt::format("its shape needs {} bytes, but {} are there", bytes, in.left()));
  }
  if (bytes > internal::kUntrustedChunk && !in.surely_holds(bytes)) {
    return read_unknown_length(in, dims, type, allocator);
  }
  auto tensor = allocator.allocate_tensor(dims, type);
  in.read_into(RawDataAccess::get_untyped_data_ptr(*tensor), bytes, "the tensor's elements");
  return tensor;
}

std::unique_ptr<NeuropodTensor> read_strings(ChecksumReader& in, const std::vector<int64_t>& dims,
                                             uint64_t count, NeuropodTensorAllocator& allocator) {
  if (count > in.left() / sizeof(uint64_t)) {
    throw_unreadable(fmt::format("{} strings don't fit into its {} bytes", count, in.left()));
  }
  const std::vector<uint64_t> lengths = in.read_words(count, "the strings' lengths");
  uint64_t left = in.left();
  for (const uint64_t length : lengths) {
    if (length > left) throw_unreadable("its strings are longer than it");
    left -= length;
  }
  std::vector<std::string> strings;
  for (const uint64_t length : lengths) strings.push_back(in.read_string(length, "a string"));
  auto tensor = allocator.allocate_tensor(dims, STRING_TENSOR);
  tensor->as_typed_tensor<std::string>()->copy_from(strings);
  return tensor;
}

// Any byte but 0 and 1 in a bool is undefined behaviour for whoever reads it.
void check_bools(const NeuropodTensor& tensor) {
  const auto* bytes =
      static_cast<const unsigned char*>(RawDataAccess::get_untyped_data_ptr(tensor));
  if (std::any_of(bytes, bytes + tensor.get_num_elements(),
                  [](unsigned char b) { return b > 1; })) {
    throw_unreadable("a bool is neither 0 nor 1");
  }
}

std::shared_ptr<NeuropodValue> read_tensor(ChecksumReader& in, NeuropodTensorAllocator& allocator) {
  const auto type = static_cast<TensorType>(in.read_u8("the dtype"));
  if (type != STRING_TENSOR && get_bytes_per_element(type) == 0) {
    throw_unreadable(
        fmt::format("{} is no dtype; known are: {}", static_cast<int>(type), list_dtype_names()));
  }
  const std::vector<int64_t> dims = read_dims(in);
  const uint64_t count = internal::count_elements(type, dims);
  if (type == STRING_TENSOR) return read_strings(in, dims, count, allocator);
  std::unique_ptr<NeuropodTensor> tensor = read_numbers(in, dims, type, count, allocator);
  if (type == BOOL_TENSOR) check_bools(*tensor);
  return tensor;
}

std::shared_ptr<NeuropodValue> read_value(ChecksumReader& in, NeuropodTensorAllocator& allocator,
                                          const ValueFormats& formats) {
  const std::string tag = in.read_string(in.read_u8("the tag"), "the tag");
  const ValueFormat* format = tag == kTensorTag ? nullptr : find_format(formats, tag);
  if (tag != kTensorTag && format == nullptr) {
    throw_unreadable(
        fmt::format("it holds a value with the tag '{}', for which there is no format; pass "
                    "one in `formats`",
                    tag));
  }
  const uint64_t length = in.read_u64("the value's length");
  in.begin_limit(length);
  std::shared_ptr<NeuropodValue> value;
  if (format == nullptr) {
    value = read_tensor(in, allocator);
  } else {
    std::istringstream payload(in.read_string(length, "the value"));
    value = format->read(payload, allocator);
    if (!value) throw_unreadable(fmt::format("the format of '{}' made no value of it", tag));
  }
  in.end_limit();
  return value;
}

void read_header(ChecksumReader& in, Kind expected) {
  if (in.read_string(kMagic.size(), "the header") != kMagic) {
    throw_unreadable(fmt::format("it doesn't begin with '{}', so something else wrote it", kMagic));
  }
  const uint8_t version = in.read_u8("the header");
  if (version != kVersion) {
    throw_unreadable(fmt::format("it has version {} of the format, this library reads version {}",
                                 version, kVersion));
  }
  const uint8_t kind = in.read_u8("the header");
  if (kind != kSingleValue && kind != kValueMap) {
    throw_unreadable(fmt::format("{} is no kind of content", kind));
  }
  if (kind != expected) {
    throw_unreadable(
        fmt::format("it holds {}, but {} was asked for", name_of(kind), name_of(expected)));
  }
}

NeuropodValueMap read_map(ChecksumReader& in, NeuropodTensorAllocator& allocator,
                          const ValueFormats& formats) {
  NeuropodValueMap values;
  std::string previous;
  const uint64_t count = in.read_u64("the number of values");
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t length = in.read_u32("a name");
    if (length > kLongestName)
      throw_unreadable(fmt::format("a name of {} bytes is too long", length));
    std::string name = in.read_string(length, "a name");
    if (i > 0 && name <= previous) {
      throw_unreadable(fmt::format(
          "the name '{}' comes after '{}'; names are sorted and occur once", name, previous));
    }
    previous = name;
    values.emplace(std::move(name), read_value(in, allocator, formats));
  }
  return values;
}

// What streams and containers throw by themselves becomes an Error.
template <typename Read>
auto with_errors(Read read) {
  try {
    return read();
  } catch (const std::ios_base::failure& failure) {
    throw_unreadable(fmt::format("the stream failed or ended: {}", failure.what()));
  } catch (const std::bad_alloc&) {
    throw_error(ErrorCode::kOutOfMemory, "no memory for the serialized value");
  }
}

}  // namespace

void serialize(std::ostream& out, const NeuropodValue& value, const ValueFormats& formats) {
  ChecksumWriter writer(out);
  write_header(writer, kSingleValue);
  write_value(writer, value, formats);
  writer.write_checksum();
}

void serialize(std::ostream& out, const NeuropodValueMap& values, const ValueFormats& formats) {
  std::vector<const NeuropodValueMap::value_type*> sorted;
  for (const auto& entry : values) {
    if (!entry.second || entry.first.size() > kLongestName) {
      throw_error(
          ErrorCode::kInvalidArgument,
          fmt::format("can't serialize '{:.100}': {}", entry.first,
                      entry.second ? "its name is longer than a MiB" : "it is a null pointer"));
    }
    sorted.push_back(&entry);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* a, const auto* b) { return a->first < b->first; });
  ChecksumWriter writer(out);
  write_header(writer, kValueMap);
  writer.write_u64(sorted.size());
  for (const auto* entry : sorted) {
    writer.write_u32(static_cast<uint32_t>(entry->first.size()));
    writer.write_bytes(entry->first);
    write_value(writer, *entry->second, formats);
  }
  writer.write_checksum();
}

template <>
std::shared_ptr<NeuropodValue> deserialize<std::shared_ptr<NeuropodValue>>(
    std::istream& in, NeuropodTensorAllocator& allocator, const ValueFormats& formats) {
  return with_errors([&] {
    ChecksumReader reader(in);
    read_header(reader, kSingleValue);
    std::shared_ptr<NeuropodValue> value = read_value(reader, allocator, formats);
    reader.check_checksum();
    return value;
  });
}

template <>
NeuropodValueMap deserialize<NeuropodValueMap>(std::istream& in, NeuropodTensorAllocator& allocator,
                                               const ValueFormats& formats) {
  return with_errors([&] {
    ChecksumReader reader(in);
    read_header(reader, kValueMap);
    NeuropodValueMap values = read_map(reader, allocator, formats);
    reader.check_checksum();
    return values;
  });
}

}  // namespace neuropod
