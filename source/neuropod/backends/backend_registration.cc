#include "neuropod/internal/backend_registration.hh"

#include <map>
#include <mutex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "neuropod/backends/backend_manifest.hh"
#include "neuropod/backends/library_conflicts.hh"
#include "neuropod/backends/metrics_registry.hh"
#include "neuropod/backends/neuropod_backend.hh"
#include "neuropod/base/error.hh"
#include "neuropod/base/logging.hh"
#include "neuropod/base/semver.hh"
#include "neuropod/internal/config_utils.hh"
#include "neuropod/package/checked_package.hh"

namespace neuropod {
namespace {

struct RegisteredBackend {
  std::string class_name;
  std::string version;
  std::string library;  // of the plug-in; empty if it wasn't opened by us
  BackendFactoryFunction factory = nullptr;
};

// Process-wide, because plug-ins can't be unloaded and a framework can be in a process only once.
// Never destroyed: threads may load models while the process ends.
struct Registry {
  std::mutex opening;  // held while a plug-in is opened; taken before `mutex`
  std::mutex mutex;    // guards `backends`
  std::map<std::string, RegisteredBackend> backends;
};

Registry& registry() {
  static auto* const instance = new Registry;
  return *instance;
}

// The plug-in that this thread is opening. An exception can't pass through dlopen, so what goes
// wrong in register_backend() waits here.
struct Opening {
  std::string library;
  std::string problem;
};
thread_local Opening* current_opening = nullptr;

std::string name_range(const std::string& range) {
  return range == "*" ? "any version" : fmt::format("version {}", range);
}

std::string describe_place(const RegisteredBackend& backend) {
  return backend.library.empty() ? "the program itself" : fmt::format("'{}'", backend.library);
}

std::optional<RegisteredBackend> find_registered(const std::string& platform) {
  std::lock_guard lock(registry().mutex);
  const auto found = registry().backends.find(platform);
  if (found == registry().backends.end()) return std::nullopt;
  return found->second;
}

// What was found, for the message: plug-ins of the platform with the reason against each, others by
// name.
std::string describe_found(const std::vector<BackendLoadSpec>& overrides,
                           const std::vector<BackendCandidate>& candidates,
                           const std::string& platform) {
  std::vector<std::string> found;
  for (const BackendCandidate& candidate : candidates) {
    const BackendManifest& manifest = candidate.manifest;
    found.push_back(manifest.platform.empty()
                        ? candidate.rejected
                        : fmt::format("{} {} in '{}' ({})", manifest.platform,
                                      manifest.framework_version, manifest.directory,
                                      candidate.rejected));
  }
  for (const BackendCandidate& other : find_backends(overrides, "").candidates) {
    const BackendManifest& manifest = other.manifest;
    if (manifest.platform.empty() || manifest.platform == platform) continue;
    found.push_back(fmt::format("{} {}", manifest.platform, manifest.framework_version));
  }
  return found.empty() ? "no plug-in" : fmt::format("{}", fmt::join(found, ", "));
}

constexpr const char* kForAnotherVersion =
    " (with --framework-version or --from-prefix for another version than this environment's)";

[[noreturn]] void throw_not_found(const std::string& platform, const std::string& range,
                                  const std::vector<BackendLoadSpec>& overrides,
                                  const BackendSearch& search) {
  throw_error(ErrorCode::kBackendNotFound,
              fmt::format("backend for platform '{0}' ({1}) not found; looked in: {2}; found: {3}; "
                          "`neuropod backends install {0}`{4} adds it",
                          platform, name_range(range), fmt::join(search.searched, ", "),
                          describe_found(overrides, search.candidates, platform),
                          range == "*" ? "" : kForAnotherVersion));
}

void check_registered_version(const RegisteredBackend& backend, const std::string& platform,
                              const std::string& range) {
  if (range_takes(range, backend.version)) return;
  throw_error(
      ErrorCode::kVersionConflict,
      fmt::format("the package needs {} of platform '{}', but this process runs {} (from {}), "
                  "and one process can hold one copy of a framework; use_ope=True runs the "
                  "model in a process of its own",
                  name_range(range), platform, backend.version, describe_place(backend)));
}

void warn_of_late_overrides(const RegisteredBackend& backend, const std::string& platform,
                            const BackendSearch& overridden) {
  for (const BackendCandidate& candidate : overridden.candidates) {
    if (candidate.source != "override" || !candidate.rejected.empty()) continue;
    if (candidate.manifest.library == backend.library) return;
    log(LogLevel::kWarn,
        fmt::format(
            "the override '{}' has no effect: this process serves platform '{}' by {} already",
            candidate.manifest.library, platform, describe_place(backend)));
    return;
  }
}

// Opens the plug-in, which registers itself. Called with `opening` held.
RegisteredBackend open_plugin(const BackendManifest& manifest, const std::string& range) {
  Opening opening{manifest.library, ""};
  current_opening = &opening;
  try {
    open_framework_libraries(manifest);
    open_library(manifest.library);
  } catch (...) {
    current_opening = nullptr;
    throw;
  }
  current_opening = nullptr;
  if (!opening.problem.empty()) throw_error(ErrorCode::kVersionConflict, opening.problem);
  std::optional<RegisteredBackend> backend = find_registered(manifest.platform);
  if (!backend) {
    throw_error(ErrorCode::kLoadFailed,
                fmt::format("plug-in '{}' registered nothing for platform '{}'; has it a "
                            "REGISTER_NEUROPOD_BACKEND for it?",
                            manifest.library, manifest.platform));
  }
  check_registered_version(*backend, manifest.platform, range);
  log(LogLevel::kDebug,
      fmt::format("opened plug-in '{}' for platform '{}', {} {}", manifest.library,
                  manifest.platform, manifest.framework, manifest.framework_version));
  return *backend;
}

RegisteredBackend find_or_open(const std::string& platform, const std::string& range,
                               const std::vector<BackendLoadSpec>& overrides) {
  BackendSearch search = find_backends(overrides, platform, range);
  std::string conflict;
  for (BackendCandidate& candidate : search.candidates) {
    // Asks the host, so no lock may be held yet.
    if (candidate.rejected.empty())
      candidate.rejected = find_host_conflict(candidate.manifest);
    else
      continue;
    if (conflict.empty()) conflict = candidate.rejected;
  }

  std::lock_guard lock(registry().opening);
  if (std::optional<RegisteredBackend> backend = find_registered(platform)) {
    check_registered_version(*backend, platform, range);
    warn_of_late_overrides(*backend, platform, search);
    return *backend;
  }
  for (BackendCandidate& candidate : search.candidates) {
    if (!candidate.rejected.empty()) continue;
    candidate.rejected = find_mapped_conflict(candidate.manifest);
    if (candidate.rejected.empty()) return open_plugin(candidate.manifest, range);
    if (conflict.empty()) conflict = candidate.rejected;
  }
  if (!conflict.empty()) {
    throw_error(ErrorCode::kVersionConflict,
                fmt::format("backend for platform '{}' ({}) can't be loaded: {}", platform,
                            name_range(range), conflict));
  }
  throw_not_found(platform, range, overrides, search);
}

BackendFactoryFunction factory_for(const ModelConfig& config,
                                   const std::vector<BackendLoadSpec>& overrides) {
  const std::string& range = config.platform_version_semver;
  if (overrides.empty()) {
    if (const std::optional<RegisteredBackend> backend = find_registered(config.platform)) {
      check_registered_version(*backend, config.platform, range);
      return backend->factory;
    }
  }
  return find_or_open(config.platform, range, overrides).factory;
}

// Why a registration is refused; empty if it isn't.
std::string refuse(const std::string& name, const std::string& type, const std::string& version,
                   const std::string& abi_version, const std::string& library) {
  if (abi_version != NEUROPOD_ABI_VERSION) {
    return fmt::format("{} was built for neuropod ABI {}, this is ABI {}: build the plug-in again",
                       name, abi_version, NEUROPOD_ABI_VERSION);
  }
  try {
    compare_versions(version, version);
  } catch (const Error& error) {
    return fmt::format("{} can't be registered: {}", name, error.message());
  }
  const std::optional<RegisteredBackend> present = find_registered(type);
  if (!present) return "";
  return fmt::format(
      "{} ({} {}) can't be registered for platform '{}': {} from {} serves it already; "
      "use_ope=True runs a model in a process of its own",
      name, library.empty() ? "the program" : library, version, type, present->class_name,
      describe_place(*present));
}

std::unique_ptr<NeuropodBackend> open_backend(const std::string& neuropod_path,
                                              const std::vector<BackendLoadSpec>& overrides,
                                              const RuntimeOptions& options) {
  if (options.use_ope) {
    throw_error(ErrorCode::kInvalidArgument,
                fmt::format("can't load '{}' with use_ope: load_backend() loads in this process; "
                            "neuropod::Neuropod starts a process for the model",
                            neuropod_path));
  }
  const std::unique_ptr<ModelConfig> config = peek_checked_config(neuropod_path, options);
  BackendFactoryFunction factory = nullptr;
  try {
    factory = factory_for(*config, overrides);
  } catch (const Error& error) {
    throw error.with_context(
        fmt::format("can't load model '{}' from '{}'", config->name, neuropod_path));
  }
  return factory(neuropod_path, options);
}

}  // namespace

bool register_backend(const std::string& name, const std::string& type, const std::string& version,
                      const std::string& abi_version, BackendFactoryFunction factory) {
  const std::string library = current_opening != nullptr ? current_opening->library : "";
  const std::string problem = refuse(name, type, version, abi_version, library);
  if (!problem.empty()) {
    if (current_opening == nullptr) throw_error(ErrorCode::kVersionConflict, problem);
    current_opening->problem = problem;
    return false;
  }
  std::lock_guard lock(registry().mutex);
  registry().backends.emplace(type, RegisteredBackend{name, version, library, factory});
  return true;
}

std::unique_ptr<NeuropodBackend> load_backend(const std::string& neuropod_path,
                                              const std::vector<BackendLoadSpec>& overrides,
                                              const RuntimeOptions& options) {
  try {
    return open_backend(neuropod_path, overrides, options);
  } catch (const Error& error) {
    internal::count_failed_load(error.code());
    throw;
  }
}

}  // namespace neuropod
