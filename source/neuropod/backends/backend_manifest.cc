#include "neuropod/backends/backend_manifest.hh"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "neuropod/base/error.hh"
#include "neuropod/base/semver.hh"

namespace neuropod {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kManifestVersion = 1;

// One manifest while it is read: every complaint names its file.
class ManifestReader {
 public:
  explicit ManifestReader(const fs::path& directory)
      : directory_(fs::absolute(directory).lexically_normal()),
        path_((directory_ / kBackendManifestName).string()) {
    std::ifstream file(path_);
    if (!file) fail("can't be opened");
    try {
      json_ = Json::parse(file);
    } catch (const Json::exception& exception) {
      fail(fmt::format("is no valid JSON: {}", exception.what()));
    }
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
    manifest.libraries = libraries();
    manifest.python_module = optional_text("python_module");
    manifest.gpu = gpu();
    manifest.directory = directory_.string();
    check_semver(manifest.framework_version);
    return manifest;
  }

 private:
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

  std::vector<std::string> libraries() const {
    std::vector<std::string> paths;
    const auto value = json_.find("libraries");
    if (value == json_.end()) return paths;
    if (!value->is_array()) fail_key("libraries", "a list of paths", *value);
    for (const Json& item : *value) {
      if (!item.is_string()) fail_key("libraries", "a list of paths", *value);
      paths.push_back(absolute(item.get<std::string>()));
    }
    return paths;
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
