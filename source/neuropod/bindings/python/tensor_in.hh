#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "neuropod/backends/tensor_allocator.hh"
#include "neuropod/base/error.hh"
#include "neuropod/bindings/python/numpy_api.hh"
#include "neuropod/internal/config_utils.hh"
#include "neuropod/internal/neuropod_tensor.hh"

namespace neuropod::python {

/// Where a Python value goes: for messages, and for the dtype that a list of numbers is to have.
struct InputSlot {
  std::string_view model;            ///< empty: no model (serialization)
  std::string_view name;             ///< of the input
  const TensorSpec* spec = nullptr;  ///< null: nothing is known of it
  bool check_dtype = true;           ///< arrays of another dtype than the spec's are refused
  bool* lent = nullptr;              ///< set to true if the value's memory is used, not copied
};

/// "model 'digits': input 'image'", the start of every message about a value.
std::string describe(const InputSlot& slot);

/// Throws Error(spec_mismatch) "<describe(slot)> <message>".
[[noreturn]] void refuse(const InputSlot& slot, const std::string& message);

/// A tensor of `value`, which may be a NumPy array or scalar, anything that offers DLPack, an array
/// interface or a buffer, and, where the spec gives the dtype, numbers, strings and nested lists of
/// them.
///
/// A C-contiguous, aligned, writable array of native byte order is wrapped, not copied: the tensor
/// keeps it alive. Everything else is copied. `value` itself is never changed here. Errors:
/// spec_mismatch naming the input. Needs the GIL.
std::shared_ptr<NeuropodValue> tensor_from_python(PyObject* value, const InputSlot& slot,
                                                  NeuropodTensorAllocator& allocator);

// The parts of tensor_from_python, by kind of value.

std::shared_ptr<NeuropodValue> tensor_from_array(PyArrayObject* array, const InputSlot& slot,
                                                 NeuropodTensorAllocator& allocator);

/// `array` holds strings (`U`, `S`, object or StringDType). string_in.cc.
std::shared_ptr<NeuropodValue> tensor_from_string_array(PyArrayObject* array, const InputSlot& slot,
                                                        NeuropodTensorAllocator& allocator);

/// The UTF-8 of a `str`, or the bytes of a `bytes`; valid while `value` lives. False for anything
/// else and for a str that UTF-8 can't express. string_in.cc.
bool string_view_of(PyObject* value, std::string_view* text);

/// Says why string_view_of(value) was false; `where` is e.g. "element 3".
[[noreturn]] void refuse_string(PyObject* value, const InputSlot& slot, const std::string& where);

/// A number, a str or bytes, or nested lists and tuples of them, in the dtype of `slot.spec`.
/// sequence_in.cc.
std::shared_ptr<NeuropodValue> tensor_from_sequence(PyObject* value, const InputSlot& slot,
                                                    NeuropodTensorAllocator& allocator);

/// A NumPy array over the memory that `value.__dlpack__()` hands out: a new reference.
/// dlpack_in.cc.
PyObject* array_from_dlpack(PyObject* value, const InputSlot& slot);

/// Copies `array` into row-major memory of the same dtype in native byte order.
void copy_array(PyArrayObject* array, TensorType type, void* to);

}  // namespace neuropod::python
