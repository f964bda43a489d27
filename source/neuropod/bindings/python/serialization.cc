#include "neuropod/serialization/serialization.hh"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <sstream>
#include <string>

#include "neuropod/bindings/python/module.hh"
#include "neuropod/bindings/python/tensor_in.hh"
#include "neuropod/bindings/python/tensor_out.hh"
#include "neuropod/core/generic_tensor.hh"

namespace neuropod::python {
namespace {

nb::bytes bytes_of(const std::ostringstream& stream) {
  const std::string content = stream.str();
  return nb::bytes(content.data(), content.size());
}

std::shared_ptr<NeuropodValue> value_from(nb::handle array, std::string_view name) {
  const auto allocator = get_generic_tensor_allocator();
  return tensor_from_python(array.ptr(), {"", name}, *allocator);
}

nb::bytes serialize_value(nb::handle array) {
  if (!PyArray_Check(array.ptr())) {
    PyErr_Format(PyExc_TypeError, "serialize() takes a NumPy array or a dict of them, not a %s",
                 Py_TYPE(array.ptr())->tp_name);
    throw nb::python_error();
  }
  std::ostringstream stream;
  serialize(stream, *value_from(array, ""));
  return bytes_of(stream);
}

nb::bytes serialize_map(const nb::dict& arrays) {
  NeuropodValueMap values;
  for (const auto& [key, array] : arrays) {
    const std::string name = nb::cast<std::string>(key);
    values.emplace(name, value_from(array, name));
  }
  std::ostringstream stream;
  serialize(stream, values);
  return bytes_of(stream);
}

std::istringstream stream_of(const nb::bytes& data) {
  return std::istringstream(std::string(data.c_str(), data.size()));
}

nb::object deserialize_value(const nb::bytes& data) {
  const auto allocator = get_generic_tensor_allocator();
  std::istringstream stream = stream_of(data);
  const auto value = deserialize<std::shared_ptr<NeuropodValue>>(stream, *allocator);
  return nb::steal(array_from_tensor(value, StringForm::kBytes));
}

nb::dict deserialize_map(const nb::bytes& data) {
  const auto allocator = get_generic_tensor_allocator();
  std::istringstream stream = stream_of(data);
  nb::dict arrays;
  for (const auto& [name, value] : deserialize<NeuropodValueMap>(stream, *allocator)) {
    arrays[nb::cast(name)] = nb::steal(array_from_tensor(value, StringForm::kBytes));
  }
  return arrays;
}

}  // namespace

void bind_serialization(nb::module_& module) {
  module.def("serialize", &serialize_map, nb::arg("value"),
             nb::sig("def serialize(value: dict[str, numpy.typing.NDArray[typing.Any]]) -> bytes"),
             "Arrays by name as bytes that deserialize_dict() reads, in any language.");
  module.def("serialize", &serialize_value, nb::arg("value"),
             nb::sig("def serialize(value: numpy.typing.NDArray[typing.Any]) -> bytes"),
             "An array as bytes that deserialize() reads, in any language.");
  module.def("deserialize", &deserialize_value, nb::arg("data"),
             nb::sig("def deserialize(data: bytes) -> numpy.typing.NDArray[typing.Any]"),
             "The array that serialize() wrote; strings as dtype S.");
  module.def(
      "deserialize_dict", &deserialize_map, nb::arg("data"),
      nb::sig("def deserialize_dict(data: bytes) -> dict[str, numpy.typing.NDArray[typing.Any]]"),
      "The arrays by name that serialize() wrote; strings as dtype S.");
}

}  // namespace neuropod::python
