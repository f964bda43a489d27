#include "neuropod/conversions/dlpack.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "neuropod/base/error.hh"
#include "neuropod/internal/neuropod_tensor_raw_data_access.hh"

namespace neuropod::dlpack {
namespace {

using internal::RawDataAccess;

enum TypeCode : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
};

// DLPack's code of a C++ element type; the bits follow from its size.
template <typename T>
constexpr uint8_t code_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return kBool;
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return kBfloat;
  } else if constexpr (std::is_same_v<T, float16> || std::is_floating_point_v<T>) {
    return kFloat;
  } else if constexpr (!std::is_integral_v<T>) {
    return kComplex;
  } else {
    return std::is_signed_v<T> ? kInt : kUInt;
  }
}

std::optional<DataType> to_data_type(TensorType type) {
  switch (type) {
#define NEUROPOD_TO_DLPACK(enumerator, value, name, cpp_type) \
  case enumerator:                                            \
    return DataType{code_of<cpp_type>(), sizeof(cpp_type) * 8, 1};
    NEUROPOD_FOR_EACH_NUMERIC_DTYPE(NEUROPOD_TO_DLPACK)
#undef NEUROPOD_TO_DLPACK
    case STRING_TENSOR:
      break;
  }
  return std::nullopt;
}

std::optional<TensorType> to_tensor_type(const DataType& dtype) {
  if (dtype.lanes != 1) return std::nullopt;
#define NEUROPOD_FROM_DLPACK(enumerator, value, name, cpp_type)                  \
  if (dtype.code == code_of<cpp_type>() && dtype.bits == sizeof(cpp_type) * 8) { \
    return enumerator;                                                           \
  }
  NEUROPOD_FOR_EACH_NUMERIC_DTYPE(NEUROPOD_FROM_DLPACK)
#undef NEUROPOD_FROM_DLPACK
  return std::nullopt;
}

// What an exported tensor consists of. The structure comes first, its manager_ctx points back here.
template <typename Managed>
struct Exported {
  Managed managed{};
  std::shared_ptr<const NeuropodTensor> tensor;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
};

template <typename Managed>
Managed* export_tensor(std::shared_ptr<const NeuropodTensor> tensor) {
  const std::optional<DataType> dtype = to_data_type(tensor->get_tensor_type());
  if (!dtype) {
    throw_error(ErrorCode::kInvalidArgument,
                "a string tensor can't be given away by DLPack, which has numbers only; use "
                "get_data_as_vector()");
  }
  if (tensor->get_device() != Device::CPU) {
    throw_error(
        ErrorCode::kInvalidArgument,
        fmt::format("a tensor on device {} can't be given away by DLPack; call .to(CPU) first",
                    tensor->get_device()));
  }
  auto exported = std::make_unique<Exported<Managed>>();
  exported->shape = tensor->get_dims();
  exported->strides = tensor->get_strides();
  exported->managed.manager_ctx = exported.get();
  exported->managed.deleter = [](Managed* self) {
    const std::unique_ptr<Exported<Managed>> freed(
        static_cast<Exported<Managed>*>(self->manager_ctx));
  };
  Tensor& described = exported->managed.dl_tensor;
  // The interface has no const pointer; the read-only flag stands for it.
  described.data = const_cast<void*>(RawDataAccess::get_untyped_data_ptr(*tensor));
  described.device = {kCpuDevice, 0};
  described.ndim = static_cast<int32_t>(exported->shape.size());
  described.dtype = *dtype;
  described.shape = exported->shape.data();
  described.strides = exported->strides.data();
  exported->tensor = std::move(tensor);
  return &exported.release()->managed;
}

template <typename Managed>
void run_managed_deleter(Managed* managed) {
  if (managed->deleter != nullptr) managed->deleter(managed);
}

template <typename Managed>
using Owned = std::unique_ptr<Managed, void (*)(Managed*)>;

bool is_row_major(const Tensor& tensor) {
  if (tensor.strides == nullptr) return true;
  int64_t expected = 1;
  bool dense = true;
  for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
    if (tensor.shape[i] == 0) return true;  // no elements: strides mean nothing
    if (tensor.shape[i] == 1) continue;
    dense = dense && tensor.strides[i] == expected;
    if (__builtin_mul_overflow(expected, tensor.shape[i], &expected)) return false;
  }
  return dense;
}

bool is_cpu_accessible(const DeviceId& device) {
  return device.type == kCpuDevice || device.type == kCudaHostDevice ||
         device.type == kRocmHostDevice;
}

char* first_element(const Tensor& tensor) {
  return tensor.data == nullptr ? nullptr : static_cast<char*>(tensor.data) + tensor.byte_offset;
}

size_t alignment_of(TensorType type) {
  switch (type) {
#define NEUROPOD_ALIGNMENT(enumerator, value, name, cpp_type) \
  case enumerator:                                            \
    return alignof(cpp_type);
    NEUROPOD_FOR_EACH_DTYPE(NEUROPOD_ALIGNMENT)
#undef NEUROPOD_ALIGNMENT
  }
  return 1;
}

template <typename Managed>
std::shared_ptr<NeuropodTensor> import_tensor(Owned<Managed> managed,
                                              NeuropodTensorAllocator& allocator) {
  const Tensor& tensor = managed->dl_tensor;
  const std::string obstacle = find_obstacle(tensor);
  if (!obstacle.empty()) throw_error(ErrorCode::kInvalidArgument, obstacle);
  const std::vector<int64_t> dims(tensor.shape, tensor.shape + tensor.ndim);
  void* data = first_element(tensor);
  const Deleter deleter = [owned = managed.get()](void*) { run_managed_deleter(owned); };
  const TensorType type = *to_tensor_type(tensor.dtype);
  (void)managed.release();
  return allocator.tensor_from_memory(dims, type, data, deleter);
}

}  // namespace

ManagedTensor* to_dlpack(std::shared_ptr<NeuropodTensor> tensor) {
  return export_tensor<ManagedTensor>(std::move(tensor));
}

ManagedTensorVersioned* to_dlpack_versioned(std::shared_ptr<const NeuropodTensor> tensor,
                                            Access access) {
  auto* managed = export_tensor<ManagedTensorVersioned>(std::move(tensor));
  managed->version = {kMajorVersion, kMinorVersion};
  managed->flags = access == Access::kReadOnly ? kReadOnlyFlag : 0;
  return managed;
}

std::string find_obstacle(const Tensor& tensor) {
  if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr)) {
    return fmt::format("the DLPack tensor is malformed: ndim is {}, shape {} given", tensor.ndim,
                       tensor.shape == nullptr ? "isn't" : "is");
  }
  const std::vector<int64_t> dims(tensor.shape, tensor.shape + tensor.ndim);
  const std::optional<TensorType> type = to_tensor_type(tensor.dtype);
  if (!type) {
    return fmt::format(
        "the DLPack tensor's dtype (code {}, {} bits, {} lanes) is none of: {}; convert it "
        "first",
        tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes, list_dtype_names());
  }
  if (!is_cpu_accessible(tensor.device)) {
    return fmt::format(
        "the DLPack tensor is on device type {}, index {}; it must be on the CPU (type "
        "{}): copy it there first",
        tensor.device.type, tensor.device.index, kCpuDevice);
  }
  if (!is_row_major(tensor)) {
    return fmt::format(
        "the DLPack tensor of shape [{}] has the strides [{}], which aren't row-major "
        "without gaps: make a contiguous copy first",
        fmt::join(dims, ", "), fmt::join(tensor.strides, tensor.strides + tensor.ndim, ", "));
  }
  if (reinterpret_cast<uintptr_t>(first_element(tensor)) % alignment_of(*type) != 0) {
    return fmt::format("the DLPack tensor's memory isn't aligned to its dtype {}: copy it first",
                       get_dtype_name(*type));
  }
  return {};
}

std::shared_ptr<NeuropodTensor> from_dlpack(ManagedTensor* managed,
                                            NeuropodTensorAllocator& allocator) {
  return import_tensor(Owned<ManagedTensor>(managed, run_managed_deleter<ManagedTensor>),
                       allocator);
}

std::shared_ptr<NeuropodTensor> from_dlpack(ManagedTensorVersioned* managed,
                                            NeuropodTensorAllocator& allocator, Access access) {
  Owned<ManagedTensorVersioned> owned(managed, run_managed_deleter<ManagedTensorVersioned>);
  // Of another major version only the version and the deleter may be touched.
  if (managed->version.major != kMajorVersion) {
    throw_error(
        ErrorCode::kInvalidArgument,
        fmt::format("the tensor comes by DLPack {}.{}; this is {}.x: ask its library for that "
                    "version (max_version)",
                    managed->version.major, managed->version.minor, kMajorVersion));
  }
  if ((managed->flags & kReadOnlyFlag) != 0 && access != Access::kReadOnly) {
    throw_error(
        ErrorCode::kInvalidArgument,
        "the DLPack tensor's memory is read-only, and a model may write to its inputs: copy it, or "
        "import it with Access::kReadOnly if nothing will write to it");
  }
  return import_tensor(std::move(owned), allocator);
}

}  // namespace neuropod::dlpack
