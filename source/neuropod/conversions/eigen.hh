#pragma once

#include <Eigen/Core>
#include <string>
#include <type_traits>

#include "neuropod/base/error.hh"
#include "neuropod/internal/neuropod_tensor.hh"

namespace neuropod {

template <typename T>
using EigenMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

namespace internal {

// Rows and columns of a tensor of rank ≤ 2: a scalar is 1 × 1, rank 1 is a column.
template <typename Map, typename T>
Map map_as_matrix(T* data, const std::vector<int64_t>& dims) {
  if (dims.size() > 2) {
    throw_error(ErrorCode::kInvalidArgument,
                "as_eigen() takes tensors of rank 2 at most, not of rank " +
                    std::to_string(dims.size()) + "; use view() to see it as a matrix");
  }
  return Map(data, dims.empty() ? 1 : dims[0], dims.size() < 2 ? 1 : dims[1]);
}

}  // namespace internal

/// A tensor as an Eigen matrix (row-major) over the same memory, which must not outlive the tensor.
/// Rank 1 is a column vector, rank 0 is 1 × 1; Error(invalid_argument) for more than rank 2.
template <typename T>
Eigen::Map<EigenMatrix<T>> as_eigen(TypedNeuropodTensor<T>& tensor) {
  static_assert(!std::is_same_v<T, std::string>, "Eigen has no matrices of strings");
  return internal::map_as_matrix<Eigen::Map<EigenMatrix<T>>>(tensor.get_raw_data_ptr(),
                                                             tensor.get_dims());
}
template <typename T>
Eigen::Map<const EigenMatrix<T>> as_eigen(const TypedNeuropodTensor<T>& tensor) {
  static_assert(!std::is_same_v<T, std::string>, "Eigen has no matrices of strings");
  return internal::map_as_matrix<Eigen::Map<const EigenMatrix<T>>>(tensor.get_raw_data_ptr(),
                                                                   tensor.get_dims());
}

/// The same for an untyped tensor; Error(invalid_argument) naming both dtypes if it doesn't hold
/// `T`.
template <typename T>
Eigen::Map<EigenMatrix<T>> as_eigen(NeuropodTensor& tensor) {
  return as_eigen(*tensor.as_typed_tensor<T>());
}
template <typename T>
Eigen::Map<const EigenMatrix<T>> as_eigen(const NeuropodTensor& tensor) {
  return as_eigen(*tensor.as_typed_tensor<T>());
}

}  // namespace neuropod
