#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <string>

#include "neuropod/base/read_only_file.hh"

namespace neuropod {

/// Where the bytes of one file of a package lie, and what they must be.
struct EntrySource {
  std::shared_ptr<const ReadOnlyFile> file;
  uint64_t offset = 0;           ///< of the first (compressed) byte in `file`
  uint64_t compressed_size = 0;  ///< equal to `size` if the bytes are stored as they are
  uint64_t size = 0;             ///< bytes that reading yields
  bool deflated = false;
  std::optional<uint32_t>
      crc;           ///< checked when everything was read, from the first byte to the last
  std::string name;  ///< for messages
};

/// A stream over `source`, with true seeking. Stored bytes are read where they are wanted, large
/// reads straight into the reader's memory. Deflated bytes are inflated as they are read in order;
/// the first read elsewhere inflates everything into memory.
///
/// The stream sets badbit when the data is corrupt or can't be read. With
/// `exceptions(std::ios::badbit)` it throws the Error that says why: corrupt_package, unavailable
/// or out_of_memory.
/// **Thread safety**: thread-compatible; several streams may read one file at once.
std::unique_ptr<std::istream> open_entry_stream(EntrySource source);

}  // namespace neuropod
