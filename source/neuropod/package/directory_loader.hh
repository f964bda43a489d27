#pragma once

#include <memory>
#include <string>
#include <vector>

#include "neuropod/internal/neuropod_loader.hh"

namespace neuropod {

/// A package that is a folder. Links inside it are followed.
class DirectoryLoader : public NeuropodLoader {
 public:
  /// `path` is a folder; it is kept absolute, so that the process may change its own.
  explicit DirectoryLoader(const std::string& path);

  std::unique_ptr<std::istream> get_istream_for_file(const std::string& path) override;
  std::string get_file_path(const std::string& path) override;
  std::string get_hash_for_file(const std::string& path) override;
  std::string ensure_local() override;
  std::vector<std::string> list_files() override;
  uint64_t get_file_size(const std::string& path) override;

 private:
  std::string root_;
};

}  // namespace neuropod
