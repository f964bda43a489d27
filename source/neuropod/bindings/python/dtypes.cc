#include "neuropod/bindings/python/dtypes.hh"

#include <nanobind/nanobind.h>

#include <array>
#include <complex>

#include "neuropod/base/error.hh"

namespace neuropod::python {
namespace {

namespace nb = nanobind;

constexpr int kNoTensorType = -1;

/// NumPy's type numbers below its user-defined ones, by number. `long` and `long long` are two
/// numbers for what may be one type.
constexpr std::array<int, NPY_HALF + 1> make_tensor_types() {
  std::array<int, NPY_HALF + 1> types{};
  for (int& type : types) type = kNoTensorType;
  types[NPY_BOOL] = BOOL_TENSOR;
  types[NPY_BYTE] = INT8_TENSOR;
  types[NPY_UBYTE] = UINT8_TENSOR;
  types[NPY_SHORT] = INT16_TENSOR;
  types[NPY_USHORT] = UINT16_TENSOR;
  types[NPY_INT] = INT32_TENSOR;
  types[NPY_UINT] = UINT32_TENSOR;
  types[NPY_LONG] = sizeof(long) == 8 ? INT64_TENSOR : INT32_TENSOR;
  types[NPY_ULONG] = sizeof(long) == 8 ? UINT64_TENSOR : UINT32_TENSOR;
  types[NPY_LONGLONG] = INT64_TENSOR;
  types[NPY_ULONGLONG] = UINT64_TENSOR;
  types[NPY_HALF] = FLOAT16_TENSOR;
  types[NPY_FLOAT] = FLOAT_TENSOR;
  types[NPY_DOUBLE] = DOUBLE_TENSOR;
  types[NPY_CFLOAT] = COMPLEX64_TENSOR;
  types[NPY_CDOUBLE] = COMPLEX128_TENSOR;
  types[NPY_OBJECT] = STRING_TENSOR;
  types[NPY_STRING] = STRING_TENSOR;
  types[NPY_UNICODE] = STRING_TENSOR;
  return types;
}

constexpr std::array<int, NPY_HALF + 1> kTensorTypes = make_tensor_types();

/// Borrowed, kept for the life of the process; null with the Python error set without ml_dtypes.
PyArray_Descr* bfloat16_dtype() {
  static PyArray_Descr* dtype = nullptr;
  if (dtype) return dtype;
  nb::object scalar_class = nb::steal(PyImport_ImportModule("ml_dtypes"));
  if (!scalar_class.is_valid()) return nullptr;
  scalar_class = scalar_class.attr("bfloat16");
  PyArray_Descr* found = nullptr;
  if (!PyArray_DescrConverter(scalar_class.ptr(), &found)) return nullptr;
  if (!dtype) dtype = found;
  return dtype;
}

[[noreturn]] void throw_missing_bfloat16() {
  if (!PyErr_ExceptionMatches(PyExc_ModuleNotFoundError)) throw nb::python_error();
  PyErr_Clear();
  throw_error(ErrorCode::kLoadFailed,
              "bfloat16 arrays take ml_dtypes, which brings the type to NumPy and isn't installed; "
              "`pip install 'neuropod[bfloat16]'` adds it");
}

int numpy_type_number(TensorType type) {
  switch (type) {
    case FLOAT_TENSOR:
      return NPY_FLOAT32;
    case DOUBLE_TENSOR:
      return NPY_FLOAT64;
    case INT8_TENSOR:
      return NPY_INT8;
    case INT16_TENSOR:
      return NPY_INT16;
    case INT32_TENSOR:
      return NPY_INT32;
    case INT64_TENSOR:
      return NPY_INT64;
    case UINT8_TENSOR:
      return NPY_UINT8;
    case UINT16_TENSOR:
      return NPY_UINT16;
    case UINT32_TENSOR:
      return NPY_UINT32;
    case UINT64_TENSOR:
      return NPY_UINT64;
    case BOOL_TENSOR:
      return NPY_BOOL;
    case FLOAT16_TENSOR:
      return NPY_FLOAT16;
    case COMPLEX64_TENSOR:
      return NPY_COMPLEX64;
    case COMPLEX128_TENSOR:
      return NPY_COMPLEX128;
    case BFLOAT16_TENSOR:
    case STRING_TENSOR:
      break;
  }
  return NPY_NOTYPE;
}

}  // namespace

bool tensor_type_of(PyArray_Descr* dtype, TensorType* type) {
  const int number = dtype->type_num;
  if (number >= 0 && number <= NPY_HALF) {
    if (kTensorTypes[number] == kNoTensorType) return false;
    *type = static_cast<TensorType>(kTensorTypes[number]);
    return true;
  }
  if (number == NPY_VSTRING) {
    *type = STRING_TENSOR;
    return true;
  }
  PyArray_Descr* bfloat16 = bfloat16_dtype();
  if (!bfloat16) PyErr_Clear();
  if (!bfloat16 || number != bfloat16->type_num) return false;
  *type = BFLOAT16_TENSOR;
  return true;
}

PyArray_Descr* numpy_dtype(TensorType type) {
  if (type == BFLOAT16_TENSOR) {
    PyArray_Descr* dtype = bfloat16_dtype();
    if (!dtype) throw_missing_bfloat16();
    Py_INCREF(dtype);
    return dtype;
  }
  return PyArray_DescrFromType(numpy_type_number(type));
}

std::string describe_dtype(PyArray_Descr* dtype) {
  return nb::str(nb::handle(reinterpret_cast<PyObject*>(dtype))).c_str();
}

}  // namespace neuropod::python
