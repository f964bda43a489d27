#pragma once

#include <c10/core/ScalarType.h>

#include "neuropod/internal/tensor_types.hh"

namespace neuropod {

/// torch's name for a dtype. Error(invalid_argument) for strings, which torch keeps in lists.
at::ScalarType to_scalar_type(TensorType type);

/// Our name for torch's dtype. False, and `*type` unchanged, for one we don't carry (quantized
/// types, float8, complex32, …).
bool from_scalar_type(at::ScalarType scalar_type, TensorType* type) noexcept;

}  // namespace neuropod
