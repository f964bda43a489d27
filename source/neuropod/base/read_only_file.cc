#include "neuropod/base/read_only_file.hh"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "neuropod/base/error.hh"

namespace neuropod {
namespace {

// The kernel reads at most this much at once; asking for more only hides the limit.
constexpr size_t kMaxRead = size_t{1} << 30;

[[noreturn]] void throw_system_error(const std::string& what, const std::string& path, int number) {
  ErrorCode code = ErrorCode::kUnavailable;
  if (number == ENOENT || number == ENOTDIR) code = ErrorCode::kNotFound;
  if (number == EACCES || number == EPERM || number == ELOOP || number == ENAMETOOLONG) {
    code = ErrorCode::kInvalidArgument;
  }
  throw_error(
      code, fmt::format("cannot {} '{}': {}", what, path, std::system_category().message(number)));
}

}  // namespace

ReadOnlyFile::ReadOnlyFile(std::string path) : path_(std::move(path)) {
  // O_NONBLOCK: opening a named pipe must not wait for its other end before it is refused.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) throw_system_error("open", path_, errno);
  struct stat status{};
  if (::fstat(descriptor_, &status) != 0) {
    const int number = errno;
    ::close(descriptor_);
    throw_system_error("read the size of", path_, number);
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw_error(ErrorCode::kInvalidArgument,
                fmt::format("'{}' is {}, expected a regular file", path_,
                            S_ISDIR(status.st_mode) ? "a directory" : "a device or pipe"));
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

ReadOnlyFile::~ReadOnlyFile() { ::close(descriptor_); }

size_t ReadOnlyFile::read_at(uint64_t offset, void* to, size_t count) const {
  size_t done = 0;
  while (done < count) {
    const ssize_t got =
        ::pread(descriptor_, static_cast<char*>(to) + done, std::min(count - done, kMaxRead),
                static_cast<off_t>(offset + done));
    if (got == 0) break;
    if (got > 0) {
      done += static_cast<size_t>(got);
    } else if (errno != EINTR) {
      throw_system_error("read", path_, errno);
    }
  }
  return done;
}

}  // namespace neuropod
