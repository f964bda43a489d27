#include "neuropod/backends/echo/pretend_device.hh"

#include <sys/mman.h>

#include <cstring>

#include <fmt/format.h>

#include "neuropod/base/error.hh"

namespace neuropod::echo {

void* PretendDevice::allocate(size_t bytes, NeuropodDevice device) noexcept {
  if (!has(device)) return host_->allocate(bytes, device);
  void* address = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return nullptr;
  try {
    std::lock_guard lock(mutex_);
    blocks_[static_cast<const char*>(address)] = Block{bytes, std::make_unique<char[]>(bytes)};
  } catch (...) {
    munmap(address, bytes);
    return nullptr;
  }
  return address;
}

void PretendDevice::free(void* data, size_t bytes, NeuropodDevice device) noexcept {
  if (!has(device)) {
    host_->free(data, bytes, device);
    return;
  }
  {
    std::lock_guard lock(mutex_);
    blocks_.erase(static_cast<const char*>(data));
  }
  munmap(data, bytes);
}

void PretendDevice::copy(void* to, NeuropodDevice to_device, const void* from,
                         NeuropodDevice from_device, size_t bytes) {
  if (bytes == 0) return;
  std::memcpy(content_of(to, to_device, bytes), content_of(from, from_device, bytes), bytes);
}

char* PretendDevice::content_of(const void* data, NeuropodDevice device, size_t bytes) {
  const char* address = static_cast<const char*>(data);
  if (device == Device::CPU) return const_cast<char*>(address);
  std::lock_guard lock(mutex_);
  auto block = blocks_.upper_bound(address);
  if (has(device) && block != blocks_.begin()) {
    --block;
    const size_t offset = size_t(address - block->first);
    if (offset + bytes <= block->second.bytes) return block->second.content.get() + offset;
  }
  throw_error(ErrorCode::kInvalidArgument,
              fmt::format("{} bytes at {} aren't memory of device {}", bytes, data, device));
}

// Process-wide: a device belongs to the machine, and tensors on it outlive their model.
std::shared_ptr<PretendDevice> pretend_device() {
  static auto* const instance =
      new std::shared_ptr<PretendDevice>(std::make_shared<PretendDevice>());
  return *instance;
}

}  // namespace neuropod::echo
