#pragma once

#include <nanobind/nanobind.h>

#include "neuropod/bindings/python/numpy_api.hh"

namespace neuropod::python {

/// Runs a scope without the GIL.
///
/// A thread that asks for the GIL while the interpreter ends is ended by Python 3.11 to 3.13, in a
/// way that terminates the program if C++ frames are on the stack. So threads that come back after
/// wait_before_exit() wait for the end of the process instead, as Python 3.14 does it.
class WithoutGil {
 public:
  WithoutGil() noexcept : state_(PyEval_SaveThread()) {}
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* const state_;
};

/// Runs a scope with the GIL, on a thread that has it or on any other, of Python or not. False if
/// the interpreter is ending, or has ended: then nothing of Python may be touched. The exit waits
/// for scopes that have begun.
class WithGil {
 public:
  WithGil() noexcept;
  ~WithGil();
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

  explicit operator bool() const noexcept { return held_; }

 private:
  bool held_ = false;
  PyGILState_STATE state_{};
};

/// Has the interpreter's exit wait until no thread is on its way back into it, and takes
/// Python's log sink and metrics callback away. Once, at import.
void register_exit_handler();

}  // namespace neuropod::python
