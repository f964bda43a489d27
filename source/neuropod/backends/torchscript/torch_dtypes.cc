#include "torch_dtypes.hh"

#include <string>

#include "neuropod/base/error.hh"
#include "torch_versions.hh"

namespace neuropod {
namespace {

struct DtypePair {
  TensorType type;
  at::ScalarType scalar_type;
};

constexpr DtypePair kDtypes[] = {
    {FLOAT_TENSOR, at::ScalarType::Float},
    {DOUBLE_TENSOR, at::ScalarType::Double},
    {INT8_TENSOR, at::ScalarType::Char},
    {INT16_TENSOR, at::ScalarType::Short},
    {INT32_TENSOR, at::ScalarType::Int},
    {INT64_TENSOR, at::ScalarType::Long},
    {UINT8_TENSOR, at::ScalarType::Byte},
#if NEUROPOD_TORCH_HAS_WIDE_UNSIGNED
    {UINT16_TENSOR, at::ScalarType::UInt16},
    {UINT32_TENSOR, at::ScalarType::UInt32},
    {UINT64_TENSOR, at::ScalarType::UInt64},
#endif
    {BOOL_TENSOR, at::ScalarType::Bool},
    {FLOAT16_TENSOR, at::ScalarType::Half},
    {BFLOAT16_TENSOR, at::ScalarType::BFloat16},
    {COMPLEX64_TENSOR, at::ScalarType::ComplexFloat},
    {COMPLEX128_TENSOR, at::ScalarType::ComplexDouble},
};

}  // namespace

at::ScalarType to_scalar_type(TensorType type) {
  for (const DtypePair& pair : kDtypes) {
    if (pair.type == type) return pair.scalar_type;
  }
  std::string message = "torch " NEUROPOD_BACKEND_FRAMEWORK_VERSION " has no tensors of dtype '";
  message.append(get_dtype_name(type)).append("'");
#if !NEUROPOD_TORCH_HAS_WIDE_UNSIGNED
  if (type != STRING_TENSOR) message += "; torch has them since 2.3";
#endif
  throw_error(ErrorCode::kInvalidArgument, message);
}

bool from_scalar_type(at::ScalarType scalar_type, TensorType* type) noexcept {
  for (const DtypePair& pair : kDtypes) {
    if (pair.scalar_type == scalar_type) {
      *type = pair.type;
      return true;
    }
  }
  return false;
}

}  // namespace neuropod
