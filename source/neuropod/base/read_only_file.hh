#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "neuropod/base/visibility.hh"

namespace neuropod {

/// A regular file opened for reading, by an owned descriptor that no child process inherits. What
/// is at the path later doesn't matter: reads go to the file that was opened.
///
/// **Thread safety**: immutable; any number of threads may read at once.
class NEUROPOD_EXPORT ReadOnlyFile {
 public:
  /// Error(not_found) if there is nothing at `path`, Error(invalid_argument) if it isn't a regular
  /// file or may not be read, Error(unavailable) for any other trouble of the system.
  explicit ReadOnlyFile(std::string path);
  ~ReadOnlyFile();
  ReadOnlyFile(const ReadOnlyFile&) = delete;
  ReadOnlyFile& operator=(const ReadOnlyFile&) = delete;

  const std::string& path() const noexcept { return path_; }

  /// Bytes when it was opened.
  uint64_t size() const noexcept { return size_; }

  /// Reads up to `count` bytes from `offset` and returns how many there were; fewer than `count`
  /// only at the end of the file. Error(unavailable) if the system can't read.
  size_t read_at(uint64_t offset, void* to, size_t count) const;

 private:
  const std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

}  // namespace neuropod
