#include "scalar_values.hh"

#include <limits>
#include <sstream>
#include <type_traits>

#include "neuropod/base/error.hh"
#include "neuropod/internal/neuropod_tensor_raw_data_access.hh"

namespace neuropod {
namespace {

constexpr double kTwoTo63 = 9223372036854775808.0;

template <typename T>
ScalarValue to_scalar_value(const T& element) {
  if constexpr (std::is_same_v<T, bool>) {
    return element;
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return element;
  } else if constexpr (std::is_integral_v<T>) {
    return int64_t(element);
  } else if constexpr (std::is_floating_point_v<T>) {
    return double(element);
  } else if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
    return double(float(element));
  } else {
    throw_error(ErrorCode::kSpecMismatch, "a complex number is no int, float or bool");
  }
}

}  // namespace

ScalarValue read_scalar(const NeuropodTensor& tensor, size_t index) {
  const void* data = internal::RawDataAccess::get_untyped_data_ptr(tensor);
  switch (tensor.get_tensor_type()) {
#define NEUROPOD_READ(enumerator, value, name, cpp_type) \
  case enumerator:                                       \
    return to_scalar_value(static_cast<const cpp_type*>(data)[index]);
    NEUROPOD_FOR_EACH_NUMERIC_DTYPE(NEUROPOD_READ)
#undef NEUROPOD_READ
    case STRING_TENSOR:
      break;
  }
  throw_error(ErrorCode::kSpecMismatch, "a string is no int, float or bool");
}

bool convert_exactly(const ScalarValue& value, int64_t* result) {
  if (const auto* number = std::get_if<double>(&value)) {
    if (!(*number >= -kTwoTo63 && *number < kTwoTo63)) return false;
    *result = static_cast<int64_t>(*number);
    return static_cast<double>(*result) == *number;
  }
  if (const auto* number = std::get_if<uint64_t>(&value)) {
    *result = static_cast<int64_t>(*number);
    return *result >= 0;
  }
  if (const auto* number = std::get_if<int64_t>(&value)) {
    *result = *number;
  } else {
    *result = std::get<bool>(value);
  }
  return true;
}

bool convert_exactly(const ScalarValue& value, double* result) {
  if (const auto* number = std::get_if<double>(&value)) {
    *result = *number;
    return true;
  }
  if (const auto* number = std::get_if<uint64_t>(&value)) {
    *result = static_cast<double>(*number);
    return *result < 2 * kTwoTo63 && static_cast<uint64_t>(*result) == *number;
  }
  if (const auto* number = std::get_if<int64_t>(&value)) {
    *result = static_cast<double>(*number);
    return *result < kTwoTo63 && static_cast<int64_t>(*result) == *number;
  }
  *result = std::get<bool>(value) ? 1 : 0;
  return true;
}

bool convert_exactly(const ScalarValue& value, bool* result) {
  double number = 0;
  if (!convert_exactly(value, &number)) return false;
  *result = number == 1;
  return number == 0 || number == 1;
}

std::string to_string(const ScalarValue& value) {
  std::ostringstream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  std::visit([&text](auto number) { text << std::boolalpha << number; }, value);
  return text.str();
}

}  // namespace neuropod
