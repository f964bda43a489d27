#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "neuropod/base/visibility.hh"
#include "neuropod/options.hh"
#include "neuropod/version.hh"

namespace neuropod {

class NeuropodBackend;

/// Points at a plug-in that is not on the search path.
struct BackendLoadSpec {
  std::string type;     ///< platform, e.g. "torchscript"
  std::string version;  ///< version of its framework, e.g. "2.13.0"
  std::string path;     ///< its shared library, or the directory that holds its backend.json
  bool operator==(const BackendLoadSpec& other) const {
    return type == other.type && version == other.version && path == other.path;
  }
};

/// What a plug-in's backend.json says (docs/formats/backend_manifest.md). It is read without
/// opening any library, so that a version range decides before anything is loaded.
struct BackendManifest {
  std::string platform;
  std::string framework;          ///< e.g. "torch"
  std::string framework_version;  ///< semver
  std::string neuropod_abi;
  std::string library;  ///< absolute path of the plug-in
  /// The framework's, absolute paths, in load order. Of a candidate that was rejected they may
  /// still be relative to the Python module's folder.
  std::vector<std::string> libraries;
  std::string python_module;  ///< the module whose import loads the same libraries; or empty
  bool gpu = false;
  std::string directory;             ///< where the manifest was found
  bool libraries_in_module = false;  ///< they lie in `python_module`'s folder, wherever that is
  std::vector<std::string> library_build_ids;  ///< GNU build-ids of `libraries`; or empty
};

/// One plug-in that was looked at, and why it can't be used (empty: it can).
struct BackendCandidate {
  BackendManifest manifest;
  std::string source;  ///< "override", "NEUROPOD_BACKEND_PATH", "beside the library", …
  std::string rejected;
};

/// The result of looking for plug-ins: candidates best first, and each place that was searched.
struct BackendSearch {
  std::vector<BackendCandidate> candidates;
  std::vector<std::string> searched;
};

/// Looks for plug-ins of `platform` ("" for all) in, by falling priority: `overrides`,
/// NEUROPOD_BACKEND_PATH (colon-separated), beside libneuropod (`neuropod/backends`), the user's
/// data folder, NEUROPOD_BASE_DIR (its `backends` folder; default /usr/local/lib/neuropod). A place
/// holds plug-in directories, or is one itself. Opens no library. A candidate outside
/// `version_range`, of another ABI, with a missing library or a broken manifest is listed with the
/// reason. Within a place the newest framework version comes first; of overrides the last.
NEUROPOD_EXPORT BackendSearch find_backends(const std::vector<BackendLoadSpec>& overrides,
                                            const std::string& platform,
                                            const std::string& version_range = "*");

/// The user's data folder for plug-ins: `$XDG_DATA_HOME/neuropod/backends`, by default under
/// `~/.local/share`; empty without a home.
NEUROPOD_EXPORT std::string user_backend_folder();

/// Says which copy of a framework the host program uses: for a module's name ("torch") the
/// directory from which the host has imported it or would import it; nothing if it can't. Python
/// installs one. From then on only plug-ins whose libraries lie in that directory are loaded,
/// because the host's copy and another can't share a process. Null takes it away. `resolver` is
/// called on the thread that loads a model, without a lock held. Thread-safe.
using HostModuleResolver = std::function<std::optional<std::string>(const std::string& module)>;
NEUROPOD_EXPORT void set_host_module_resolver(HostModuleResolver resolver);

/// Why this process can't load the plug-in beside what it has loaded or could import, with the
/// remedy; empty if it can. Opens nothing.
NEUROPOD_EXPORT std::string find_library_conflict(const BackendManifest& manifest);

/// Makes the backend for the package at `neuropod_path`, loading its plug-in if needed; the model
/// itself isn't loaded yet. Thread-safe.
/// Errors: backend_not_found (lists every place and candidate with its reason, and what to run),
/// version_conflict (the process holds another copy of the framework), load_failed (dlopen's own
/// message).
NEUROPOD_EXPORT std::unique_ptr<NeuropodBackend> load_backend(
    const std::string& neuropod_path, const std::vector<BackendLoadSpec>& overrides,
    const RuntimeOptions& options);

using BackendFactoryFunction = std::unique_ptr<NeuropodBackend> (*)(
    const std::string& neuropod_path, const RuntimeOptions& options);

/// Called by REGISTER_NEUROPOD_BACKEND while a plug-in is opened. Returns true. Thread-safe. A
/// second registration of a platform is Error(version_conflict).
NEUROPOD_EXPORT bool register_backend(const std::string& name, const std::string& type,
                                      const std::string& version, const std::string& abi_version,
                                      BackendFactoryFunction factory);

}  // namespace neuropod

#define NEUROPOD_CONCAT_INNER(a, b) a##b
#define NEUROPOD_CONCAT(a, b) NEUROPOD_CONCAT_INNER(a, b)

/// Registers the backend class `Class` for packages of platform `type`; `version` is the
/// framework's (semver). Once per plug-in, in a .cc file; with or without a semicolon after it.
#define REGISTER_NEUROPOD_BACKEND(Class, type, version)                                        \
  [[maybe_unused]] static const bool NEUROPOD_CONCAT(neuropod_backend_registered_, __LINE__) = \
      ::neuropod::register_backend(                                                            \
          #Class, type, version, NEUROPOD_ABI_VERSION,                                         \
          [](const std::string& neuropod_path, const ::neuropod::RuntimeOptions& options)      \
              -> std::unique_ptr<::neuropod::NeuropodBackend> {                                \
            return std::make_unique<Class>(neuropod_path, options);                            \
          });
