#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <vector>

#include "neuropod/base/visibility.hh"

namespace neuropod {

/// Reads the files of one package, whether it is a directory or a zip archive. Names are relative
/// to the package's root and use '/'; a leading '/', a '..' part or a backslash is
/// Error(invalid_argument).
///
/// Opening a zip checks its whole directory first. Error(corrupt_package): truncated, no zip at
/// all, entries that overlap, encrypted entries, more than one entry of a name.
/// Error(invalid_package): absolute names, '..', entries that expand more than 1000-fold past 64
/// MiB (a bomb), symbolic links. Reading hands data out as it inflates, and compares its checksum
/// when the last byte was read in order; nothing is unpacked unless a path is asked for. Links
/// inside a directory are followed.
///
/// **Ownership**: streams outlive nothing: keep the loader while one is in use. Unpacked files live
/// in a private temporary folder (mode 0700, below TMPDIR) until the loader dies.
/// **Thread safety**: thread-safe.
class NEUROPOD_EXPORT NeuropodLoader {
 public:
  virtual ~NeuropodLoader();

  /// The file's content, or null if there is no such file. Seeking works everywhere; in a
  /// compressed file of a zip it inflates the file into memory. A stream that fails sets badbit,
  /// and with `exceptions(std::ios::badbit)` it throws the Error that says why.
  virtual std::unique_ptr<std::istream> get_istream_for_file(const std::string& path) = 0;

  /// A path of the file on disk. A zip's file is unpacked, once; Error(not_found) if it doesn't
  /// exist.
  virtual std::string get_file_path(const std::string& path) = 0;

  /// Hex SHA-256 of the content; Error(not_found) if it doesn't exist.
  virtual std::string get_hash_for_file(const std::string& path) = 0;

  /// The package as a directory on disk. A zip is unpacked, once.
  virtual std::string ensure_local() = 0;

  /// Every file, sorted by name.
  virtual std::vector<std::string> list_files() = 0;

  /// Size in bytes; Error(not_found).
  virtual uint64_t get_file_size(const std::string& path) = 0;

  /// The whole content; Error(not_found), or Error(corrupt_package) if it can't be read to its end.
  std::string read_file(const std::string& path);
};

/// Opens the package at `path`. Error(not_found) naming the path if there is nothing there.
NEUROPOD_EXPORT std::unique_ptr<NeuropodLoader> get_loader(const std::string& path);

/// Compares every file with `manifest.json`. Error(corrupt_package) names the first file that
/// differs, is missing, or isn't listed; Error(invalid_package) if it breaks the manifest's
/// grammar. A package without a manifest passes. Large packages are hashed by up to four threads.
NEUROPOD_EXPORT void verify_manifest(NeuropodLoader& loader);

}  // namespace neuropod
