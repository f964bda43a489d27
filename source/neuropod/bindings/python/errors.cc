#include "neuropod/base/error.hh"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <vector>

#include "neuropod/bindings/python/module.hh"

namespace neuropod::python {
namespace {

const char* origin_name(ErrorOrigin origin) {
  switch (origin) {
    case ErrorOrigin::kCaller:
      return "caller";
    case ErrorOrigin::kPackage:
      return "package";
    case ErrorOrigin::kBackend:
      return "backend";
    case ErrorOrigin::kModel:
      return "model";
    case ErrorOrigin::kResource:
      return "resource";
    case ErrorOrigin::kWorker:
      return "worker";
  }
  return "unknown";
}

/// Every code with its origin and whether it is retryable: the table that neuropod/errors.py
/// mirrors.
std::vector<std::tuple<std::string, std::string, bool>> error_codes() {
  std::vector<std::tuple<std::string, std::string, bool>> rows;
  for (int i = 0; i <= static_cast<int>(ErrorCode::kCancelled); ++i) {
    const Error error(static_cast<ErrorCode>(i), "");
    rows.emplace_back(to_string(error.code()), origin_name(error.origin()), error.retryable());
  }
  return rows;
}

/// Sets the Python error of the class that neuropod/errors.py gives to this code. A message may
/// quote a path that isn't UTF-8.
void set_python_error(const Error& error) {
  const std::string text = error.what();
  nb::object message = nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
  nb::object classes = nb::module_::import_("neuropod.errors").attr("ERROR_CLASSES");
  nb::object error_class = classes[to_string(error.code())];
  PyErr_SetObject(error_class.ptr(), message.ptr());
}

void translate(const std::exception_ptr& exception, void*) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    set_python_error(error);
  }
}

}  // namespace

void bind_errors(nb::module_& module) {
  nb::register_exception_translator(translate);
  module.def("error_codes", &error_codes,
             "Every error code with its origin and whether the same call may succeed later.");
}

}  // namespace neuropod::python
