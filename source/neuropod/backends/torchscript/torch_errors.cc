#include "torch_errors.hh"

#include <c10/util/Exception.h>
#include <cxxabi.h>

#include <exception>
#include <new>
#include <string_view>

namespace neuropod {
namespace {

// The interpreter wraps what an operator throws in an exception of its own, so the type is lost and
// only the allocators' words remain.
bool speaks_of_exhausted_memory(std::string_view message) {
  for (const char* words : {"can't allocate memory", "not enough memory", "out of memory",
                            "std::bad_alloc", "unable to allocate"}) {
    if (message.find(words) != std::string_view::npos) return true;
  }
  return false;
}

std::string without_trailing_space(std::string text) {
  text.erase(text.find_last_not_of(" \n\t") + 1);
  return text;
}

}  // namespace

std::string current_torch_message() {
  try {
    throw;
  } catch (const c10::Error& error) {
    return without_trailing_space(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return without_trailing_space(error.what());
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

void rethrow_torch_error(ErrorCode code, const std::string& what_failed) {
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw_error(ErrorCode::kOutOfMemory, what_failed + ": out of memory");
  } catch (const abi::__forced_unwind&) {
    throw;  // the thread is being cancelled
  } catch (...) {
    const std::string message = current_torch_message();
    throw_error(speaks_of_exhausted_memory(message) ? ErrorCode::kOutOfMemory : code,
                what_failed + ": " + message);
  }
}

}  // namespace neuropod
