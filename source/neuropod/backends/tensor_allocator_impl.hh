#pragma once

// The templates of tensor_allocator.hh, which includes this file. Not to be included by itself.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "neuropod/backends/tensor_allocator.hh"
#include "neuropod/base/error.hh"
#include "neuropod/internal/neuropod_tensor_raw_data_access.hh"

namespace neuropod {
namespace internal {

/// Bytes of a tensor. Error(invalid_argument) for a negative dimension or more than 2^63 - 1 bytes.
NEUROPOD_EXPORT size_t get_checked_num_bytes(const std::vector<int64_t>& dims, TensorType type);

[[noreturn]] NEUROPOD_EXPORT void throw_bad_arange(double start, double end, double step);

/// Error(invalid_argument) unless `data` may hold a tensor of `type` with `bytes` bytes.
NEUROPOD_EXPORT void check_lent_memory(TensorType type, const void* data, size_t bytes);

/// Copies strings element by element; both have the same number.
NEUROPOD_EXPORT void copy_strings(NeuropodTensor& to, const NeuropodTensor& from);

/// Number of elements of arange for floating-point numbers.
NEUROPOD_EXPORT int64_t count_arange(double start, double end, double step);

/// Writes `count` normally distributed numbers.
NEUROPOD_EXPORT void fill_normal(double* values, size_t count, double mean, double stddev);

/// Runs a caller's deleter exactly once, whether a tensor takes it over or its construction fails.
class NEUROPOD_EXPORT LentMemory {
 public:
  /// From here on the deleter will run.
  LentMemory(void* data, const Deleter& deleter);
  /// Runs the deleter unless hand_over() was called or a copy of deleter() has run it.
  ~LentMemory();
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;

  /// For the tensor; calls after the first do nothing until hand_over().
  Deleter deleter() const;
  /// The tensor is made: its one call is what remains.
  void hand_over() noexcept;

 private:
  struct State;
  State* state_;
};

template <typename T>
constexpr bool is_float16_v = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

template <typename T>
constexpr bool is_floating_v = std::is_floating_point_v<T> || is_float16_v<T>;

template <typename T>
double to_double(T value) {
  if constexpr (is_float16_v<T>) {
    return static_cast<double>(static_cast<float>(value));
  } else {
    return static_cast<double>(value);
  }
}

template <typename T>
T from_double(double value) {
  if constexpr (is_float16_v<T>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

/// Number of elements of arange for integers, exact over their whole range.
template <typename T>
int64_t count_arange_exactly(T start, T end, T step) {
  const bool down = step < T(0);
  if (down ? end >= start : end <= start) return 0;
  const uint64_t distance = down ? static_cast<uint64_t>(start) - static_cast<uint64_t>(end)
                                 : static_cast<uint64_t>(end) - static_cast<uint64_t>(start);
  const uint64_t stride =
      down ? uint64_t(0) - static_cast<uint64_t>(step) : static_cast<uint64_t>(step);
  const uint64_t count = (distance - 1) / stride + 1;
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  return static_cast<int64_t>(std::min(count, kMost));
}

/// `TensorImpl<T>(dims, data, deleter, device)` for the C++ type of a numeric `type`; see
/// DefaultTensorAllocator. Error(invalid_argument) for strings and for what is no dtype.
template <template <typename> class TensorImpl>
std::unique_ptr<NeuropodTensor> wrap_numeric(const std::vector<int64_t>& dims, TensorType type,
                                             void* data, Deleter deleter, NeuropodDevice device) {
  switch (type) {
#define NEUROPOD_MAKE(enumerator, value, name, cpp_type)                              \
  case enumerator:                                                                    \
    return std::make_unique<TensorImpl<cpp_type>>(dims, static_cast<cpp_type*>(data), \
                                                  std::move(deleter), device);
    NEUROPOD_FOR_EACH_NUMERIC_DTYPE(NEUROPOD_MAKE)
#undef NEUROPOD_MAKE
    case STRING_TENSOR:
      break;
  }
  throw_unknown_dtype(type);
}

}  // namespace internal

template <typename T>
std::shared_ptr<TypedNeuropodTensor<T>> NeuropodTensorAllocator::full(
    const std::vector<int64_t>& dims, const T& value) {
  auto tensor = allocate_tensor<T>(dims);
  if constexpr (std::is_same_v<T, std::string>) {
    for (size_t i = 0; i < tensor->get_num_elements(); ++i) tensor->set_element(i, value);
  } else {
    std::fill_n(tensor->get_raw_data_ptr(), tensor->get_num_elements(), value);
  }
  return tensor;
}

template <typename T>
std::shared_ptr<TypedNeuropodTensor<T>> NeuropodTensorAllocator::zeros(
    const std::vector<int64_t>& dims) {
  static_assert(!std::is_same_v<T, std::string>, "strings are no numbers; use full()");
  return full<T>(dims, T(0));
}

template <typename T>
std::shared_ptr<TypedNeuropodTensor<T>> NeuropodTensorAllocator::ones(
    const std::vector<int64_t>& dims) {
  static_assert(!std::is_same_v<T, std::string>, "strings are no numbers; use full()");
  return full<T>(dims, T(1));
}

template <typename T>
std::shared_ptr<TypedNeuropodTensor<T>> NeuropodTensorAllocator::arange(T end) {
  return arange<T>(T(0), end, T(1));
}

template <typename T>
std::shared_ptr<TypedNeuropodTensor<T>> NeuropodTensorAllocator::arange(T start, T end, T step) {
  static_assert((std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) || internal::is_float16_v<T>,
                "arange needs real numbers");
  if constexpr (internal::is_floating_v<T>) {
    const double first = internal::to_double(start);
    const double stride = internal::to_double(step);
    const int64_t count = internal::count_arange(first, internal::to_double(end), stride);
    auto tensor = allocate_tensor<T>({count});
    T* data = tensor->get_raw_data_ptr();
    for (int64_t i = 0; i < count; ++i) {
      data[i] = internal::from_double<T>(first + static_cast<double>(i) * stride);
    }
    return tensor;
  } else {
    if (step == T(0)) {
      internal::throw_bad_arange(internal::to_double(start), internal::to_double(end), 0);
    }
    const int64_t count = internal::count_arange_exactly(start, end, step);
    auto tensor = allocate_tensor<T>({count});
    T* data = tensor->get_raw_data_ptr();
    // In unsigned arithmetic, which wraps where the signed one would overflow after the last
    // element.
    auto value = static_cast<uint64_t>(start);
    for (int64_t i = 0; i < count; ++i, value += static_cast<uint64_t>(step)) {
      data[i] = static_cast<T>(value);
    }
    return tensor;
  }
}

template <typename T>
std::shared_ptr<TypedNeuropodTensor<T>> NeuropodTensorAllocator::eye(int64_t rows,
                                                                     int64_t columns) {
  auto tensor = zeros<T>({rows, columns});
  T* data = tensor->get_raw_data_ptr();
  for (int64_t i = 0; i < std::min(rows, columns); ++i) data[i * columns + i] = T(1);
  return tensor;
}

template <typename T>
std::shared_ptr<TypedNeuropodTensor<T>> NeuropodTensorAllocator::randn(
    const std::vector<int64_t>& dims, T mean, T stddev) {
  static_assert(internal::is_floating_v<T>, "randn needs a floating-point type");
  auto tensor = allocate_tensor<T>(dims);
  std::vector<double> values(tensor->get_num_elements());
  internal::fill_normal(values.data(), values.size(), internal::to_double(mean),
                        internal::to_double(stddev));
  std::transform(values.begin(), values.end(), tensor->get_raw_data_ptr(),
                 internal::from_double<T>);
  return tensor;
}

template <template <typename> class TensorImpl>
std::unique_ptr<NeuropodTensor> DefaultTensorAllocator<TensorImpl>::allocate_tensor(
    const std::vector<int64_t>& dims, TensorType type, NeuropodDevice device) {
  const size_t bytes = internal::get_checked_num_bytes(dims, type);
  if (type == STRING_TENSOR) return std::make_unique<TensorImpl<std::string>>(dims);
  const MemoryPool::Block block = pool_->allocate(bytes, device);
  try {
    return internal::wrap_numeric<TensorImpl>(dims, type, block.data, block.release, device);
  } catch (...) {
    block.release(block.data);  // without effect if the constructor has done so
    throw;
  }
}

template <template <typename> class TensorImpl>
std::unique_ptr<NeuropodTensor> DefaultTensorAllocator<TensorImpl>::tensor_from_memory(
    const std::vector<int64_t>& dims, TensorType type, void* data, const Deleter& deleter) {
  internal::LentMemory lent(data, deleter);
  internal::check_lent_memory(type, data, internal::get_checked_num_bytes(dims, type));
  auto tensor = internal::wrap_numeric<TensorImpl>(dims, type, data, lent.deleter(), Device::CPU);
  lent.hand_over();
  return tensor;
}

template <template <typename> class TensorImpl>
std::unique_ptr<NeuropodTensor> DefaultTensorAllocator<TensorImpl>::copy_to_device(
    const NeuropodTensor& tensor, NeuropodDevice device) {
  auto copy = allocate_tensor(tensor.get_dims(), tensor.get_tensor_type(), device);
  if (tensor.get_tensor_type() == STRING_TENSOR) {
    internal::copy_strings(*copy, tensor);
  } else {
    using Raw = internal::RawDataAccess;
    pool_->copy(Raw::get_untyped_data_ptr(*copy), device, Raw::get_untyped_data_ptr(tensor),
                tensor.get_device(), Raw::get_num_bytes(tensor));
  }
  return copy;
}

}  // namespace neuropod
