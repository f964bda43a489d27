#pragma once

#include <complex>
#include <cstdint>

#include "neuropod/bindings/python/numpy_api.hh"
#include "neuropod/internal/tensor_types.hh"

namespace neuropod::python {

/// Converts a Python number (or NumPy scalar, or rank-0 array) to an element of a tensor. Null if
/// it worked; otherwise why not, to be read after the number and before the dtype: "is too large
/// for".
///
/// Integers must come out exactly, whatever the dtype. A Python float becomes an integer only if it
/// is whole; for a floating dtype it is rounded to the nearest value, as its decimal literal was,
/// but may neither overflow nor vanish. NaN and infinities pass. Needs the GIL.
const char* number_from_python(PyObject* value, bool* out);
const char* number_from_python(PyObject* value, int8_t* out);
const char* number_from_python(PyObject* value, int16_t* out);
const char* number_from_python(PyObject* value, int32_t* out);
const char* number_from_python(PyObject* value, int64_t* out);
const char* number_from_python(PyObject* value, uint8_t* out);
const char* number_from_python(PyObject* value, uint16_t* out);
const char* number_from_python(PyObject* value, uint32_t* out);
const char* number_from_python(PyObject* value, uint64_t* out);
const char* number_from_python(PyObject* value, float16* out);
const char* number_from_python(PyObject* value, bfloat16* out);
const char* number_from_python(PyObject* value, float* out);
const char* number_from_python(PyObject* value, double* out);
const char* number_from_python(PyObject* value, std::complex<float>* out);
const char* number_from_python(PyObject* value, std::complex<double>* out);

}  // namespace neuropod::python
