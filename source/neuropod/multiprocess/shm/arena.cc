#include "neuropod/multiprocess/shm/arena.hh"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "neuropod/base/error.hh"

namespace neuropod::multiprocess {
namespace {

// 4 KiB on most machines, up to 64 on others.
size_t page_bytes() {
  static const auto bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

size_t whole_pages(size_t bytes) {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

// The longest file that this process may make; ftruncate() beyond it raises SIGXFSZ.
size_t longest_file() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return limit.rlim_cur / page_bytes() * page_bytes();
}

char* map(int descriptor, size_t bytes) {
  void* data =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (data == MAP_FAILED) return nullptr;
  // A core file isn't the place for gigabytes of tensors.
  ::madvise(data, bytes, MADV_DONTDUMP);
  return static_cast<char*>(data);
}

}  // namespace

Arena::Arena(OwnedDescriptor descriptor, char* data, size_t size) noexcept
    : descriptor_(std::move(descriptor)), data_(data), size_(size) {}

Arena::~Arena() { ::munmap(data_, size_); }

std::shared_ptr<Arena> Arena::create(const std::string& name, size_t bytes, size_t least_bytes) {
  const size_t least = whole_pages(std::max<size_t>(least_bytes == 0 ? bytes : least_bytes, 1));
  size_t size = std::max(whole_pages(bytes), least);
  OwnedDescriptor descriptor(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!descriptor) {
    throw_error(ErrorCode::kUnavailable,
                fmt::format("can't make shared memory '{}': {}; raise the limit of open files "
                            "(ulimit -n) or close some",
                            name, std::strerror(errno)));
  }
  int failure = 0;
  for (;; size = std::max(size / 2 / page_bytes() * page_bytes(), least)) {
    if (size > longest_file()) {
      failure = EFBIG;
    } else if (::ftruncate(descriptor.get(), static_cast<off_t>(size)) != 0) {
      failure = errno;
    } else if (char* data = map(descriptor.get(), size)) {
      if (::fcntl(descriptor.get(), F_ADD_SEALS, kSeals) != 0) {
        failure = errno;
        ::munmap(data, size);
        break;
      }
      return std::shared_ptr<Arena>(new Arena(std::move(descriptor), data, size));
    } else {
      failure = errno;
    }
    if (size == least) break;
  }
  throw_error(
      ErrorCode::kOutOfMemory,
      fmt::format("can't make {} bytes of shared memory '{}': {}; the limits of address space "
                  "(ulimit -v) and of file size (ulimit -f) must allow it",
                  size, name, std::strerror(failure)));
}

std::shared_ptr<Arena> Arena::attach(OwnedDescriptor descriptor, size_t least_bytes) {
  struct stat status{};
  const int seals = ::fcntl(descriptor.get(), F_GET_SEALS);
  if (seals < 0 || ::fstat(descriptor.get(), &status) != 0) {
    throw_error(ErrorCode::kInvalidArgument,
                "the descriptor for shared memory that the peer sent is no memfd");
  }
  if ((seals & kSeals) != kSeals) {
    throw_error(ErrorCode::kInvalidArgument,
                "the shared memory that the peer sent could be shrunk under us: it isn't sealed");
  }
  const auto size = static_cast<size_t>(status.st_size);
  if (size < std::max<size_t>(least_bytes, 1)) {
    throw_error(ErrorCode::kInvalidArgument,
                fmt::format("the shared memory that the peer sent has {} bytes, {} are needed",
                            size, least_bytes));
  }
  char* data = map(descriptor.get(), size);
  if (data == nullptr) {
    throw_error(ErrorCode::kOutOfMemory,
                fmt::format("can't map {} bytes of shared memory: {}", size, std::strerror(errno)));
  }
  return std::shared_ptr<Arena>(new Arena(std::move(descriptor), data, size));
}

void Arena::give_back(uint64_t offset, uint64_t bytes) noexcept {
  const uint64_t page = page_bytes();
  const uint64_t first = (offset + page - 1) / page * page;
  const uint64_t last = std::min<uint64_t>(offset + bytes, size_) / page * page;
  if (first < last) ::madvise(data_ + first, last - first, MADV_REMOVE);
}

}  // namespace neuropod::multiprocess
