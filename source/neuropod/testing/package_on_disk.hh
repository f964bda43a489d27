#pragma once

#include <string>

#include "neuropod/base/temporary_folder.hh"

namespace neuropod {

/// A package written for one test, as a directory that the destructor removes.
class PackageOnDisk {
 public:
  /// `config`: the content of config.json. `echo_model`: that of 0/data/echo.json; none if empty.
  explicit PackageOnDisk(const std::string& config, const std::string& echo_model = "");

  const std::string& path() const noexcept { return folder_.path(); }

  /// Writes a file of the package, making the folders it needs.
  void write(const std::string& name, const std::string& content) const;

 private:
  TemporaryFolder folder_;
};

/// Sets an environment variable for as long as it lives; an empty value unsets it. Not for tests
/// that run threads.
class ScopedEnvironment {
 public:
  ScopedEnvironment(const std::string& name, const std::string& value);
  ~ScopedEnvironment();
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;

 private:
  static void set(const std::string& name, const std::string& value);
  const std::string name_;
  const std::string previous_;
};

/// config.json for platform "echo": one float32 input "x" and one float32 output "y", both (n).
/// `more`: further keys, each followed by a comma, e.g. R"("stateful": true,)".
std::string one_input_config(const std::string& more = "", const std::string& platform = "echo");

}  // namespace neuropod
