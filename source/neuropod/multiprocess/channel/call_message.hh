#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "neuropod/base/error.hh"
#include "neuropod/internal/tensor_types.hh"

namespace neuropod::multiprocess {

/// What a request and a reply say, and their bytes: docs/formats/worker_channel.md, "Bodies".
/// Numbers are native. Decoding works on a private copy and checks everything it returns but what
/// only the caller can: that offsets lie in the arena and names exist.

/// Where a tensor's bytes are.
enum class Place : uint8_t {
  kInputArena,   ///< at `offset`
  kOutputArena,  ///< at `offset`
  kInline,       ///< in the body itself
};

/// A tensor in a body. The content of strings is (count + 1) × u64 offsets, the first 0, then the
/// bytes of all: string i is [offsets[i], offsets[i + 1]) of them.
struct TensorRecord {
  uint32_t name = 0;       ///< index in the input or output spec, or kNamed
  std::string_view named;  ///< the name, if `name` is kNamed: outputs that no spec knows
  TensorType type = FLOAT_TENSOR;
  Place place = Place::kInline;
  std::vector<int64_t> dims;
  uint64_t bytes = 0;             ///< of the content; equal to the product for numbers (checked)
  uint64_t offset = 0;            ///< in its arena
  uint64_t block = 0;             ///< of kOutputArena: what to hand to release_output()
  const void* content = nullptr;  ///< of kInline
};
constexpr uint32_t kNamed = ~uint32_t{0};
constexpr uint32_t kMostTensors = 1 << 20;
constexpr uint32_t kMostDims = 1 << 10;

/// An input that the model still refers to when its call has ended. The host must leave the memory
/// alone until the worker gives `token` back (ChannelLayout::released_inputs).
struct InputKept {
  uint32_t record = 0;  ///< index among the request's tensors
  uint64_t token = 0;
};

/// Writes a body: first into memory of its own, whose capacity is kept from call to call.
class BodyWriter {
 public:
  /// Begins a request: tensors follow by add().
  void begin_request(const std::vector<uint32_t>& requested_outputs);
  /// Begins a successful reply: tensors and kept inputs follow.
  void begin_reply();
  /// Begins a failed reply: kept inputs may follow. A message longer than 1 MiB is cut.
  void write_error(ErrorCode code, std::string_view message);

  /// Adds a tensor whose content is elsewhere.
  void add(uint32_t name, std::string_view named, TensorType type, const std::vector<int64_t>& dims,
           Place place, uint64_t offset, uint64_t bytes, uint64_t block);
  /// Adds a tensor with its content. Returns where to write `bytes`; valid until the next call.
  void* add_inline(uint32_t name, std::string_view named, TensorType type,
                   const std::vector<int64_t>& dims, uint64_t bytes);
  void add_kept(uint32_t record, uint64_t token);

  /// Ends the body.
  std::string_view finish();
  /// What finish() would return now, in bytes.
  size_t size() const noexcept { return buffer_.size(); }

 private:
  void begin(uint32_t kind);
  void put(const void* data, size_t bytes);
  char* add_record(uint32_t name, std::string_view named, TensorType type,
                   const std::vector<int64_t>& dims, Place place, uint64_t offset, uint64_t bytes,
                   uint64_t block);

  std::vector<char> buffer_;
  uint32_t tensors_ = 0;
  uint32_t kept_ = 0;
};

/// Reads a body. The views and `content` of its records point into `body`, which the caller has
/// copied out of shared memory and keeps. Error(invalid_argument) saying what is wrong with it;
/// nothing a peer writes makes it read outside the body or allocate more than a small multiple of
/// its size.
class BodyReader {
 public:
  explicit BodyReader(std::string_view body);

  bool is_error() const noexcept { return is_error_; }
  ErrorCode error_code() const noexcept { return code_; }
  std::string_view error_message() const noexcept { return message_; }

  const std::vector<uint32_t>& requested_outputs() const noexcept { return requested_; }
  /// Reused between next() calls.
  size_t num_tensors() const noexcept { return num_tensors_; }
  /// Reads the next tensor into `record`, reusing its memory; false after the last.
  bool next(TensorRecord* record);
  /// After the last tensor.
  std::vector<InputKept> kept_inputs();

 private:
  const void* take(size_t bytes);
  template <typename T>
  T number();

  std::string_view rest_;
  bool is_error_ = false;
  ErrorCode code_ = ErrorCode::kModelError;
  std::string_view message_;
  std::vector<uint32_t> requested_;
  uint32_t num_tensors_ = 0;
  uint32_t num_read_ = 0;
  uint32_t num_kept_ = 0;
};

/// Bytes that `strings` take as a tensor's content.
uint64_t string_content_bytes(const std::vector<std::string_view>& strings) noexcept;
void write_string_content(const std::vector<std::string_view>& strings, void* to) noexcept;
/// Views into `content`, of which `bytes` may be read. Error(invalid_argument) if it isn't `count`
/// strings. Reads each offset once, so `content` may be shared memory.
std::vector<std::string_view> read_string_content(const void* content, uint64_t bytes,
                                                  uint64_t count);

}  // namespace neuropod::multiprocess
