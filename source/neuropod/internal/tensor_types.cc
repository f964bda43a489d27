#include "neuropod/internal/tensor_types.hh"

#include <bit>
#include <ostream>

namespace neuropod {
namespace {

template <typename T>
constexpr size_t size_of_element() {
  return sizeof(T);
}
template <>
constexpr size_t size_of_element<std::string>() {
  return 0;
}

// The upper bits of `value`, rounded to nearest even by the `shift` lower ones.
constexpr uint32_t shift_right_rounded(uint32_t value, uint32_t shift) {
  const uint32_t half = (1u << (shift - 1)) - 1 + ((value >> shift) & 1);
  return (value + half) >> shift;
}

uint16_t to_binary16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) {  // NaN stays one, with the payload's upper bits
    return static_cast<uint16_t>(sign | 0x7e00 | ((magnitude >> 13) & 0x1ff));
  }
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // rounds to infinity
  if (magnitude < 0x33000000) return static_cast<uint16_t>(sign);            // rounds to zero
  if (magnitude < 0x38800000) {                                              // subnormal result
    const uint32_t shift = 126 - (magnitude >> 23);
    const uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
    return static_cast<uint16_t>(sign | shift_right_rounded(mantissa, shift));
  }
  return static_cast<uint16_t>(sign | shift_right_rounded(magnitude - 0x38000000, 13));
}

float from_binary16(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000 | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>(shift_right_rounded(bits, 16));
}

}  // namespace

float16::float16(float value) : bits(to_binary16(value)) {}
float16::operator float() const { return from_binary16(bits); }
bfloat16::bfloat16(float value) : bits(to_bfloat16(value)) {}
bfloat16::operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

size_t get_bytes_per_element(TensorType type) noexcept {
  switch (type) {
#define NEUROPOD_SIZE(enumerator, value, name, cpp_type) \
  case enumerator:                                       \
    return size_of_element<cpp_type>();
    NEUROPOD_FOR_EACH_DTYPE(NEUROPOD_SIZE)
#undef NEUROPOD_SIZE
  }
  return 0;
}

const char* get_dtype_name(TensorType type) noexcept {
  switch (type) {
#define NEUROPOD_NAME(enumerator, value, name, cpp_type) \
  case enumerator:                                       \
    return name;
    NEUROPOD_FOR_EACH_DTYPE(NEUROPOD_NAME)
#undef NEUROPOD_NAME
  }
  return "unknown dtype";
}

bool get_tensor_type_from_name(std::string_view dtype_name, TensorType* type) noexcept {
#define NEUROPOD_FROM_NAME(enumerator, value, name, cpp_type) \
  if (dtype_name == (name)) {                                 \
    *type = enumerator;                                       \
    return true;                                              \
  }
  NEUROPOD_FOR_EACH_DTYPE(NEUROPOD_FROM_NAME)
#undef NEUROPOD_FROM_NAME
  return false;
}

std::string list_dtype_names() {
  std::string names;
#define NEUROPOD_LIST(enumerator, value, name, cpp_type) names += names.empty() ? name : ", " name;
  NEUROPOD_FOR_EACH_DTYPE(NEUROPOD_LIST)
#undef NEUROPOD_LIST
  return names;
}

std::ostream& operator<<(std::ostream& out, TensorType type) {
  switch (type) {
#define NEUROPOD_PRINT(enumerator, value, name, cpp_type) \
  case enumerator:                                        \
    return out << #enumerator;
    NEUROPOD_FOR_EACH_DTYPE(NEUROPOD_PRINT)
#undef NEUROPOD_PRINT
  }
  return out << "TensorType(" << static_cast<int>(type) << ")";
}

}  // namespace neuropod
