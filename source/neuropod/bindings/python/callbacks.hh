#pragma once

#include <nanobind/nanobind.h>

#include <memory>

namespace neuropod::python {

/// A callable of Python that the core holds and calls on threads of its own. Copies share one
/// reference, which may be dropped on any thread.
class Callback {
 public:
  /// Error(invalid_argument) if it can't be called; `what` it is, for the message. Needs the GIL.
  Callback(nanobind::handle callable, const char* what);

  /// Calls it with the arguments that `make_arguments()` returns as a tuple, both with the GIL;
  /// does nothing if the interpreter is ending. Throws std::runtime_error with Python's message for
  /// what it raises; Ctrl-C is passed on to the main thread. An error that is pending on this
  /// thread stays so.
  template <typename MakeArguments>
  void operator()(MakeArguments&& make_arguments) const;

 private:
  /// Turns the exception in flight into a std::runtime_error.
  [[noreturn]] static void rethrow(nanobind::python_error& error);

  std::shared_ptr<PyObject> callable_;
};

/// A str of text that needn't be UTF-8.
nanobind::object lenient_str(const char* data, size_t size);

}  // namespace neuropod::python

#include "neuropod/bindings/python/gil.hh"

namespace neuropod::python {

template <typename MakeArguments>
void Callback::operator()(MakeArguments&& make_arguments) const {
  WithGil gil;
  if (!gil) return;
  nanobind::error_scope pending;
  try {
    const nanobind::tuple arguments = make_arguments();
    nanobind::steal(PyObject_CallObject(callable_.get(), arguments.ptr()));
    if (PyErr_Occurred()) throw nanobind::python_error();
  } catch (nanobind::python_error& error) {
    rethrow(error);
  }
}

}  // namespace neuropod::python
