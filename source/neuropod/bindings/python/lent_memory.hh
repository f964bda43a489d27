#pragma once

#include "neuropod/bindings/python/numpy_api.hh"
#include "neuropod/internal/deleter.hh"

namespace neuropod::python {

/// Keeps `owner` alive until the deleter runs, which may be on any thread, with or without the GIL.
///
/// The deleter never waits for the GIL (a framework may free memory under locks of its own):
/// without it, the reference is dropped by the main thread's next bytecode or by the next call of
/// drop_released(). Needs the GIL itself.
Deleter hold_until_released(PyObject* owner);

/// Drops the references that were released on threads without the GIL. Needs the GIL.
void drop_released();

}  // namespace neuropod::python
