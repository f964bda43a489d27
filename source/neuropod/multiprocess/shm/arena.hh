#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "neuropod/base/owned_descriptor.hh"

namespace neuropod::multiprocess {

/// What an arena for tensors has at least, however little address space there is.
constexpr size_t kLeastArenaBytes = 1 << 20;

/// Memory that two processes share: a memfd, sized once, mapped whole and once by each side. It is
/// sparse: what was never touched costs nothing.
///
/// It is sealed against shrinking, growing and further sealing before anybody else sees it: a
/// peer's ftruncate() would otherwise end this process by SIGBUS.
///
/// **Ownership**: the mapping lives as long as the object. **Thread safety**: thread-safe but for
/// close_descriptor(). **Errors**: out_of_memory (no address space or descriptors, with what was
/// asked for), invalid_argument.
class Arena {
 public:
  /// `name` shows in /proc/PID/maps as "memfd:NAME". `bytes` is rounded up to whole pages. Halves
  /// `bytes` down to `least_bytes` where the system refuses that much address space or file size.
  static std::shared_ptr<Arena> create(const std::string& name, size_t bytes,
                                       size_t least_bytes = 0);

  /// Maps one that a peer made and passed. Error(invalid_argument) unless it is a memfd with those
  /// seals and at least `least_bytes` long.
  static std::shared_ptr<Arena> attach(OwnedDescriptor descriptor, size_t least_bytes = 1);

  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  char* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }

  /// For passing it on; -1 after close_descriptor(), which keeps the mapping.
  int descriptor() const noexcept { return descriptor_.get(); }
  void close_descriptor() noexcept { descriptor_.reset(); }

  /// Where [data, data + bytes) lies in the arena; nothing unless all of it does.
  std::optional<uint64_t> offset_of(const void* data, size_t bytes) const noexcept {
    const auto* begin = static_cast<const char*>(data);
    if (begin < data_ || bytes > size_ || size_t(begin - data_) > size_ - bytes)
      return std::nullopt;
    return uint64_t(begin - data_);
  }

  /// The memory at a peer's `offset`; null unless `bytes` of it lie in the arena.
  char* at(uint64_t offset, uint64_t bytes) const noexcept {
    return bytes > size_ || offset > size_ - bytes ? nullptr : data_ + offset;
  }

  /// Gives the whole pages of a range back to the system; they read as zeros afterwards.
  void give_back(uint64_t offset, uint64_t bytes) noexcept;

 private:
  Arena(OwnedDescriptor descriptor, char* data, size_t size) noexcept;

  OwnedDescriptor descriptor_;
  char* const data_;
  const size_t size_;
};

}  // namespace neuropod::multiprocess
