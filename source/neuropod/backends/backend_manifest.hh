#pragma once

#include <string>

#include "neuropod/base/visibility.hh"
#include "neuropod/internal/backend_registration.hh"

namespace neuropod {

/// The name of the file that makes a directory a plug-in.
constexpr const char* kBackendManifestName = "backend.json";

/// Reads and checks `<directory>/backend.json`. Library paths in the result are absolute: relative
/// ones are relative to the directory, except the framework's libraries with libraries_in_module,
/// which locate_framework_libraries() finds. Opens no library and doesn't look whether they exist.
/// Error(load_failed) names the file, the key, what was expected and what was found.
NEUROPOD_EXPORT BackendManifest read_backend_manifest(const std::string& directory);

/// True if a package that asks for `range` takes a framework of `version`. "*" takes any, builds
/// that call themselves pre-releases ("2.8.0a0+vendor") too, which npm's rule for ranges leaves
/// out. Error(invalid_argument) if either isn't valid.
bool range_takes(const std::string& range, const std::string& version);

}  // namespace neuropod
