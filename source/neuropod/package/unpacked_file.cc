#include "neuropod/package/unpacked_file.hh"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "neuropod/base/error.hh"

namespace neuropod {

namespace fs = std::filesystem;

UnpackedFile::UnpackedFile(std::string path, bool executable) : path_(std::move(path)) {
  std::error_code error;
  fs::create_directories(fs::path(path_).parent_path(), error);
  if (error) fail(error.value());
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                       executable ? 0700 : 0600);
  if (descriptor_ < 0) fail(errno);
}

UnpackedFile::~UnpackedFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(path_.c_str());
}

void UnpackedFile::write(const char* data, size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(descriptor_, data, size);
    if (written < 0 && errno != EINTR) fail(errno);
    if (written <= 0) continue;
    data += written;
    size -= static_cast<size_t>(written);
  }
}

void UnpackedFile::finish() {
  if (::close(std::exchange(descriptor_, -1)) != 0) {
    const int number = errno;
    ::unlink(path_.c_str());
    fail(number);
  }
}

void UnpackedFile::fail(int number) const {
  throw_error(ErrorCode::kUnavailable,
              fmt::format("cannot unpack into '{}': {}; TMPDIR says where packages are unpacked",
                          path_, std::system_category().message(number)));
}

}  // namespace neuropod
