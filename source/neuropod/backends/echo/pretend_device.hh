#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "neuropod/core/memory_pool.hh"

namespace neuropod::echo {

/// Memory of a device that isn't there: GPU0 and GPU1. What is allocated on it has an address, but
/// the program can't touch it, as with a real device: reading it is a segmentation fault. Only
/// copy() moves bytes in and out.
///
/// **Ownership**: shared by all models of the plug-in; its content lives until it is freed.
/// **Thread safety**: thread-safe.
class PretendDevice : public DeviceMemory {
 public:
  /// True for the devices that it pretends.
  static bool has(NeuropodDevice device) noexcept {
    return device == Device::GPU0 || device == Device::GPU1;
  }

  void* allocate(size_t bytes, NeuropodDevice device) noexcept override;
  void free(void* data, size_t bytes, NeuropodDevice device) noexcept override;
  void copy(void* to, NeuropodDevice to_device, const void* from, NeuropodDevice from_device,
            size_t bytes) override;

 private:
  struct Block {
    size_t bytes;
    std::unique_ptr<char[]> content;
  };

  /// Where the bytes behind an address really are.
  char* content_of(const void* data, NeuropodDevice device, size_t bytes);

  const std::shared_ptr<DeviceMemory> host_ = host_memory();
  std::mutex mutex_;
  std::map<const char*, Block> blocks_;  // by address; guarded by mutex_
};

/// The plug-in's device: one per process, as devices are.
std::shared_ptr<PretendDevice> pretend_device();

}  // namespace neuropod::echo
