#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "neuropod/base/read_only_file.hh"
#include "neuropod/base/temporary_folder.hh"
#include "neuropod/internal/neuropod_loader.hh"
#include "neuropod/package/zip_directory.hh"

namespace neuropod {

/// A package that is a zip archive. A name is looked up as it is written first, then without regard
/// to the case of ASCII letters; the first entry of the archive wins.
class ZipLoader : public NeuropodLoader {
 public:
  /// Opens the archive and checks its directory; errors as in NeuropodLoader.
  explicit ZipLoader(const std::string& path);

  std::unique_ptr<std::istream> get_istream_for_file(const std::string& path) override;
  std::string get_file_path(const std::string& path) override;
  std::string get_hash_for_file(const std::string& path) override;
  std::string ensure_local() override;
  std::vector<std::string> list_files() override;
  uint64_t get_file_size(const std::string& path) override;

 private:
  const ZipEntry* find(const std::string& path) const;
  const ZipEntry& find_or_throw(const std::string& path) const;
  std::unique_ptr<std::istream> open(const ZipEntry& entry, bool check_crc) const;
  std::string unpack(const ZipEntry& entry);

  // Constant after construction.
  const std::shared_ptr<const ReadOnlyFile> file_;
  const std::vector<ZipEntry> entries_;
  std::unordered_map<std::string, const ZipEntry*> by_name_;
  std::unordered_map<std::string, const ZipEntry*> by_lower_name_;

  // Guarded by mutex_.
  std::mutex mutex_;
  std::optional<TemporaryFolder> folder_;
  std::unordered_map<const ZipEntry*, std::string> unpacked_;
};

}  // namespace neuropod
