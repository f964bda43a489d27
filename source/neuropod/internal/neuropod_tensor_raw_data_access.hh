#pragma once

#include <cstddef>

#include "neuropod/base/visibility.hh"
#include "neuropod/internal/neuropod_tensor.hh"

namespace neuropod::internal {

/// Untyped access to a tensor's memory, for backends, serialization and bindings, which move bytes
/// and don't care about dtypes. Applications use TypedNeuropodTensor.
class NEUROPOD_EXPORT RawDataAccess {
 public:
  /// The first byte, on whatever device the tensor is; null for string tensors.
  static void* get_untyped_data_ptr(NeuropodTensor& tensor) noexcept;
  static const void* get_untyped_data_ptr(const NeuropodTensor& tensor) noexcept;

  /// num_elements × bytes per element; 0 for strings.
  static size_t get_num_bytes(const NeuropodTensor& tensor) noexcept;

  /// The elements of a string tensor in order, as views into it. Error(invalid_argument) otherwise.
  static std::vector<std::string_view> get_string_views(const NeuropodTensor& tensor);
};

}  // namespace neuropod::internal
