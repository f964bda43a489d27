#pragma once

#include <functional>

#include "neuropod/base/visibility.hh"

namespace neuropod {

/// Called exactly once with the data pointer, on any thread, when the library and every framework
/// are finished with memory that a caller lent.
using Deleter = std::function<void(void* data)>;

/// Turns a deleter and its data into a handle for interfaces that carry one `void*` of context.
NEUROPOD_EXPORT void* register_deleter(const Deleter& deleter, void* data);

/// Runs the deleter behind `handle` and frees the handle. Call it exactly once.
NEUROPOD_EXPORT void run_deleter(void* handle);

}  // namespace neuropod
