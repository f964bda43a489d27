#pragma once

#include <stdexcept>
#include <string>

#include "neuropod/base/visibility.hh"

namespace neuropod {

/// Who can do something about an error.
enum class ErrorOrigin {
  kCaller,    ///< the program that calls Neuropod
  kPackage,   ///< whoever made the package
  kBackend,   ///< the installation: plug-ins and framework libraries
  kModel,     ///< the author of the model
  kResource,  ///< memory, disk, processes
  kWorker,    ///< the process that ran the model
};

/// What went wrong, grouped by origin. The name (see `to_string`) is part of the interface: it is
/// the same in C++, Python, C, Java and the service.
enum class ErrorCode {
  // Caller: fix the call; never retried.
  kInvalidArgument,  ///< an argument or option that can't be used
  kSpecMismatch,     ///< a tensor that doesn't fulfil the problem API
  kNotFound,         ///< a path, tensor or output that doesn't exist
  // Package: loading fails.
  kInvalidPackage,  ///< the package breaks a rule of the format
  kCorruptPackage,  ///< the package was whole once: truncated, changed, a hash that differs
  // Backend: loading fails; the message holds the remedy.
  kBackendNotFound,  ///< no plug-in serves this platform and version range
  kVersionConflict,  ///< another copy of the framework is in this process
  kLoadFailed,       ///< the framework refused the model or a library
  // Model.
  kModelError,  ///< the model raised
  // Resource.
  kOutOfMemory,  ///< an allocation failed, after the pools were trimmed
  kUnavailable,  ///< the model can't serve now
  // Worker.
  kWorkerDied,  ///< the model's process ended during the call
  kTimeout,     ///< the call's deadline passed
  kCancelled,   ///< the caller withdrew the call
};

/// The stable name of a code, e.g. "spec_mismatch".
NEUROPOD_EXPORT const char* to_string(ErrorCode code) noexcept;

/// Every failure that leaves this library.
///
/// `what()` reads "Neuropod Error: <message>" and says what failed, for which model and tensor,
/// what was expected and found, and the next thing to try. A failed call leaves the model usable; a
/// failed load leaves nothing of the model behind.
class NEUROPOD_EXPORT Error : public std::runtime_error {
 public:
  /// `message` without the "Neuropod Error: " prefix; a prefix that is there already isn't
  /// repeated.
  Error(ErrorCode code, const std::string& message);
  ~Error() override;

  ErrorCode code() const noexcept { return code_; }
  ErrorOrigin origin() const noexcept;

  /// True when the same call may succeed later, unchanged.
  bool retryable() const noexcept;

  /// The text without the "Neuropod Error: " prefix.
  std::string message() const;

  /// The same error with `context` ("model 'digits'") before its message.
  Error with_context(const std::string& context) const;

 private:
  ErrorCode code_;
};

/// Throws `Error(code, message)`. Out of line, so that call sites stay small.
[[noreturn]] NEUROPOD_EXPORT void throw_error(ErrorCode code, const std::string& message);

}  // namespace neuropod
