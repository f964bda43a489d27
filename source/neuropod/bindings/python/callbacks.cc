#include "neuropod/bindings/python/callbacks.hh"

#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "neuropod/base/error.hh"
#include "neuropod/bindings/python/lent_memory.hh"

namespace neuropod::python {

namespace nb = nanobind;

Callback::Callback(nb::handle callable, const char* what) {
  if (!PyCallable_Check(callable.ptr())) {
    throw_error(ErrorCode::kInvalidArgument,
                fmt::format("the {} is expected to be a function or None, but is a {}", what,
                            Py_TYPE(callable.ptr())->tp_name));
  }
  callable_ = {callable.ptr(), [release = hold_until_released(callable.ptr())](PyObject* object) {
                 release(object);
               }};
}

void Callback::rethrow(nb::python_error& error) {
  // The signal was meant for the program, not for the callback.
  if (error.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
  std::string text = "an exception without a text";
  try {
    // A lone surrogate can't be UTF-8, so it is written as its escape.
    const nb::object bytes = nb::str("{}: {}")
                                 .attr("format")(error.type().attr("__name__"), error.value())
                                 .attr("encode")("utf-8", "backslashreplace");
    text = nb::borrow<nb::bytes>(bytes).c_str();
  } catch (const nb::python_error&) {
  }
  throw std::runtime_error(text);
}

nb::object lenient_str(const char* data, size_t size) {
  return nb::steal(PyUnicode_DecodeUTF8(data, static_cast<Py_ssize_t>(size), "backslashreplace"));
}

}  // namespace neuropod::python
