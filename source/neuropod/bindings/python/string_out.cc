#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "neuropod/bindings/python/tensor_out.hh"
#include "neuropod/internal/neuropod_tensor_raw_data_access.hh"

namespace neuropod::python {
namespace {

namespace nb = nanobind;
using Views = std::vector<std::string_view>;

bool ends_in_nul(std::string_view text) { return !text.empty() && text.back() == '\0'; }

/// `dtype` is stolen.
nb::object new_array(const NeuropodTensor& tensor, PyArray_Descr* dtype) {
  const auto& dims = tensor.get_dims();
  auto* shape = const_cast<npy_intp*>(reinterpret_cast<const npy_intp*>(dims.data()));
  nb::object array = nb::steal(PyArray_NewFromDescr(
      &PyArray_Type, dtype, static_cast<int>(dims.size()), shape, nullptr, nullptr, 0, nullptr));
  if (!array.is_valid()) throw nb::python_error();
  return array;
}

void* data_of(const nb::object& array) {
  return PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.ptr()));
}

/// `<U` or `S` of `width` characters, at least 1: NumPy has no fixed-width strings of 0 in a new
/// array.
nb::object new_fixed_width_array(const NeuropodTensor& tensor, int type_number, size_t width) {
  PyArray_Descr* dtype = PyArray_DescrNewFromType(type_number);
  if (!dtype) throw nb::python_error();
  const size_t character = type_number == NPY_UNICODE ? sizeof(Py_UCS4) : 1;
  PyDataType_SET_ELSIZE(dtype, static_cast<npy_intp>(std::max<size_t>(width, 1) * character));
  nb::object array = new_array(tensor, dtype);
  std::memset(data_of(array), 0,
              static_cast<size_t>(PyArray_NBYTES(reinterpret_cast<PyArrayObject*>(array.ptr()))));
  return array;
}

/// `make(view)` gives a new reference per element.
template <typename Make>
nb::object new_object_array(const NeuropodTensor& tensor, size_t count, const Make& make) {
  nb::object array = new_array(tensor, PyArray_DescrFromType(NPY_OBJECT));
  auto** const objects = static_cast<PyObject**>(data_of(array));
  for (size_t i = 0; i < count; ++i) {
    PyObject* const element = make(i);
    if (!element) throw nb::python_error();
    Py_XSETREF(objects[i], element);
  }
  return array;
}

nb::object objects_of_bytes(const NeuropodTensor& tensor, const Views& views) {
  return new_object_array(tensor, views.size(), [&](size_t i) {
    return PyBytes_FromStringAndSize(views[i].data(), static_cast<Py_ssize_t>(views[i].size()));
  });
}

nb::object fixed_width_bytes(const NeuropodTensor& tensor, const Views& views) {
  size_t width = 0;
  for (std::string_view view : views) width = std::max(width, view.size());
  nb::object array = new_fixed_width_array(tensor, NPY_STRING, width);
  char* cell = static_cast<char*>(data_of(array));
  for (std::string_view view : views) {
    std::memcpy(cell, view.data(), view.size());
    cell += std::max<size_t>(width, 1);
  }
  return array;
}

/// The elements as str; false, without a Python error, if one isn't UTF-8.
bool decode(const Views& views, std::vector<nb::object>* decoded) {
  decoded->reserve(views.size());
  for (std::string_view view : views) {
    PyObject* text =
        PyUnicode_DecodeUTF8(view.data(), static_cast<Py_ssize_t>(view.size()), nullptr);
    if (!text) {
      if (!PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) throw nb::python_error();
      PyErr_Clear();
      return false;
    }
    decoded->push_back(nb::steal(text));
  }
  return true;
}

bool wastes_memory(size_t width, const std::vector<nb::object>& texts) {
  constexpr size_t kHarmless = size_t{16} << 20;
  const size_t padded = width * texts.size();
  if (padded * sizeof(Py_UCS4) <= kHarmless) return false;
  size_t characters = 0;
  for (const nb::object& text : texts)
    characters += static_cast<size_t>(PyUnicode_GET_LENGTH(text.ptr()));
  return padded > 8 * characters;
}

nb::object text_array(const NeuropodTensor& tensor, const std::vector<nb::object>& texts,
                      bool as_objects) {
  size_t width = 0;
  for (const nb::object& text : texts) {
    width = std::max(width, static_cast<size_t>(PyUnicode_GET_LENGTH(text.ptr())));
  }
  if (as_objects || wastes_memory(width, texts)) {
    return new_object_array(tensor, texts.size(),
                            [&](size_t i) { return nb::object(texts[i]).release().ptr(); });
  }
  nb::object array = new_fixed_width_array(tensor, NPY_UNICODE, width);
  auto* cell = static_cast<Py_UCS4*>(data_of(array));
  width = std::max<size_t>(width, 1);
  for (const nb::object& text : texts) {
    if (PyUnicode_GET_LENGTH(text.ptr()) > 0 &&
        !PyUnicode_AsUCS4(text.ptr(), cell, static_cast<Py_ssize_t>(width), 0)) {
      throw nb::python_error();
    }
    cell += width;
  }
  return array;
}

}  // namespace

PyObject* array_from_strings(const NeuropodTensor& tensor, StringForm form) {
  const Views views = internal::RawDataAccess::get_string_views(tensor);
  const bool trailing_nul = std::any_of(views.begin(), views.end(), ends_in_nul);
  if (form == StringForm::kBytes) {
    return (trailing_nul ? objects_of_bytes(tensor, views) : fixed_width_bytes(tensor, views))
        .release()
        .ptr();
  }
  std::vector<nb::object> texts;
  if (!decode(views, &texts)) return objects_of_bytes(tensor, views).release().ptr();
  return text_array(tensor, texts, trailing_nul).release().ptr();
}

}  // namespace neuropod::python
