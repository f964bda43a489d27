#pragma once

#include <string>

#include "neuropod/base/error.hh"

namespace neuropod {

/// In a catch block: throws what was caught as an Error. An Error passes unchanged; exhausted
/// memory, however torch words it, becomes out_of_memory; everything else becomes `code`. The
/// message is `what_failed`, a colon and torch's own message (for an exception raised in the model,
/// the model's own Python traceback), without torch's C++ stack.
[[noreturn]] void rethrow_torch_error(ErrorCode code, const std::string& what_failed);

/// The message of the exception being handled, without torch's C++ stack.
std::string current_torch_message();

}  // namespace neuropod
