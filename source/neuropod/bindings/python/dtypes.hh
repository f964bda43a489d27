#pragma once

#include <string>

#include "neuropod/bindings/python/numpy_api.hh"
#include "neuropod/internal/tensor_types.hh"

namespace neuropod::python {

/// The tensor type of a NumPy dtype of either byte order. NumPy's strings (`U`, `S`, object,
/// StringDType) are STRING_TENSOR. False for a dtype no tensor has (structured, datetime64,
/// longdouble, …). Needs the GIL; may import ml_dtypes.
bool tensor_type_of(PyArray_Descr* dtype, TensorType* type);

/// The native NumPy dtype of a numeric tensor type: a new reference. Error(load_failed) if
/// ml_dtypes, which brings bfloat16, is missing.
PyArray_Descr* numpy_dtype(TensorType type);

/// As NumPy prints it, e.g. "float64" or "[('a', '<i4')]".
std::string describe_dtype(PyArray_Descr* dtype);

}  // namespace neuropod::python
