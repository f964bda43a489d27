#include "neuropod/backends/backend_manifest.hh"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "neuropod/base/error.hh"
#include "neuropod/base/semver.hh"
#include "neuropod/package/json/key_reader.hh"

namespace neuropod {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kManifestVersion = 1;
constexpr size_t kLargestManifest = size_t{1} << 20;

// One manifest while it is read: every complaint names its file.
class ManifestReader {
 public:
  explicit ManifestReader(const fs::path& directory)
      : directory_(fs::absolute(directory).lexically_normal()),
        path_((directory_ / kBackendManifestName).string()) {
    json_ = parse_json(read_text(), [this](size_t, const std::string& problem) { fail(problem); });
    if (!json_.is_object()) fail(fmt::format("must hold an object, not {}", json_.type_name()));
  }

  BackendManifest read() const {
    check_version();
    BackendManifest manifest;
    manifest.platform = required_text("platform");
    manifest.framework = required_text("framework");
    manifest.framework_version = required_text("framework_version");
    manifest.neuropod_abi = required_text("neuropod_abi");
    manifest.library = absolute(required_text("library"));
    manifest.python_module = optional_text("python_module");
    manifest.libraries_in_module = libraries_in_module(manifest.python_module);
    manifest.libraries = libraries(manifest.libraries_in_module);
    manifest.library_build_ids = build_ids(manifest);
    manifest.gpu = gpu();
    manifest.directory = directory_.string();
    check_semver(manifest.framework_version);
    return manifest;
  }

 private:
  std::string read_text() const {
    std::error_code ignored;
    if (fs::exists(path_, ignored) && !fs::is_regular_file(path_, ignored)) fail("is no file");
    std::ifstream file(path_, std::ios::binary);
    if (!file) fail("can't be opened");
    std::string text(kLargestManifest + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(file.gcount()));
    if (text.size() > kLargestManifest) fail("is larger than 1 MiB");
    return text;
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw_error(ErrorCode::kLoadFailed, fmt::format("plug-in manifest '{}' {}", path_, problem));
  }

  [[noreturn]] void fail_key(const char* key, const std::string& expected,
                             const Json& found) const {
    fail(fmt::format("has the wrong value for '{}': expected {}, found {}", key, expected,
                     found.dump(-1, ' ', false, Json::error_handler_t::replace)));
  }

  void check_version() const {
    const auto version = json_.find("manifest_version");
    if (version == json_.end()) fail("lacks the key 'manifest_version'");
    if (!version->is_number_integer() || *version != kManifestVersion) {
      fail_key("manifest_version", std::to_string(kManifestVersion), *version);
    }
  }

  std::string required_text(const char* key) const {
    const auto value = json_.find(key);
    if (value == json_.end()) fail(fmt::format("lacks the key '{}'", key));
    if (!value->is_string() || value->get_ref<const std::string&>().empty()) {
      fail_key(key, "a text that isn't empty", *value);
    }
    return value->get<std::string>();
  }

  std::string optional_text(const char* key) const {
    const auto value = json_.find(key);
    if (value == json_.end() || value->is_null()) return "";
    if (!value->is_string()) fail_key(key, "a text", *value);
    return value->get<std::string>();
  }

  bool gpu() const {
    const auto value = json_.find("gpu");
    if (value == json_.end()) return false;
    if (!value->is_boolean()) fail_key("gpu", "true or false", *value);
    return value->get<bool>();
  }

  std::vector<std::string> texts(const char* key, const std::string& expected) const {
    const auto value = json_.find(key);
    if (value == json_.end()) return {};
    if (!value->is_array()) fail_key(key, expected, *value);
    for (const Json& item : *value) {
      if (!item.is_string()) fail_key(key, expected, *value);
    }
    return value->get<std::vector<std::string>>();
  }

  bool libraries_in_module(const std::string& python_module) const {
    const std::string base = optional_text("libraries_relative_to");
    if (base.empty() || base == "manifest") return false;
    if (base != "python_module") {
      fail_key("libraries_relative_to", "\"manifest\" or \"python_module\"",
               json_.at("libraries_relative_to"));
    }
    if (python_module.empty()) fail("has libraries_relative_to python_module, and no such module");
    return true;
  }

  std::vector<std::string> libraries(bool in_module) const {
    std::vector<std::string> paths = texts("libraries", "a list of paths");
    for (std::string& path : paths) {
      if (!in_module) {
        path = absolute(path);
      } else if (path.empty() || fs::path(path).is_absolute()) {
        fail_key("libraries", "paths relative to the module's folder", json_.at("libraries"));
      }
    }
    if (in_module && paths.empty()) fail("has libraries_relative_to and no libraries");
    return paths;
  }

  std::vector<std::string> build_ids(const BackendManifest& manifest) const {
    const char* const key = "library_build_ids";
    std::vector<std::string> ids = texts(key, "a list of build-ids");
    if (manifest.libraries_in_module && ids.size() != manifest.libraries.size()) {
      fail(fmt::format("needs one of '{}' for each of its {} libraries, found {}", key,
                       manifest.libraries.size(), ids.size()));
    }
    return ids;
  }

  void check_semver(const std::string& version) const {
    try {
      compare_versions(version, version);
    } catch (const Error& error) {
      fail(fmt::format("has the wrong value for 'framework_version': {}", error.message()));
    }
  }

  std::string absolute(const std::string& path) const {
    return (directory_ / path).lexically_normal().string();
  }

  const fs::path directory_;
  const std::string path_;
  Json json_;
};

}  // namespace

BackendManifest read_backend_manifest(const std::string& directory) {
  return ManifestReader(directory).read();
}

bool range_takes(const std::string& range, const std::string& version) {
  const bool satisfied = version_satisfies(version, range);
  return satisfied || range == "*";
}

}  // namespace neuropod
