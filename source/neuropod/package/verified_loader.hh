#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "neuropod/base/temporary_folder.hh"
#include "neuropod/internal/neuropod_loader.hh"
#include "neuropod/package/manifest.hh"

namespace neuropod {

/// Reads another loader's package, and hands out what has the hashes of a manifest and nothing
/// else: each file is read into memory, verified there and given from there; a path is one of a
/// private copy. Names are exact. It has the files of the manifest and the manifest itself.
class VerifiedLoader : public NeuropodLoader {
 public:
  /// `manifest`: bytes whose origin is known.
  VerifiedLoader(std::unique_ptr<NeuropodLoader> package, std::string manifest);

  std::unique_ptr<std::istream> get_istream_for_file(const std::string& path) override;
  std::string get_file_path(const std::string& path) override;
  std::string get_hash_for_file(const std::string& path) override;
  std::string ensure_local() override;
  std::vector<std::string> list_files() override;
  uint64_t get_file_size(const std::string& path) override;

  /// Verifies every file now. Before any other call.
  void verify_all();

 private:
  std::string read_verified(const std::string& path) const;
  std::string unpack(const std::string& path);

  // Constant after construction.
  const std::unique_ptr<NeuropodLoader> package_;
  const std::string manifest_;
  FileHashes hashes_;
  bool is_verified_ = false;  // by verify_all()

  // Guarded by mutex_.
  std::mutex mutex_;
  std::optional<TemporaryFolder> folder_;
  std::unordered_map<std::string, std::string> unpacked_;
};

}  // namespace neuropod
