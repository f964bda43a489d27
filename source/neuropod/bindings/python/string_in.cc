#include <fmt/format.h>
#include <nanobind/nanobind.h>

#include <string>
#include <utility>
#include <vector>

#include "neuropod/bindings/python/dtypes.hh"
#include "neuropod/bindings/python/tensor_in.hh"

namespace neuropod::python {
namespace {

namespace nb = nanobind;
using StringTensor = TypedNeuropodTensor<std::string>;

bool is_surrogate(Py_UCS4 code_point) { return code_point >= 0xD800 && code_point <= 0xDFFF; }

void append_utf8(Py_UCS4 code_point, std::string* out) {
  const auto tail = [&](int shift) {
    out->push_back(static_cast<char>(0x80 | ((code_point >> shift) & 0x3F)));
  };
  if (code_point < 0x80) {
    out->push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    out->push_back(static_cast<char>(0xC0 | (code_point >> 6)));
    tail(0);
  } else if (code_point < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | (code_point >> 12)));
    tail(6);
    tail(0);
  } else {
    out->push_back(static_cast<char>(0xF0 | (code_point >> 18)));
    tail(12);
    tail(6);
    tail(0);
  }
}

/// `cells`: fixed-width cells of UCS-4, NUL-padded at the end as NumPy stores them.
void fill_from_unicode(const Py_UCS4* cells, size_t width, const InputSlot& slot,
                       StringTensor* tensor) {
  std::string utf8;
  for (size_t i = 0; i < tensor->get_num_elements(); ++i) {
    const Py_UCS4* cell = cells + i * width;
    size_t length = width;
    while (length > 0 && cell[length - 1] == 0) --length;
    utf8.clear();
    for (size_t c = 0; c < length; ++c) {
      if (is_surrogate(cell[c]) || cell[c] > 0x10FFFF) {
        refuse(slot,
               fmt::format("holds U+{:04X} in element {}, which UTF-8 can't express", cell[c], i));
      }
      append_utf8(cell[c], &utf8);
    }
    tensor->set_element(i, utf8);
  }
}

void fill_from_bytes(const char* cells, size_t width, StringTensor* tensor) {
  for (size_t i = 0; i < tensor->get_num_elements(); ++i) {
    const char* cell = cells + i * width;
    size_t length = width;
    while (length > 0 && cell[length - 1] == 0) --length;
    tensor->set_element(i, std::string_view(cell, length));
  }
}

void fill_from_objects(PyObject* const* objects, const InputSlot& slot, StringTensor* tensor) {
  for (size_t i = 0; i < tensor->get_num_elements(); ++i) {
    PyObject* object = objects[i] ? objects[i] : Py_None;
    std::string_view text;
    if (!string_view_of(object, &text)) refuse_string(object, slot, fmt::format("element {}", i));
    tensor->set_element(i, text);
  }
}

/// The array itself, or a C-contiguous copy in native byte order; StringDType becomes objects.
nb::object dense_array(PyArrayObject* array) {
  PyArray_Descr* dtype = PyArray_DESCR(array)->type_num == NPY_VSTRING
                             ? PyArray_DescrFromType(NPY_OBJECT)
                             : PyArray_DescrNewByteorder(PyArray_DESCR(array), NPY_NATIVE);
  nb::object dense = nb::steal(PyArray_FromArray(array, dtype, NPY_ARRAY_CARRAY_RO));
  if (!dense.is_valid()) throw nb::python_error();
  return dense;
}

}  // namespace

bool string_view_of(PyObject* value, std::string_view* text) {
  if (PyBytes_Check(value)) {
    *text = {PyBytes_AS_STRING(value), static_cast<size_t>(PyBytes_GET_SIZE(value))};
    return true;
  }
  if (!PyUnicode_Check(value)) return false;
  Py_ssize_t size = 0;
  const char* utf8 = PyUnicode_AsUTF8AndSize(value, &size);
  if (!utf8) {
    PyErr_Clear();
    return false;
  }
  *text = {utf8, static_cast<size_t>(size)};
  return true;
}

void refuse_string(PyObject* value, const InputSlot& slot, const std::string& where) {
  if (PyUnicode_Check(value)) {
    refuse(slot,
           fmt::format("holds a str that UTF-8 can't express (a lone surrogate) in {}", where));
  }
  refuse(slot, fmt::format("is expected to hold str or bytes, but {} is a {}", where,
                           Py_TYPE(value)->tp_name));
}

std::shared_ptr<NeuropodValue> tensor_from_string_array(PyArrayObject* array, const InputSlot& slot,
                                                        NeuropodTensorAllocator& allocator) {
  const nb::object dense = dense_array(array);
  auto* const cells = reinterpret_cast<PyArrayObject*>(dense.ptr());
  std::vector<int64_t> dims(PyArray_DIMS(cells), PyArray_DIMS(cells) + PyArray_NDIM(cells));
  std::shared_ptr<StringTensor> tensor = allocator.allocate_tensor<std::string>(dims);

  const void* data = PyArray_DATA(cells);
  const auto width = static_cast<size_t>(PyArray_ITEMSIZE(cells));
  switch (PyArray_DESCR(cells)->type_num) {
    case NPY_UNICODE:
      fill_from_unicode(static_cast<const Py_UCS4*>(data), width / sizeof(Py_UCS4), slot,
                        tensor.get());
      break;
    case NPY_STRING:
      fill_from_bytes(static_cast<const char*>(data), width, tensor.get());
      break;
    default:
      fill_from_objects(static_cast<PyObject* const*>(data), slot, tensor.get());
  }
  return tensor;
}

}  // namespace neuropod::python
