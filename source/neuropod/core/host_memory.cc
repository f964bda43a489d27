#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "neuropod/base/error.hh"
#include "neuropod/core/memory_pool.hh"

namespace neuropod {
namespace {

constexpr size_t kAlignment = 64;

// From here on blocks are mappings of their own: freeing one gives it back to the system at once,
// which malloc promises for no block.
constexpr size_t kMappedFrom = size_t{1} << 20;

class HostMemory final : public DeviceMemory {
 public:
  bool has_device(NeuropodDevice device) const noexcept override { return device == Device::CPU; }

  void* allocate(size_t bytes, NeuropodDevice /*device*/) noexcept override {
    if (bytes >= kMappedFrom) {
      void* data =
          ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      return data == MAP_FAILED ? nullptr : data;
    }
    void* data = nullptr;
    return ::posix_memalign(&data, kAlignment, bytes) == 0 ? data : nullptr;
  }

  void free(void* data, size_t bytes, NeuropodDevice /*device*/) noexcept override {
    if (bytes >= kMappedFrom) {
      ::munmap(data, bytes);
    } else {
      std::free(data);
    }
  }

  void copy(void* to, NeuropodDevice to_device, const void* from, NeuropodDevice from_device,
            size_t bytes) override {
    if (to_device != Device::CPU || from_device != Device::CPU) {
      throw_error(
          ErrorCode::kInvalidArgument,
          fmt::format("can't copy from device {} to device {}: this memory is the CPU's ({}) only",
                      from_device, to_device, Device::CPU));
    }
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
};

}  // namespace

DeviceMemory::~DeviceMemory() = default;

bool DeviceMemory::has_device(NeuropodDevice /*device*/) const noexcept { return true; }

std::shared_ptr<DeviceMemory> host_memory() { return std::make_shared<HostMemory>(); }

}  // namespace neuropod
