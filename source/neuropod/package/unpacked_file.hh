#pragma once

#include <cstddef>
#include <string>

namespace neuropod {

/// A file of a package being written into a private folder; what isn't finished is removed.
/// **Errors**: Error(unavailable) naming the path and what TMPDIR is for.
class UnpackedFile {
 public:
  /// Makes the folders it needs, and the file, which mustn't exist.
  UnpackedFile(std::string path, bool executable);
  ~UnpackedFile();
  UnpackedFile(const UnpackedFile&) = delete;
  UnpackedFile& operator=(const UnpackedFile&) = delete;

  void write(const char* data, size_t size);

  /// Nothing may be written afterwards.
  void finish();

 private:
  [[noreturn]] void fail(int number) const;

  const std::string path_;
  int descriptor_ = -1;
};

}  // namespace neuropod
