#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstring>

#include "neuropod/backends/worker_memory.hh"

namespace neuropod {
namespace {

// Process-wide, as torch's own allocator is; fixed before the first model is loaded.
WorkerMemory* worker_memory = nullptr;
c10::Allocator* ordinary = nullptr;

// Frees what either gave: torch keeps this function with the data, whoever allocated them.
void free_either(void* data) {
  if (data == nullptr) return;
  if (worker_memory->owns(data)) {
    worker_memory->free(data);
  } else {
    ordinary->raw_deallocate(data);
  }
}

/// torch's allocator in a worker: what it allocates while it runs a call lies where the host can
/// read it, all else (weights, its own threads' memory) where it always did.
class WorkerAllocator : public c10::Allocator {
 public:
  // Of these two, that overrides torch's which its version has: const before 2.3. So neither can
  // say so. NOLINTBEGIN(modernize-use-override)
  c10::DataPtr allocate(size_t bytes) { return allocate_either(bytes); }
  c10::DataPtr allocate(size_t bytes) const { return allocate_either(bytes); }
  // NOLINTEND(modernize-use-override)
  c10::DeleterFnPtr raw_deleter() const override { return &free_either; }
  // Newer versions ask for it.
  // NOLINTNEXTLINE(modernize-use-override)
  void copy_data(void* to, const void* from, std::size_t bytes) const {
    std::memcpy(to, from, bytes);
  }

 private:
  static c10::DataPtr allocate_either(size_t bytes) {
    void* data = bytes == 0 ? nullptr : worker_memory->allocate(bytes);
    if (data != nullptr) return {data, data, &free_either, c10::Device(c10::DeviceType::CPU)};
    return ordinary->allocate(bytes);
  }
};

bool adopt(WorkerMemory& memory) {
  worker_memory = &memory;
  ordinary = c10::GetCPUAllocator();
  static auto* const allocator = new WorkerAllocator;
  c10::SetCPUAllocator(allocator, 255);
  return true;
}

NEUROPOD_REGISTER_PROCESS_MEMORY(NEUROPOD_BACKEND_PLATFORM, adopt)

}  // namespace
}  // namespace neuropod
