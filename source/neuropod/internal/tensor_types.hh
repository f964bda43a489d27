#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include "neuropod/base/visibility.hh"

namespace neuropod {

/// IEEE 754 binary16, as bits. Converts exactly to float; from float it rounds to nearest even.
struct NEUROPOD_EXPORT float16 {
  uint16_t bits = 0;
  float16() = default;
  explicit float16(float value);
  explicit operator float() const;
};

/// The upper half of an IEEE 754 binary32, as bits. Converts exactly to float; from float it rounds
/// to nearest even.
struct NEUROPOD_EXPORT bfloat16 {
  uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(float value);
  explicit operator float() const;
};

inline bool operator==(float16 a, float16 b) { return float(a) == float(b); }
inline bool operator!=(float16 a, float16 b) { return !(a == b); }
inline bool operator==(bfloat16 a, bfloat16 b) { return float(a) == float(b); }
inline bool operator!=(bfloat16 a, bfloat16 b) { return !(a == b); }

/// The one table of element types: X(enumerator, value, name in packages, C++ type).
/// A new type is one line here; names, sizes, typed tensors, numpy and serialization follow from
/// it. Values 0 to 10 are those existing applications and serialized tensors use; they never
/// change.
#define NEUROPOD_FOR_EACH_NUMERIC_DTYPE(X)                  \
  X(FLOAT_TENSOR, 0, "float32", float)                      \
  X(DOUBLE_TENSOR, 1, "float64", double)                    \
  X(INT8_TENSOR, 3, "int8", int8_t)                         \
  X(INT16_TENSOR, 4, "int16", int16_t)                      \
  X(INT32_TENSOR, 5, "int32", int32_t)                      \
  X(INT64_TENSOR, 6, "int64", int64_t)                      \
  X(UINT8_TENSOR, 7, "uint8", uint8_t)                      \
  X(UINT16_TENSOR, 8, "uint16", uint16_t)                   \
  X(UINT32_TENSOR, 9, "uint32", uint32_t)                   \
  X(UINT64_TENSOR, 10, "uint64", uint64_t)                  \
  X(BOOL_TENSOR, 11, "bool", bool)                          \
  X(FLOAT16_TENSOR, 12, "float16", ::neuropod::float16)     \
  X(BFLOAT16_TENSOR, 13, "bfloat16", ::neuropod::bfloat16)  \
  X(COMPLEX64_TENSOR, 14, "complex64", std::complex<float>) \
  X(COMPLEX128_TENSOR, 15, "complex128", std::complex<double>)

#define NEUROPOD_FOR_EACH_DTYPE(X) \
  NEUROPOD_FOR_EACH_NUMERIC_DTYPE(X) X(STRING_TENSOR, 2, "string", std::string)

/// Element type of a tensor.
enum TensorType {
#define NEUROPOD_ENUMERATOR(enumerator, value, name, cpp_type) enumerator = value,
  NEUROPOD_FOR_EACH_DTYPE(NEUROPOD_ENUMERATOR)
#undef NEUROPOD_ENUMERATOR
};

/// Calls FN(cpp_type, enumerator) for every element type.
#define FOR_EACH_TYPE_MAPPING_EXCEPT_STRING(FN) \
  FN(float, FLOAT_TENSOR)                       \
  FN(double, DOUBLE_TENSOR)                     \
  FN(int8_t, INT8_TENSOR)                       \
  FN(int16_t, INT16_TENSOR)                     \
  FN(int32_t, INT32_TENSOR)                     \
  FN(int64_t, INT64_TENSOR)                     \
  FN(uint8_t, UINT8_TENSOR)                     \
  FN(uint16_t, UINT16_TENSOR)                   \
  FN(uint32_t, UINT32_TENSOR)                   \
  FN(uint64_t, UINT64_TENSOR)
#define FOR_EACH_TYPE_MAPPING_INCLUDING_STRING(FN) \
  FOR_EACH_TYPE_MAPPING_EXCEPT_STRING(FN)          \
  FN(std::string, STRING_TENSOR)

/// The enumerator of a C++ element type. Only the types of the table compile.
template <typename T>
constexpr TensorType get_tensor_type_from_cpp();

#define NEUROPOD_TYPE_OF(enumerator, value, name, cpp_type)   \
  template <>                                                 \
  constexpr TensorType get_tensor_type_from_cpp<cpp_type>() { \
    return enumerator;                                        \
  }
NEUROPOD_FOR_EACH_DTYPE(NEUROPOD_TYPE_OF)
#undef NEUROPOD_TYPE_OF

/// Bytes of one element; 0 for strings.
NEUROPOD_EXPORT size_t get_bytes_per_element(TensorType type) noexcept;

/// The name used in packages, e.g. "float32".
NEUROPOD_EXPORT const char* get_dtype_name(TensorType type) noexcept;

/// The type of a package's dtype name. False, and `*type` unchanged, for a name that isn't one.
NEUROPOD_EXPORT bool get_tensor_type_from_name(std::string_view name, TensorType* type) noexcept;

/// The names of all dtypes, comma separated, for messages.
NEUROPOD_EXPORT std::string list_dtype_names();

/// Prints the enumerator's name, e.g. "FLOAT_TENSOR".
NEUROPOD_EXPORT std::ostream& operator<<(std::ostream& out, TensorType type);

}  // namespace neuropod
