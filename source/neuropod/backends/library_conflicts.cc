#include "neuropod/backends/library_conflicts.hh"

#include <filesystem>
#include <mutex>

#include <fmt/format.h>

namespace neuropod {
namespace {

namespace fs = std::filesystem;

// Process-wide, because the host program is: there is one interpreter, and one copy of each
// framework.
struct HostModules {
  std::mutex mutex;
  HostModuleResolver resolver;
};

HostModules& host_modules() {
  static auto* const instance = new HostModules;
  return *instance;
}

HostModuleResolver host_module_resolver() {
  std::lock_guard lock(host_modules().mutex);
  return host_modules().resolver;
}

const LibraryIdentity* find_soname(const std::vector<LibraryIdentity>& mapped,
                                   const std::string& soname) {
  for (const LibraryIdentity& library : mapped) {
    if (library.soname == soname) return &library;
  }
  return nullptr;
}

std::string canonical(const fs::path& path) {
  std::error_code ignored;
  return fs::weakly_canonical(path, ignored).string();
}

bool lies_below(const std::string& path, const std::string& directory) {
  return path.size() > directory.size() && path.compare(0, directory.size(), directory) == 0 &&
         path[directory.size()] == '/';
}

// The path that `library` would have if its framework was the copy in `directory`: what follows the
// last "/<name of the directory>/" of it.
fs::path counterpart(const std::string& library, const fs::path& directory) {
  const std::string marker = fmt::format("/{}/", directory.filename().string());
  const size_t at = library.rfind(marker);
  if (at == std::string::npos) return {};
  return directory / library.substr(at + marker.size());
}

// How a library of a plug-in relates to the copy of its framework in `directory`.
enum class Origin { kThatCopy, kAnotherCopy, kElsewhere };

// Package managers link environments' files to one store, so the same file may lie in many
// directories.
Origin origin_of(const std::string& library, const std::string& directory) {
  if (lies_below(canonical(library), canonical(directory))) return Origin::kThatCopy;
  const fs::path other = counterpart(library, directory);
  if (other.empty()) return Origin::kElsewhere;
  const auto ours = read_library_identity(library);
  const auto theirs = read_library_identity(other.string());
  const bool same = ours && theirs && ours->same_content(*theirs);
  return same ? Origin::kThatCopy : Origin::kAnotherCopy;
}

// The library that shows that the plug-in isn't for the copy in `directory`; null if it is. What
// lies elsewhere (a library that the framework itself needs) shows nothing, unless everything does.
const std::string* find_stranger(const std::vector<std::string>& libraries,
                                 const std::string& directory) {
  bool belongs = false;
  for (const std::string& library : libraries) {
    const Origin origin = origin_of(library, directory);
    if (origin == Origin::kAnotherCopy) return &library;
    belongs |= origin == Origin::kThatCopy;
  }
  return belongs || libraries.empty() ? nullptr : &libraries.back();
}

}  // namespace

void set_host_module_resolver(HostModuleResolver resolver) {
  std::lock_guard lock(host_modules().mutex);
  host_modules().resolver = std::move(resolver);
}

std::optional<std::string> find_host_module(const std::string& module) {
  const HostModuleResolver resolver = host_module_resolver();
  return resolver ? resolver(module) : std::nullopt;
}

std::string find_host_conflict(const BackendManifest& manifest) {
  if (manifest.python_module.empty()) return "";
  const std::optional<std::string> directory = find_host_module(manifest.python_module);
  if (!directory) return "";
  const std::string* stranger = find_stranger(manifest.libraries, *directory);
  if (stranger == nullptr) return "";
  return fmt::format(
      "it needs {0} {1} from '{2}', but this program's module '{3}' is the one in '{4}', and one "
      "process can hold one copy of a framework; `neuropod backends install {5}` adds a plug-in "
      "for "
      "that copy, and use_ope=True runs the model in a process of its own",
      manifest.framework, manifest.framework_version, *stranger, manifest.python_module, *directory,
      manifest.platform);
}

std::string find_mapped_conflict(const BackendManifest& manifest) {
  const std::vector<LibraryIdentity> mapped = mapped_libraries();
  for (const std::string& path : manifest.libraries) {
    const std::optional<LibraryIdentity> wanted = read_library_identity(path);
    if (!wanted) continue;
    const LibraryIdentity* loaded = find_soname(mapped, wanted->soname);
    if (loaded == nullptr || loaded->same_content(*wanted)) continue;
    return fmt::format(
        "it needs {} from '{}' ({} {}), but this process has loaded another one from '{}', and one "
        "process can hold one copy of a framework; use_ope=True runs the model in a process of its "
        "own",
        wanted->soname, path, manifest.framework, manifest.framework_version, loaded->path);
  }
  return "";
}

std::string find_library_conflict(const BackendManifest& manifest) {
  std::string conflict = find_host_conflict(manifest);
  return conflict.empty() ? find_mapped_conflict(manifest) : conflict;
}

void open_framework_libraries(const BackendManifest& manifest) {
  for (const std::string& path : manifest.libraries) {
    const std::optional<LibraryIdentity> wanted = read_library_identity(path);
    const std::vector<LibraryIdentity> mapped = mapped_libraries();
    // A copy under another path is opened a second time by the loader, which would make two of it.
    if (wanted && find_soname(mapped, wanted->soname) != nullptr) continue;
    open_library(path);
  }
}

}  // namespace neuropod
