#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "neuropod/base/read_only_file.hh"

namespace neuropod {

/// One entry of a zip archive, as its headers say.
struct ZipEntry {
  static constexpr uint16_t kStored = 0;
  static constexpr uint16_t kDeflated = 8;

  std::string name;  ///< a folder's ends with '/'
  uint64_t compressed_size = 0;
  uint64_t size = 0;
  uint64_t header_offset = 0;  ///< of its local header, in the file
  uint64_t data_offset = 0;    ///< of its first compressed byte, in the file
  uint32_t crc = 0;
  uint16_t method = kStored;
  uint16_t flags = 0;
  uint32_t unix_mode = 0;  ///< kind and permissions; 0 if it was packed elsewhere

  bool is_folder() const { return !name.empty() && name.back() == '/'; }
};

/// The entries of a zip archive (ZIP64 too), in the order of its directory. Compares each local
/// header with the directory; reads no data. Error(corrupt_package) naming the file: empty,
/// truncated, no archive, more behind its end, split into volumes, headers that contradict each
/// other or point outside. Format: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
std::vector<ZipEntry> read_zip_directory(const ReadOnlyFile& file);

/// Checks what a package's archive may hold. Error(corrupt_package): entries that share bytes, are
/// encrypted, or have one name. Error(invalid_package): names that leave the package, a name that
/// is both file and folder, links and devices, compression other than deflate, a bomb
/// (NeuropodLoader).
void check_zip_entries(const ReadOnlyFile& file, const std::vector<ZipEntry>& entries);

}  // namespace neuropod
