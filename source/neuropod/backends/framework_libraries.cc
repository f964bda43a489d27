#include "neuropod/backends/framework_libraries.hh"

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "neuropod/backends/library_conflicts.hh"
#include "neuropod/base/shared_library.hh"

namespace neuropod {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> module_above(const BackendManifest& manifest) {
  std::error_code ignored;
  fs::path folder = manifest.directory;
  while (folder.has_relative_path()) {
    folder = folder.parent_path();
    fs::path module = folder / manifest.python_module;
    if (fs::exists(module / manifest.libraries.front(), ignored)) return module;
  }
  return std::nullopt;
}

// Process-wide, because the host of a worker is: what it knows of its Python's modules.
struct ModuleFolders {
  std::mutex mutex;
  std::map<std::string, std::string> by_module;
};

ModuleFolders& module_folders() {
  static auto* const instance = new ModuleFolders;
  return *instance;
}

std::optional<fs::path> folder_of_hosts_module(const std::string& module) {
  std::lock_guard lock(module_folders().mutex);
  const auto found = module_folders().by_module.find(module);
  if (found == module_folders().by_module.end()) return std::nullopt;
  return found->second;
}

std::optional<fs::path> module_folder(const BackendManifest& manifest) {
  if (auto folder = folder_of_hosts_module(manifest.python_module)) return folder;
  if (const auto folder = find_host_module(manifest.python_module)) return *folder;
  return module_above(manifest);
}

std::string describe_other_build(const BackendManifest& manifest, const std::string& path,
                                 const std::optional<LibraryIdentity>& found,
                                 const std::string& expected) {
  return fmt::format(
      "it was compiled against another build of {} {}: '{}' {}, expected build-id {}; the "
      "plug-in's "
      "wheel for the installed version fits, or `neuropod backends install {}` builds one",
      manifest.framework, manifest.framework_version, path,
      found ? fmt::format("has the build-id {}", found->build_id.empty() ? "none" : found->build_id)
            : "is missing",
      expected, manifest.platform);
}

}  // namespace

void set_module_folders(const std::map<std::string, std::string>& folders) {
  std::lock_guard lock(module_folders().mutex);
  for (const auto& [module, folder] : folders) module_folders().by_module[module] = folder;
}

std::string locate_framework_libraries(BackendManifest* manifest) {
  if (!manifest->libraries_in_module) return "";
  const std::optional<fs::path> folder = module_folder(*manifest);
  if (!folder) {
    return fmt::format(
        "there is no Python module '{}' for it: this program can't import one, and none lies in a "
        "folder above '{}'; {} {} has it",
        manifest->python_module, manifest->directory, manifest->framework,
        manifest->framework_version);
  }
  for (size_t i = 0; i < manifest->libraries.size(); ++i) {
    const std::string path = (*folder / manifest->libraries[i]).lexically_normal().string();
    const std::optional<LibraryIdentity> found = read_library_identity(path);
    const std::string& expected = manifest->library_build_ids[i];
    if (!found || found->build_id != expected) {
      return describe_other_build(*manifest, path, found, expected);
    }
    manifest->libraries[i] = path;
  }
  return "";
}

}  // namespace neuropod
