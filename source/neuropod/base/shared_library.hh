#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "neuropod/base/visibility.hh"

namespace neuropod {

/// What tells one shared library from another.
struct LibraryIdentity {
  std::string path;
  std::string soname;    ///< the file's name where it declares none
  std::string build_id;  ///< hex; empty where the linker wrote none
  uint64_t device = 0;
  uint64_t inode = 0;

  bool same_file(const LibraryIdentity& other) const {
    return device == other.device && inode == other.inode;
  }
  /// The same file, or a copy of it.
  bool same_content(const LibraryIdentity& other) const {
    return same_file(other) || (!build_id.empty() && build_id == other.build_id);
  }
};

/// Every shared library in this process, in the order they were loaded; the program itself and the
/// kernel's page left out. Thread-safe; libraries that are being loaded may or may not be listed.
NEUROPOD_EXPORT std::vector<LibraryIdentity> mapped_libraries();

/// The identity of the shared library at `path`, read without opening it as a library. Nothing if
/// it can't be read or is no shared library of this machine.
NEUROPOD_EXPORT std::optional<LibraryIdentity> read_library_identity(const std::string& path);

/// Opens a library (RTLD_NOW | RTLD_LOCAL) for as long as the process lives: frameworks can't be
/// unloaded. Error(load_failed) with the loader's own message.
NEUROPOD_EXPORT void open_library(const std::string& path);

/// The path of the library or program that holds `address`; empty if none does.
NEUROPOD_EXPORT std::string library_path_of(const void* address);

}  // namespace neuropod
