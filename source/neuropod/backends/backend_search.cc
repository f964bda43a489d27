#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "neuropod/backends/backend_manifest.hh"
#include "neuropod/backends/framework_libraries.hh"
#include "neuropod/base/error.hh"
#include "neuropod/base/logging.hh"
#include "neuropod/base/semver.hh"
#include "neuropod/base/shared_library.hh"
#include "neuropod/internal/backend_registration.hh"

namespace neuropod {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultBaseDir = "/usr/local/lib/neuropod";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

BackendCandidate candidate_of_directory(const fs::path& directory, const std::string& source) {
  BackendCandidate candidate;
  candidate.source = source;
  try {
    candidate.manifest = read_backend_manifest(directory.string());
  } catch (const Error& error) {
    candidate.manifest.directory = directory.string();
    candidate.rejected = error.message();
  }
  return candidate;
}

// A library that comes without a manifest is taken at the caller's word.
BackendCandidate candidate_without_manifest(const BackendLoadSpec& override) {
  BackendCandidate candidate;
  candidate.source = "override";
  BackendManifest& manifest = candidate.manifest;
  manifest.platform = override.type;
  manifest.framework = override.type;
  manifest.framework_version = override.version;
  manifest.neuropod_abi = std::string(NEUROPOD_ABI_VERSION);
  manifest.library = fs::absolute(override.path).lexically_normal().string();
  manifest.directory = fs::path(manifest.library).parent_path().string();
  return candidate;
}

void check_declared(const BackendLoadSpec& override, BackendCandidate* candidate) {
  if (!candidate->rejected.empty()) return;
  const BackendManifest& manifest = candidate->manifest;
  if (manifest.platform != override.type) {
    candidate->rejected = fmt::format("the override is for platform '{}', its manifest says '{}'",
                                      override.type, manifest.platform);
    return;
  }
  try {
    if (override.version.empty() ||
        compare_versions(override.version, manifest.framework_version) == 0) {
      return;
    }
    candidate->rejected = fmt::format("the override says version {}, its manifest {}",
                                      override.version, manifest.framework_version);
  } catch (const Error& error) {
    candidate->rejected = error.message();
  }
}

BackendCandidate candidate_of_override(const BackendLoadSpec& override) {
  const fs::path path(override.path);
  std::error_code ignored;
  BackendCandidate candidate;
  if (fs::is_directory(path, ignored)) {
    candidate = candidate_of_directory(path, "override");
  } else if (fs::exists(path.parent_path() / kBackendManifestName, ignored)) {
    candidate = candidate_of_directory(path.parent_path(), "override");
    const std::string& library = candidate.manifest.library;
    if (candidate.rejected.empty() && !fs::equivalent(library, path, ignored)) {
      candidate = candidate_without_manifest(override);
    }
  } else {
    candidate = candidate_without_manifest(override);
  }
  check_declared(override, &candidate);
  return candidate;
}

bool newer(const BackendCandidate& a, const BackendCandidate& b) {
  const std::string& version_a = a.manifest.framework_version;
  const std::string& version_b = b.manifest.framework_version;
  if (version_a.empty() || version_b.empty()) return !version_a.empty() && version_b.empty();
  const int order = compare_versions(version_a, version_b);
  return order != 0 ? order > 0 : a.manifest.directory > b.manifest.directory;
}

std::string why_unusable(const BackendManifest& manifest, const std::string& version_range) {
  if (manifest.neuropod_abi != NEUROPOD_ABI_VERSION) {
    return fmt::format(
        "built for neuropod ABI {}, this is ABI {}: `neuropod backends install {}` builds it again",
        manifest.neuropod_abi, NEUROPOD_ABI_VERSION, manifest.platform);
  }
  try {
    if (!range_takes(version_range, manifest.framework_version)) {
      return fmt::format("version {} isn't in the range '{}'", manifest.framework_version,
                         version_range);
    }
  } catch (const Error& error) {
    return error.message();
  }
  std::error_code ignored;
  if (!fs::exists(manifest.library, ignored)) {
    return fmt::format("its library '{}' doesn't exist", manifest.library);
  }
  if (manifest.libraries_in_module) return "";  // looked for afterwards
  for (const std::string& library : manifest.libraries) {
    if (!fs::exists(library, ignored)) {
      return fmt::format("the framework's library '{}' doesn't exist: was {} {} removed?", library,
                         manifest.framework, manifest.framework_version);
    }
  }
  return "";
}

// Says at debug level that a folder looks like a plug-in and isn't one of ours: those of
// uber/neuropod lie under the same NEUROPOD_BASE_DIR and have no manifest. Opens nothing.
void note_foreign_plugin(const fs::path& directory) {
  if (!log_enabled(LogLevel::kDebug)) return;
  std::error_code error;
  for (fs::directory_iterator file(directory, error), end; !error && file != end;
       file.increment(error)) {
    const std::string name = file->path().filename().string();
    if (name.rfind("libneuropod_", 0) != 0 || name.find("_backend.so") == std::string::npos) {
      continue;
    }
    log(LogLevel::kDebug,
        fmt::format("'{}' is ignored: it has a {} and no {}, so it is a plug-in of Neuropod 0.3 or "
                    "earlier; `neuropod backends install` makes plug-ins for this version",
                    directory.string(), name, kBackendManifestName));
    return;
  }
}

// The layout of uber/neuropod: <base>/<its version>/backends/<platform>_<framework version>[_gpu].
void note_foreign_plugins_below(const fs::path& base) {
  if (!log_enabled(LogLevel::kDebug)) return;
  std::error_code error;
  for (fs::directory_iterator version(base, error), end; !error && version != end;
       version.increment(error)) {
    std::error_code ignored;
    for (fs::directory_iterator plugin(version->path() / "backends", ignored);
         !ignored && plugin != end; plugin.increment(ignored)) {
      note_foreign_plugin(plugin->path());
    }
  }
}

// Collects the candidates of one search, place by place.
class Collector {
 public:
  Collector(const std::string& platform, const std::string& version_range)
      : platform_(platform), version_range_(version_range) {}

  void add_overrides(const std::vector<BackendLoadSpec>& overrides) {
    for (auto override = overrides.rbegin(); override != overrides.rend(); ++override) {
      if (!platform_.empty() && override->type != platform_) continue;
      add(candidate_of_override(*override));
    }
  }

  void add_place(const std::string& source, const std::string& place) {
    if (place.empty()) return;
    const std::string path = fs::absolute(place).lexically_normal().string();
    search_.searched.push_back(fmt::format("{} ({})", path, source));
    std::vector<BackendCandidate> found;
    std::error_code error;
    if (fs::exists(fs::path(path) / kBackendManifestName, error)) {
      found.push_back(candidate_of_directory(path, source));
    }
    for (fs::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
      if (fs::exists(entry->path() / kBackendManifestName, error)) {
        found.push_back(candidate_of_directory(entry->path(), source));
      } else {
        note_foreign_plugin(entry->path());
      }
      error.clear();
    }
    std::sort(found.begin(), found.end(), newer);
    for (BackendCandidate& candidate : found) add(std::move(candidate));
  }

  BackendSearch take() { return std::move(search_); }

 private:
  // A manifest that can't be read may be the one that is wanted: it is listed for every platform.
  void add(BackendCandidate candidate) {
    const bool readable = !candidate.manifest.platform.empty();
    if (readable && !platform_.empty() && candidate.manifest.platform != platform_) return;
    std::error_code ignored;
    const fs::path key = readable ? candidate.manifest.library : candidate.manifest.directory;
    if (!seen_.insert(fs::weakly_canonical(key, ignored).string()).second) return;
    if (candidate.rejected.empty()) {
      candidate.rejected = why_unusable(candidate.manifest, version_range_);
    }
    if (candidate.rejected.empty()) {
      candidate.rejected = locate_framework_libraries(&candidate.manifest);
    }
    search_.candidates.push_back(std::move(candidate));
  }

  const std::string platform_;
  const std::string version_range_;
  std::set<std::string> seen_;
  BackendSearch search_;
};

void add_listed_places(const std::string& list, Collector* collector) {
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(':', begin), list.size());
    collector->add_place("NEUROPOD_BACKEND_PATH", list.substr(begin, end - begin));
    begin = end + 1;
  }
}

std::string folder_beside_library() {
  const std::string library = library_path_of(reinterpret_cast<const void*>(&find_backends));
  if (library.empty()) return "";
  return (fs::absolute(library).parent_path() / "neuropod" / "backends").string();
}

}  // namespace

std::string user_backend_folder() {
  const std::string data_home = environment("XDG_DATA_HOME");
  if (!data_home.empty()) return (fs::path(data_home) / "neuropod" / "backends").string();
  const std::string home = environment("HOME");
  if (home.empty()) return "";
  return (fs::path(home) / ".local" / "share" / "neuropod" / "backends").string();
}

BackendSearch find_backends(const std::vector<BackendLoadSpec>& overrides,
                            const std::string& platform, const std::string& version_range) {
  Collector collector(platform, version_range);
  collector.add_overrides(overrides);
  add_listed_places(environment("NEUROPOD_BACKEND_PATH"), &collector);
  collector.add_place("beside the library", folder_beside_library());
  collector.add_place("user data folder", user_backend_folder());
  const std::string base = environment("NEUROPOD_BASE_DIR");
  const fs::path base_folder = base.empty() ? kDefaultBaseDir : base;
  collector.add_place("NEUROPOD_BASE_DIR", (base_folder / "backends").string());
  note_foreign_plugins_below(base_folder);
  return collector.take();
}

}  // namespace neuropod
