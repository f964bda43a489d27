#pragma once

#include <optional>
#include <string>

#include "neuropod/base/shared_library.hh"
#include "neuropod/internal/backend_registration.hh"

namespace neuropod {

/// Why the plug-in's framework can't be loaded beside the libraries that are mapped already: one of
/// them has the SONAME of another file with other content. Empty if it can.
std::string find_mapped_conflict(const BackendManifest& manifest);

/// The folder of the module that the host imported or would import, see set_host_module_resolver();
/// nothing if it can't, or if the host has no modules. Calls the host's resolver.
std::optional<std::string> find_host_module(const std::string& module);

/// Why the plug-in's framework isn't the copy that the host imported or would import, see
/// set_host_module_resolver(). Empty if it is, or if the host has none. Calls the host's resolver.
std::string find_host_conflict(const BackendManifest& manifest);

/// Opens the framework's libraries in order, but for those that are mapped already as a copy.
/// Error(load_failed).
void open_framework_libraries(const BackendManifest& manifest);

}  // namespace neuropod
