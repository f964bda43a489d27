#include "neuropod/backends/echo/echo_operations.hh"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "neuropod/base/error.hh"

namespace neuropod::echo {
namespace {

// Calls `function` with the tensor's element type, of those that can be computed with.
template <typename Function>
void with_number_type(const NeuropodTensor& tensor, const char* operation, Function&& function) {
  switch (tensor.get_tensor_type()) {
#define NEUROPOD_ECHO_CASE(cpp_type, enumerator) \
  case enumerator:                               \
    function(cpp_type{});                        \
    return;
    FOR_EACH_TYPE_MAPPING_EXCEPT_STRING(NEUROPOD_ECHO_CASE)
#undef NEUROPOD_ECHO_CASE
    default:
      throw_error(ErrorCode::kModelError, fmt::format("echo can't {} tensors of {}", operation,
                                                      get_dtype_name(tensor.get_tensor_type())));
  }
}

void require_equal(const NeuropodTensor& a, const NeuropodTensor& b, const char* operation) {
  if (a.get_tensor_type() == b.get_tensor_type() && a.get_dims() == b.get_dims()) return;
  throw_error(ErrorCode::kModelError,
              fmt::format("echo can't {} {} ({}) and {} ({})", operation,
                          get_dtype_name(a.get_tensor_type()), fmt::join(a.get_dims(), ", "),
                          get_dtype_name(b.get_tensor_type()), fmt::join(b.get_dims(), ", ")));
}

}  // namespace

std::shared_ptr<NeuropodTensor> add(NeuropodTensorAllocator& allocator, const NeuropodTensor& a,
                                    const NeuropodTensor& b) {
  require_equal(a, b, "add");
  std::shared_ptr<NeuropodTensor> result;
  with_number_type(a, "add", [&](auto zero) {
    using T = decltype(zero);
    auto sum = allocator.allocate_tensor<T>(a.get_dims());
    const T* left = a.as_typed_tensor<T>()->get_raw_data_ptr();
    const T* right = b.as_typed_tensor<T>()->get_raw_data_ptr();
    T* to = sum->get_raw_data_ptr();
    for (size_t i = 0; i < sum->get_num_elements(); ++i) to[i] = T(left[i] + right[i]);
    result = sum;
  });
  return result;
}

std::shared_ptr<NeuropodTensor> scale(NeuropodTensorAllocator& allocator,
                                      const NeuropodTensor& tensor, double factor) {
  std::shared_ptr<NeuropodTensor> result;
  with_number_type(tensor, "scale", [&](auto zero) {
    using T = decltype(zero);
    auto scaled = allocator.allocate_tensor<T>(tensor.get_dims());
    const T* from = tensor.as_typed_tensor<T>()->get_raw_data_ptr();
    T* to = scaled->get_raw_data_ptr();
    for (size_t i = 0; i < scaled->get_num_elements(); ++i) to[i] = T(double(from[i]) * factor);
    result = scaled;
  });
  return result;
}

void increment(NeuropodTensor& tensor) {
  with_number_type(tensor, "increment", [&](auto zero) {
    using T = decltype(zero);
    T* data = tensor.as_typed_tensor<T>()->get_raw_data_ptr();
    for (size_t i = 0; i < tensor.get_num_elements(); ++i) data[i] = T(data[i] + 1);
  });
}

std::shared_ptr<NeuropodTensor> transpose(NeuropodTensorAllocator& allocator,
                                          const NeuropodTensor& tensor) {
  if (tensor.get_dims().size() != 2) {
    throw_error(ErrorCode::kModelError,
                fmt::format("echo can't transpose rank {}", tensor.get_dims().size()));
  }
  const int64_t rows = tensor.get_dims()[0];
  const int64_t columns = tensor.get_dims()[1];
  std::shared_ptr<NeuropodTensor> result;
  with_number_type(tensor, "transpose", [&](auto zero) {
    using T = decltype(zero);
    auto transposed = allocator.allocate_tensor<T>({columns, rows});
    const T* from = tensor.as_typed_tensor<T>()->get_raw_data_ptr();
    T* to = transposed->get_raw_data_ptr();
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        to[column * rows + row] = from[row * columns + column];
      }
    }
    result = transposed;
  });
  return result;
}

std::shared_ptr<NeuropodTensor> join(NeuropodTensorAllocator& allocator,
                                     const std::vector<const NeuropodTensor*>& tensors,
                                     const std::string& separator) {
  auto joined = allocator.allocate_tensor<std::string>(tensors.front()->get_dims());
  for (const NeuropodTensor* tensor : tensors) require_equal(*joined, *tensor, "join");
  std::string text;
  for (size_t i = 0; i < joined->get_num_elements(); ++i) {
    text.clear();
    for (const NeuropodTensor* tensor : tensors) {
      if (tensor != tensors.front()) text += separator;
      text += tensor->as_typed_tensor<std::string>()->get_element(i);
    }
    joined->set_element(i, text);
  }
  return joined;
}

}  // namespace neuropod::echo
