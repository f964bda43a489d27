#include "torch_device.hh"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <exception>
#include <limits>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "neuropod/base/error.hh"
#include "torch_versions.hh"

namespace neuropod {
namespace {

// Memory of torch's own allocators, kept as byte tensors: that works for every build of torch
// without CUDA's headers. GPU paths of this file are compiled and reviewed, not run: no GPU was at
// hand.
class TorchDeviceMemory : public DeviceMemory {
 public:
  bool has_device(NeuropodDevice device) const noexcept override {
    try {
      return torch_has_device(device);
    } catch (const std::exception&) {
      return false;  // CUDA is there and fails
    }
  }

  void* allocate(size_t bytes, NeuropodDevice device) noexcept override {
    const auto options = at::TensorOptions().dtype(at::kByte);
    if (device != Device::CPU) return make_block(bytes, options.device(to_torch_device(device)));
    // The system may not let more be pinned. Copies from other memory are slower, and as right.
    void* pinned = make_block(bytes, options.pinned_memory(true));
    return pinned != nullptr ? pinned : make_block(bytes, options);
  }

  void free(void* data, size_t, NeuropodDevice) noexcept override {
    at::Tensor block;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = blocks_.find(data); found != blocks_.end()) {
      block = std::move(found->second);
      blocks_.erase(found);
    }
  }

  void copy(void* to, NeuropodDevice to_device, const void* from, NeuropodDevice from_device,
            size_t bytes) override {
    view(to, bytes, to_device).copy_(view(const_cast<void*>(from), bytes, from_device));
  }

 private:
  void* make_block(size_t bytes, const at::TensorOptions& options) noexcept {
    try {
      at::Tensor block = at::empty({int64_t(bytes)}, options);
      void* data = torch_versions::mutable_data(block);
      const std::lock_guard<std::mutex> lock(mutex_);
      blocks_.emplace(data, std::move(block));
      return data;
    } catch (const std::exception&) {
      return nullptr;
    }
  }

  static at::Tensor view(void* data, size_t bytes, NeuropodDevice device) {
    if (!torch_has_device(device)) {
      throw_error(ErrorCode::kInvalidArgument,
                  "torch finds no GPU " + std::to_string(device) + " to copy a tensor to or from");
    }
    const c10::Device torch_device = to_torch_device(device);
    return at::for_blob(data, {int64_t(bytes)})
        .deleter([](void*) {})
        .options(at::TensorOptions().dtype(at::kByte).device(torch_device))
        .target_device(torch_device)
        .make_tensor();
  }

  std::mutex mutex_;
  std::unordered_map<void*, at::Tensor> blocks_;
};

}  // namespace

bool torch_has_device(NeuropodDevice device) {
  if (device == Device::CPU) return true;
  if (device < 0 || device > std::numeric_limits<c10::DeviceIndex>::max()) return false;
  return at::hasCUDA() && device < torch_versions::gpu_count(at::detail::getCUDAHooks());
}

c10::Device to_torch_device(NeuropodDevice device) {
  if (device == Device::CPU) return c10::Device(c10::DeviceType::CPU);
  return c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device));
}

NeuropodDevice from_torch_device(const c10::Device& device) {
  if (device.is_cpu()) return Device::CPU;
  return device.has_index() ? NeuropodDevice(device.index()) : Device::GPU0;
}

void wait_for_device(const c10::Device& device) {
  if (device.is_cpu()) return;
  c10::impl::VirtualGuardImpl(device.type()).getStream(device).synchronize();
}

std::shared_ptr<MemoryPool> make_torch_pool(const RuntimeOptions& options) {
  const NeuropodDevice device = options.visible_device;
  if (device == Device::CPU || !torch_has_device(device)) return MemoryPool::create();
  return MemoryPool::create(std::make_shared<TorchDeviceMemory>());
}

}  // namespace neuropod
