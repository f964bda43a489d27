#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "neuropod/base/temporary_folder.hh"

namespace neuropod::contract {

using Json = nlohmann::json;

/// What a backend says that it can do. README.md explains each key.
struct Capabilities {
  std::vector<std::string> dtypes;
  int max_rank = 0;
  std::vector<int> string_ranks;
  std::map<std::string, bool> switches;  // the keys whose value is true or false
};

/// What a backend brings: the content of the fixtures file. Thread safety: immutable.
class Fixtures {
 public:
  /// Throws std::runtime_error naming the key that is wrong or missing.
  explicit Fixtures(const std::filesystem::path& file);

  const std::string& platform() const { return platform_; }
  const std::string& model_file() const { return model_file_; }
  const std::string& failing_message() const { return failing_message_; }
  const Capabilities& capabilities() const { return capabilities_; }

  bool has_package(const std::string& name) const { return packages_.count(name) != 0; }
  /// Absolute path of a package that is there.
  const std::string& package(const std::string& name) const { return packages_.at(name); }

  /// Why a capability is limited or a package left out; empty if nothing is said.
  std::string reason(const std::string& key) const;

  /// Keys of capabilities below everything, and of packages that are left out.
  std::vector<std::string> limits() const;

  /// The capabilities as a Markdown table.
  std::string describe() const;

 private:
  void read_capabilities(const Json& json);

  std::string platform_;
  std::string model_file_;
  std::string failing_message_;
  std::map<std::string, std::string> packages_;
  Capabilities capabilities_;
  std::map<std::string, std::string> reasons_;
};

/// The fixtures of this run, which main() has read.
const Fixtures& fixtures();
void set_fixtures(const Fixtures* fixtures);

/// A copy of a package in a temporary folder, its config.json edited, without a manifest.
class PackageVariant {
 public:
  using Edit = std::function<void(Json& config)>;
  explicit PackageVariant(const std::string& package, const Edit& edit = nullptr);

  std::string path() const { return (std::filesystem::path(folder_.path()) / "package").string(); }

  /// Replaces a file of the copy.
  void write(const std::string& name, const std::string& content) const;

 private:
  TemporaryFolder folder_;
};

/// Sets dtype and shape of the input or output `name`; null for a dimension of any size.
void set_spec(Json& config, const std::string& side, const std::string& name,
              const std::string& dtype, const Json& shape);

}  // namespace neuropod::contract
