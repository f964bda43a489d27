#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "neuropod/backends/tensor_allocator.hh"
#include "neuropod/base/visibility.hh"
#include "neuropod/internal/neuropod_tensor.hh"

/// Tensors to and from other libraries of this process without a copy, by the DLPack protocol:
/// https://dmlc.github.io/dlpack/latest/. The structures are those of its C interface, version 1.x,
/// so a pointer to ours may be handed to anything that takes DLManagedTensor or
/// DLManagedTensorVersioned, and the other way round.
namespace neuropod::dlpack {

constexpr int32_t kCpuDevice = 1;
constexpr int32_t kCudaDevice = 2;
constexpr int32_t kCudaHostDevice = 3;   ///< pinned: the CPU can use it
constexpr int32_t kRocmHostDevice = 11;  ///< pinned: the CPU can use it

constexpr uint32_t kMajorVersion = 1;
constexpr uint32_t kMinorVersion = 0;

constexpr uint64_t kReadOnlyFlag = 1;

/// DLDevice.
struct DeviceId {
  int32_t type;
  int32_t index;
};

/// DLDataType. `code`: 0 signed, 1 unsigned, 2 IEEE float, 4 bfloat, 5 complex, 6 bool.
struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

/// DLTensor. `strides` are in elements; null means row-major without gaps.
struct Tensor {
  void* data;
  DeviceId device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

/// DLManagedTensor, in Python the capsule "dltensor". It can't say that its memory is read-only.
struct ManagedTensor {
  Tensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(ManagedTensor* self);
};

/// DLPackVersion.
struct Version {
  uint32_t major;
  uint32_t minor;
};

/// DLManagedTensorVersioned, in Python the capsule "dltensor_versioned".
struct ManagedTensorVersioned {
  Version version;
  void* manager_ctx;
  void (*deleter)(ManagedTensorVersioned* self);
  uint64_t flags;
  Tensor dl_tensor;
};

/// What the receiver of a tensor may do with its memory.
enum class Access { kReadWrite, kReadOnly };

/// Gives `tensor` to another library. The result shares its memory and keeps it alive; whoever
/// receives the result calls its deleter once, from any thread. Error(invalid_argument) for
/// strings, which DLPack doesn't have, and for tensors that aren't on the CPU.
NEUROPOD_EXPORT ManagedTensor* to_dlpack(std::shared_ptr<NeuropodTensor> tensor);

/// The same with a version and, for `kReadOnly`, the flag that asks the receiver not to write.
NEUROPOD_EXPORT ManagedTensorVersioned* to_dlpack_versioned(
    std::shared_ptr<const NeuropodTensor> tensor, Access access);

/// Why `tensor` can't be used in place, as a sentence that names what to copy or convert; empty if
/// it can. It can't if it isn't on the CPU, isn't row-major without gaps, isn't aligned to its
/// element size or has a dtype that Neuropod lacks.
NEUROPOD_EXPORT std::string find_obstacle(const Tensor& tensor);

/// Takes another library's tensor over, in place, through the allocator of the model that is to use
/// it.
///
/// **Ownership**: `managed` belongs to this function, also when it throws; its deleter runs exactly
/// once, when the tensor and every framework are done with the memory.
/// **Read-only memory**: a model that works in place would write to it, so it is refused unless
/// `access` is kReadOnly, by which the caller promises that nothing will write: neither the
/// application nor the model.
/// **Errors**: invalid_argument with find_obstacle()'s reason, for read-only memory, and for
/// another major version of DLPack. Nothing is copied: whoever wants a copy makes it before, and
/// tries again.
NEUROPOD_EXPORT std::shared_ptr<NeuropodTensor> from_dlpack(ManagedTensor* managed,
                                                            NeuropodTensorAllocator& allocator);
NEUROPOD_EXPORT std::shared_ptr<NeuropodTensor> from_dlpack(ManagedTensorVersioned* managed,
                                                            NeuropodTensorAllocator& allocator,
                                                            Access access = Access::kReadWrite);

}  // namespace neuropod::dlpack
