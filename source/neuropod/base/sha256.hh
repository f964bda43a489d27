#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

#include "neuropod/base/visibility.hh"

namespace neuropod {

class ReadOnlyFile;

/// Hashes bytes that arrive in pieces. Thread safety: thread-compatible.
class NEUROPOD_EXPORT Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(const void* data, size_t size);

  /// The hash of everything so far, as 64 lowercase hex digits. Ends the computation: call it once.
  std::string finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// Hex SHA-256 of `bytes`.
NEUROPOD_EXPORT std::string sha256_of(std::string_view bytes);

/// Hex SHA-256 of what `stream` still holds. Error(corrupt_package) if it can't be read to its end;
/// an Error that the stream's buffer throws passes through.
NEUROPOD_EXPORT std::string sha256_of_stream(std::istream& stream);

/// Hex SHA-256 of a file. Errors as ReadOnlyFile.
NEUROPOD_EXPORT std::string sha256_of_file(const std::string& path);
NEUROPOD_EXPORT std::string sha256_of_file(const ReadOnlyFile& file);

/// The same for `size` bytes of it from `offset`; Error(corrupt_package) if it holds less.
NEUROPOD_EXPORT std::string sha256_of_file(const ReadOnlyFile& file, uint64_t offset,
                                           uint64_t size);

}  // namespace neuropod
