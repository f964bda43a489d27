#include "neuropod/testing/package_on_disk.hh"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace neuropod {

PackageOnDisk::PackageOnDisk(const std::string& config, const std::string& echo_model) {
  write("config.json", config);
  if (!echo_model.empty()) write("0/data/echo.json", echo_model);
}

void PackageOnDisk::write(const std::string& name, const std::string& content) const {
  const std::filesystem::path file = std::filesystem::path(path()) / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
}

ScopedEnvironment::ScopedEnvironment(const std::string& name, const std::string& value)
    : name_(name),
      previous_(std::getenv(name.c_str()) != nullptr ? std::getenv(name.c_str()) : "") {
  set(name, value);
}

ScopedEnvironment::~ScopedEnvironment() { set(name_, previous_); }

void ScopedEnvironment::set(const std::string& name, const std::string& value) {
  if (value.empty()) {
    unsetenv(name.c_str());
  } else {
    setenv(name.c_str(), value.c_str(), 1);
  }
}

std::string one_input_config(const std::string& more, const std::string& platform) {
  return R"({"name": "tested", "format_version": 1, )" + more + R"("platform": ")" + platform +
         R"(",
    "input_spec": [{"name": "x", "dtype": "float32", "shape": ["n"]}],
    "output_spec": [{"name": "y", "dtype": "float32", "shape": ["n"]}]})";
}

}  // namespace neuropod
