#include "neuropod/serialization/checked_stream.hh"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <istream>
#include <ostream>

#include "neuropod/base/error.hh"

namespace neuropod::internal {
namespace {

// Numbers are copied as they lie in memory. A big-endian machine needs a byte swap here.
static_assert(std::endian::native == std::endian::little);

// Checksum and copy go chunk by chunk, so that the second finds the bytes in the cache.
constexpr size_t kCacheChunk = size_t{128} << 10;

uint32_t extend_crc(uint32_t crc, const void* data, size_t count) {
  return static_cast<uint32_t>(::crc32_z(crc, static_cast<const Bytef*>(data), count));
}

[[noreturn]] void throw_end_of_stream(const char* what) {
  throw_error(
      ErrorCode::kInvalidArgument,
      fmt::format("can't read the serialized value: the stream ends within {}; was it cut off?",
                  what));
}

}  // namespace

void ChecksumWriter::write_bytes(const void* data, size_t count) {
  const auto* bytes = static_cast<const char*>(data);
  while (count > 0) {
    const size_t chunk = std::min(count, kCacheChunk);
    crc_ = extend_crc(crc_, bytes, chunk);
    out_.write(bytes, static_cast<std::streamsize>(chunk));
    bytes += chunk;
    count -= chunk;
  }
  if (!out_) {
    throw_error(ErrorCode::kUnavailable,
                "can't write the serialized value: the stream takes no more; is the disk full?");
  }
}

void ChecksumWriter::write_u8(uint8_t value) { write_bytes(&value, sizeof(value)); }
void ChecksumWriter::write_u32(uint32_t value) { write_bytes(&value, sizeof(value)); }
void ChecksumWriter::write_u64(uint64_t value) { write_bytes(&value, sizeof(value)); }
void ChecksumWriter::write_checksum() { write_u32(crc_); }

void ChecksumReader::take(void* data, size_t count, const char* what) {
  in_.read(static_cast<char*>(data), static_cast<std::streamsize>(count));
  if (!in_) throw_end_of_stream(what);
}

void ChecksumReader::read_into(void* data, size_t count, const char* what) {
  if (count > left_) {
    throw_error(
        ErrorCode::kInvalidArgument,
        fmt::format("can't read the serialized value: {} is longer than the value that holds it",
                    what));
  }
  left_ -= count;
  auto* bytes = static_cast<char*>(data);
  while (count > 0) {
    const size_t chunk = std::min(count, kCacheChunk);
    take(bytes, chunk, what);
    crc_ = extend_crc(crc_, bytes, chunk);
    bytes += chunk;
    count -= chunk;
  }
}

std::string ChecksumReader::read_string(uint64_t count, const char* what) {
  std::string bytes;
  while (bytes.size() < count) {
    const size_t before = bytes.size();
    const size_t chunk = std::min<uint64_t>(count - before, kUntrustedChunk);
    bytes.resize(before + chunk);
    read_into(bytes.data() + before, chunk, what);
  }
  return bytes;
}

std::vector<uint64_t> ChecksumReader::read_words(uint64_t count, const char* what) {
  constexpr size_t kChunk = kUntrustedChunk / sizeof(uint64_t);
  std::vector<uint64_t> words;
  while (words.size() < count) {
    const size_t before = words.size();
    const size_t chunk = std::min<uint64_t>(count - before, kChunk);
    words.resize(before + chunk);
    read_into(words.data() + before, chunk * sizeof(uint64_t), what);
  }
  return words;
}

uint8_t ChecksumReader::read_u8(const char* what) {
  uint8_t value = 0;
  read_into(&value, sizeof(value), what);
  return value;
}

uint32_t ChecksumReader::read_u32(const char* what) {
  uint32_t value = 0;
  read_into(&value, sizeof(value), what);
  return value;
}

uint64_t ChecksumReader::read_u64(const char* what) {
  uint64_t value = 0;
  read_into(&value, sizeof(value), what);
  return value;
}

void ChecksumReader::check_checksum() {
  uint32_t stored = 0;
  take(&stored, sizeof(stored), "the checksum");
  if (stored != crc_) {
    throw_error(
        ErrorCode::kInvalidArgument,
        fmt::format("can't read the serialized value: its checksum is {:08x}, its content's is "
                    "{:08x}; it was changed after it was written",
                    stored, crc_));
  }
}

void ChecksumReader::end_limit() {
  if (left_ != 0) {
    throw_error(
        ErrorCode::kInvalidArgument,
        fmt::format("can't read the serialized value: it ends {} bytes before its stated length",
                    left_));
  }
  left_ = std::numeric_limits<uint64_t>::max();
}

bool ChecksumReader::surely_holds(uint64_t count) {
  std::streambuf* buffer = in_.rdbuf();
  const std::streamoff here = buffer->pubseekoff(0, std::ios_base::cur, std::ios_base::in);
  if (here < 0) return false;
  const std::streamoff end = buffer->pubseekoff(0, std::ios_base::end, std::ios_base::in);
  const bool returned = buffer->pubseekpos(here, std::ios_base::in) == std::streampos(here);
  return returned && end >= here && static_cast<uint64_t>(end - here) >= count;
}

}  // namespace neuropod::internal
