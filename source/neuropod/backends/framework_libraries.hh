#pragma once

#include <map>
#include <string>

#include "neuropod/internal/backend_registration.hh"

namespace neuropod {

/// Finds the framework of a manifest whose libraries lie in a Python module's folder, and makes
/// their paths absolute; other manifests it leaves alone. The folder is the host's copy of the
/// module (set_host_module_resolver()), or else the one in the nearest folder above the plug-in
/// that has such a module: a wheel's plug-in and its framework lie in one environment, also for a
/// C++ program that takes the plug-in from there. Reads the libraries' build-ids, opens none.
/// The result says why the framework can't be used: not found, or another build than the plug-in
/// was compiled against. Empty if it can.
std::string locate_framework_libraries(BackendManifest* manifest);

/// Adds to where modules' folders are known to be, before any other place: for a worker, which
/// can't ask the Python of its host. Unlike a resolver it makes no other copy of a framework a
/// conflict. Thread-safe.
void set_module_folders(const std::map<std::string, std::string>& folders);

}  // namespace neuropod
