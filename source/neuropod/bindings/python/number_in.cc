#include "neuropod/bindings/python/number_in.hh"

#include <nanobind/nanobind.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace neuropod::python {
namespace {

namespace nb = nanobind;

constexpr const char* kNoNumber = "is not a number that can be";
constexpr const char* kNotWhole = "is not a whole number, so it can't be";
constexpr const char* kOutOfRange = "is out of the range of";
constexpr const char* kInexact = "can't be represented exactly as";
constexpr const char* kOverflow = "is too large for";
constexpr const char* kUnderflow = "is too close to 0 for";
constexpr const char* kComplex = "is complex, so it can't be";

/// `value` as a Python int, float or complex; invalid if it is no number.
nb::object plain_number(PyObject* value) {
  if (PyFloat_Check(value) || PyLong_Check(value) || PyComplex_Check(value))
    return nb::borrow(value);
  nb::object plain;
  if (PyArray_IsScalar(value, Generic) ||
      (PyArray_Check(value) && PyArray_NDIM(reinterpret_cast<PyArrayObject*>(value)) == 0)) {
    plain = nb::steal(PyObject_CallMethod(value, "item", nullptr));
  } else if (PyIndex_Check(value)) {
    plain = nb::steal(PyNumber_Index(value));
  }
  if (!plain.is_valid()) {
    PyErr_Clear();
    return plain;
  }
  PyObject* const number = plain.ptr();
  return PyFloat_Check(number) || PyLong_Check(number) || PyComplex_Check(number) ? plain
                                                                                  : nb::object();
}

template <typename T>
const char* integer_from_float(double number, T* out) {
  if (std::trunc(number) != number) return kNotWhole;  // NaN too
  const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (number >= end || number < (std::is_signed_v<T> ? -end : 0.0)) return kOutOfRange;
  *out = static_cast<T>(number);
  return nullptr;
}

template <typename T>
const char* integer_from_long(PyObject* number, T* out) {
  if constexpr (std::is_signed_v<T>) {
    int overflow = 0;
    const long long wide = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow || wide < std::numeric_limits<T>::min() || wide > std::numeric_limits<T>::max()) {
      return kOutOfRange;
    }
    *out = static_cast<T>(wide);
  } else {
    const unsigned long long wide = PyLong_AsUnsignedLongLong(number);
    if (wide == static_cast<unsigned long long>(-1) && PyErr_Occurred()) {
      PyErr_Clear();
      return kOutOfRange;
    }
    if (wide > std::numeric_limits<T>::max()) return kOutOfRange;
    *out = static_cast<T>(wide);
  }
  return nullptr;
}

template <typename T>
const char* integer_from_python(PyObject* value, T* out) {
  const nb::object number = plain_number(value);
  if (!number.is_valid()) return kNoNumber;
  if (PyLong_Check(number.ptr())) return integer_from_long(number.ptr(), out);
  if (PyFloat_Check(number.ptr())) return integer_from_float(PyFloat_AS_DOUBLE(number.ptr()), out);
  return kComplex;
}

/// Rounds to odd, so that rounding the result once more, to a narrower type, rounds as if it was
/// once.
float to_float_for_rounding(double number) {
  float rounded = static_cast<float>(number);
  if (!std::isfinite(rounded) || static_cast<double>(rounded) == number) return rounded;
  if (std::fabs(static_cast<double>(rounded)) > std::fabs(number))
    rounded = std::nextafterf(rounded, 0.0f);
  uint32_t bits;
  std::memcpy(&bits, &rounded, sizeof(bits));
  bits |= 1;
  std::memcpy(&rounded, &bits, sizeof(bits));
  return rounded;
}

void assign(double number, double* out) { *out = number; }
void assign(double number, float* out) { *out = static_cast<float>(number); }
void assign(double number, float16* out) { *out = float16(to_float_for_rounding(number)); }
void assign(double number, bfloat16* out) { *out = bfloat16(to_float_for_rounding(number)); }

template <typename T>
double as_double(T value) {
  return static_cast<double>(
      static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(value));
}

template <typename T>
const char* floating_from_double(double number, T* out) {
  assign(number, out);
  if (std::isfinite(number) && !std::isfinite(as_double(*out))) return kOverflow;
  if (number != 0 && as_double(*out) == 0) return kUnderflow;
  return nullptr;
}

template <typename T>
const char* floating_from_long(PyObject* number, T* out) {
  const double nearest = PyLong_AsDouble(number);
  if (nearest == -1.0 && PyErr_Occurred()) {
    PyErr_Clear();
    return kOverflow;
  }
  if (std::fabs(nearest) >= 9007199254740992.0) {  // 2^53: whole numbers below are all doubles
    const nb::object back = nb::steal(PyLong_FromDouble(nearest));
    if (PyObject_RichCompareBool(back.ptr(), number, Py_EQ) != 1) return kInexact;
  }
  if (const char* reason = floating_from_double(nearest, out)) return reason;
  return as_double(*out) == nearest ? nullptr : kInexact;
}

template <typename T>
const char* floating_from_number(PyObject* number, T* out) {
  if (PyFloat_Check(number)) return floating_from_double(PyFloat_AS_DOUBLE(number), out);
  if (PyLong_Check(number)) return floating_from_long(number, out);
  return kComplex;
}

template <typename T>
const char* floating_from_python(PyObject* value, T* out) {
  const nb::object number = plain_number(value);
  return number.is_valid() ? floating_from_number(number.ptr(), out) : kNoNumber;
}

template <typename T>
const char* complex_from_python(PyObject* value, std::complex<T>* out) {
  const nb::object number = plain_number(value);
  if (!number.is_valid()) return kNoNumber;
  T parts[2] = {0, 0};
  if (PyComplex_Check(number.ptr())) {
    const Py_complex given = PyComplex_AsCComplex(number.ptr());
    if (const char* reason = floating_from_double(given.real, &parts[0])) return reason;
    if (const char* reason = floating_from_double(given.imag, &parts[1])) return reason;
  } else if (const char* reason = floating_from_number(number.ptr(), &parts[0])) {
    return reason;
  }
  *out = {parts[0], parts[1]};
  return nullptr;
}

}  // namespace

const char* number_from_python(PyObject* value, bool* out) {
  uint8_t number = 0;
  if (const char* reason = integer_from_python(value, &number)) return reason;
  if (number > 1) return kOutOfRange;
  *out = number == 1;
  return nullptr;
}

const char* number_from_python(PyObject* value, int8_t* out) {
  return integer_from_python(value, out);
}
const char* number_from_python(PyObject* value, int16_t* out) {
  return integer_from_python(value, out);
}
const char* number_from_python(PyObject* value, int32_t* out) {
  return integer_from_python(value, out);
}
const char* number_from_python(PyObject* value, int64_t* out) {
  return integer_from_python(value, out);
}
const char* number_from_python(PyObject* value, uint8_t* out) {
  return integer_from_python(value, out);
}
const char* number_from_python(PyObject* value, uint16_t* out) {
  return integer_from_python(value, out);
}
const char* number_from_python(PyObject* value, uint32_t* out) {
  return integer_from_python(value, out);
}
const char* number_from_python(PyObject* value, uint64_t* out) {
  return integer_from_python(value, out);
}
const char* number_from_python(PyObject* value, float16* out) {
  return floating_from_python(value, out);
}
const char* number_from_python(PyObject* value, bfloat16* out) {
  return floating_from_python(value, out);
}
const char* number_from_python(PyObject* value, float* out) {
  return floating_from_python(value, out);
}
const char* number_from_python(PyObject* value, double* out) {
  return floating_from_python(value, out);
}
const char* number_from_python(PyObject* value, std::complex<float>* out) {
  return complex_from_python(value, out);
}
const char* number_from_python(PyObject* value, std::complex<double>* out) {
  return complex_from_python(value, out);
}

}  // namespace neuropod::python
