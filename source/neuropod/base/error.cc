#include "neuropod/base/error.hh"

#include <string_view>

namespace neuropod {
namespace {

constexpr std::string_view kPrefix = "Neuropod Error: ";

std::string with_prefix(const std::string& message) {
  if (std::string_view(message).substr(0, kPrefix.size()) == kPrefix) return message;
  return std::string(kPrefix) + message;
}

struct CodeTraits {
  const char* name;
  ErrorOrigin origin;
  bool retryable;
};

// The one table of codes. A cancelled call isn't retryable: whoever withdrew it doesn't want it
// rerun.
CodeTraits traits_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return {"invalid_argument", ErrorOrigin::kCaller, false};
    case ErrorCode::kSpecMismatch:
      return {"spec_mismatch", ErrorOrigin::kCaller, false};
    case ErrorCode::kNotFound:
      return {"not_found", ErrorOrigin::kCaller, false};
    case ErrorCode::kInvalidPackage:
      return {"invalid_package", ErrorOrigin::kPackage, false};
    case ErrorCode::kCorruptPackage:
      return {"corrupt_package", ErrorOrigin::kPackage, false};
    case ErrorCode::kBackendNotFound:
      return {"backend_not_found", ErrorOrigin::kBackend, false};
    case ErrorCode::kVersionConflict:
      return {"version_conflict", ErrorOrigin::kBackend, false};
    case ErrorCode::kLoadFailed:
      return {"load_failed", ErrorOrigin::kBackend, false};
    case ErrorCode::kModelError:
      return {"model_error", ErrorOrigin::kModel, false};
    case ErrorCode::kOutOfMemory:
      return {"out_of_memory", ErrorOrigin::kResource, true};
    case ErrorCode::kUnavailable:
      return {"unavailable", ErrorOrigin::kResource, true};
    case ErrorCode::kWorkerDied:
      return {"worker_died", ErrorOrigin::kWorker, true};
    case ErrorCode::kTimeout:
      return {"timeout", ErrorOrigin::kWorker, true};
    case ErrorCode::kCancelled:
      return {"cancelled", ErrorOrigin::kWorker, false};
  }
  return {"unknown", ErrorOrigin::kCaller, false};
}

}  // namespace

const char* to_string(ErrorCode code) noexcept { return traits_of(code).name; }

Error::Error(ErrorCode code, const std::string& message)
    : std::runtime_error(with_prefix(message)), code_(code) {}

Error::~Error() = default;

ErrorOrigin Error::origin() const noexcept { return traits_of(code_).origin; }

bool Error::retryable() const noexcept { return traits_of(code_).retryable; }

std::string Error::message() const { return std::string(what()).substr(kPrefix.size()); }

Error Error::with_context(const std::string& context) const {
  return Error(code_, context + ": " + message());
}

void throw_error(ErrorCode code, const std::string& message) { throw Error(code, message); }

}  // namespace neuropod
