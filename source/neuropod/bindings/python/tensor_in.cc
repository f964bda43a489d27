#include "neuropod/bindings/python/tensor_in.hh"

#include <fmt/format.h>
#include <nanobind/nanobind.h>

#include <string>
#include <utility>
#include <vector>

#include "neuropod/bindings/python/dtypes.hh"
#include "neuropod/bindings/python/lent_memory.hh"
#include "neuropod/internal/neuropod_tensor_raw_data_access.hh"

namespace neuropod::python {
namespace {

namespace nb = nanobind;

std::vector<int64_t> shape_of(PyArrayObject* array) {
  return {PyArray_DIMS(array), PyArray_DIMS(array) + PyArray_NDIM(array)};
}

[[noreturn]] void refuse_dtype(PyArrayObject* array, TensorType found, const InputSlot& slot) {
  const char* expected = get_dtype_name(slot.spec->type);
  const std::string given = describe_dtype(PyArray_DESCR(array));
  if (slot.spec->type == STRING_TENSOR || found == STRING_TENSOR) {
    refuse(slot, fmt::format("is expected to be {}, but the array given is {}", expected, given));
  }
  const std::string conversion = slot.spec->type == BFLOAT16_TENSOR
                                     ? std::string("ml_dtypes.bfloat16")
                                     : fmt::format("\"{}\"", expected);
  refuse(slot, fmt::format("is expected to be {}, but the array given is {}; Neuropod never casts "
                           "silently: if the values fit, pass it with .astype({})",
                           expected, given, conversion));
}

/// A masked array's mask would be lost without a word.
void refuse_masked(PyArrayObject* array, const InputSlot& slot) {
  if (PyArray_CheckExact(array)) return;
  const nb::handle handle(reinterpret_cast<PyObject*>(array));
  if (nb::hasattr(handle, "mask") && nb::hasattr(handle, "filled")) {
    refuse(slot, "is a masked array, and a tensor has no mask; pass its .filled(value)");
  }
}

bool offers_array(PyObject* value) {
  const nb::handle handle(value);
  return PyObject_CheckBuffer(value) || nb::hasattr(handle, "__array_interface__") ||
         nb::hasattr(handle, "__array_struct__") || nb::hasattr(handle, "__array__");
}

nb::object array_of(PyObject* value, const InputSlot& slot) {
  nb::object array = nb::steal(PyArray_FromAny(value, nullptr, 0, 0, 0, nullptr));
  if (array.is_valid()) return array;
  nb::python_error error;
  refuse(slot, fmt::format("of type {} can't be made an array: {}", Py_TYPE(value)->tp_name,
                           nb::str(error.value()).c_str()));
}

bool is_number(PyObject* value) {
  return PyFloat_Check(value) || PyLong_Check(value) || PyComplex_Check(value) ||
         PyIndex_Check(value);
}

std::shared_ptr<NeuropodValue> tensor_from_other(PyObject* value, const InputSlot& slot,
                                                 NeuropodTensorAllocator& allocator) {
  if (PyArray_IsScalar(value, Generic) && !PyUnicode_Check(value) && !PyBytes_Check(value)) {
    const nb::object array = array_of(value, slot);
    return tensor_from_array(reinterpret_cast<PyArrayObject*>(array.ptr()), slot, allocator);
  }
  if (PyList_Check(value) || PyTuple_Check(value) || PyUnicode_Check(value) ||
      PyBytes_Check(value)) {
    return tensor_from_sequence(value, slot, allocator);
  }
  nb::object array;
  if (nb::hasattr(nb::handle(value), "__dlpack__")) {
    array = nb::steal(array_from_dlpack(value, slot));
  } else if (offers_array(value)) {
    array = array_of(value, slot);
  } else if (is_number(value)) {
    return tensor_from_sequence(value, slot, allocator);
  } else if (PyRange_Check(value)) {
    const nb::object list = nb::steal(PySequence_List(value));
    if (!list.is_valid()) throw nb::python_error();
    return tensor_from_sequence(list.ptr(), slot, allocator);
  } else {
    refuse(slot, fmt::format("can't be made from a {}; pass a NumPy array, a tensor that offers "
                             "DLPack, or a list of numbers or strings",
                             Py_TYPE(value)->tp_name));
  }
  return tensor_from_array(reinterpret_cast<PyArrayObject*>(array.ptr()), slot, allocator);
}

}  // namespace

std::string describe(const InputSlot& slot) {
  if (slot.model.empty()) return slot.name.empty() ? "the value" : fmt::format("'{}'", slot.name);
  return fmt::format("model '{}': input '{}'", slot.model, slot.name);
}

void refuse(const InputSlot& slot, const std::string& message) {
  throw_error(ErrorCode::kSpecMismatch, fmt::format("{} {}", describe(slot), message));
}

void copy_array(PyArrayObject* array, TensorType type, void* to) {
  if (PyArray_SIZE(array) == 0) return;
  const nb::object target =
      nb::steal(PyArray_NewFromDescr(&PyArray_Type, numpy_dtype(type), PyArray_NDIM(array),
                                     PyArray_DIMS(array), nullptr, to, NPY_ARRAY_CARRAY, nullptr));
  if (!target.is_valid() ||
      PyArray_CopyInto(reinterpret_cast<PyArrayObject*>(target.ptr()), array) < 0) {
    throw nb::python_error();
  }
}

std::shared_ptr<NeuropodValue> tensor_from_array(PyArrayObject* array, const InputSlot& slot,
                                                 NeuropodTensorAllocator& allocator) {
  TensorType type;
  if (!tensor_type_of(PyArray_DESCR(array), &type)) {
    refuse(slot, fmt::format("has the dtype {}, which no tensor has; there are: {}",
                             describe_dtype(PyArray_DESCR(array)), list_dtype_names()));
  }
  if (slot.spec && slot.check_dtype && slot.spec->type != type) refuse_dtype(array, type, slot);
  refuse_masked(array, slot);
  if (type == STRING_TENSOR) return tensor_from_string_array(array, slot, allocator);

  // A read-only array is copied: a model that works in place writes into its input.
  if (PyArray_ISCARRAY(array)) {
    if (slot.lent != nullptr) *slot.lent = true;
    return allocator.tensor_from_memory(shape_of(array), type, PyArray_DATA(array),
                                        hold_until_released(reinterpret_cast<PyObject*>(array)));
  }
  std::shared_ptr<NeuropodTensor> tensor = allocator.allocate_tensor(shape_of(array), type);
  copy_array(array, type, internal::RawDataAccess::get_untyped_data_ptr(*tensor));
  return tensor;
}

std::shared_ptr<NeuropodValue> tensor_from_python(PyObject* value, const InputSlot& slot,
                                                  NeuropodTensorAllocator& allocator) {
  if (PyArray_Check(value)) {
    return tensor_from_array(reinterpret_cast<PyArrayObject*>(value), slot, allocator);
  }
  return tensor_from_other(value, slot, allocator);
}

}  // namespace neuropod::python
