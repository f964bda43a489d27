#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace neuropod::internal {

/// Writes little-endian numbers and bytes, and keeps the checksum of all of them (CRC-32 as in zip
/// and PNG). Thread-compatible. Every method: Error(unavailable) if the stream takes no more.
class ChecksumWriter {
 public:
  explicit ChecksumWriter(std::ostream& out) : out_(out) {}

  void write_bytes(const void* data, size_t count);
  void write_bytes(std::string_view bytes) { write_bytes(bytes.data(), bytes.size()); }
  void write_u8(uint8_t value);
  void write_u32(uint32_t value);
  void write_u64(uint64_t value);

  /// The checksum of what was written so far, which isn't part of itself.
  void write_checksum();

 private:
  std::ostream& out_;
  uint32_t crc_ = 0;
};

/// Reads what ChecksumWriter wrote, from a stream that isn't trusted: where a count comes from the
/// stream, memory grows with what was really read. Thread-compatible. Every method:
/// Error(invalid_argument) naming `what` at the end of the stream.
class ChecksumReader {
 public:
  explicit ChecksumReader(std::istream& in) : in_(in) {}

  void read_into(void* data, size_t count, const char* what);
  std::string read_string(uint64_t count, const char* what);
  std::vector<uint64_t> read_words(uint64_t count, const char* what);
  uint8_t read_u8(const char* what);
  uint32_t read_u32(const char* what);
  uint64_t read_u64(const char* what);

  /// Error(invalid_argument) if the next four bytes aren't the checksum of what was read so far.
  void check_checksum();

  /// Refuses, before they are read, bytes that reach past the next `length`; end_limit() refuses a
  /// rest.
  void begin_limit(uint64_t length) { left_ = length; }
  void end_limit();
  uint64_t left() const { return left_; }

  /// True if the stream is known to hold `count` more bytes: it can be asked for its length.
  bool surely_holds(uint64_t count);

 private:
  void take(void* data, size_t count, const char* what);

  std::istream& in_;
  uint32_t crc_ = 0;
  uint64_t left_ = std::numeric_limits<uint64_t>::max();
};

/// As much as is read at once where a count isn't trusted.
constexpr size_t kUntrustedChunk = size_t{1} << 20;

}  // namespace neuropod::internal
