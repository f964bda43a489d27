#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace neuropod {

/// One entry for write_raw_zip(). What isn't set is what an honest archive says.
struct RawZipEntry {
  std::string name;
  std::string content;
  bool deflate = false;
  bool zip64 = false;            ///< sizes and offset in a ZIP64 field
  bool data_descriptor = false;  ///< sizes after the data, as streaming writers put them
  uint16_t flags = 0;            ///< bits set besides those the above ask for
  uint32_t external_attributes = 0100644u << 16;
  std::optional<uint16_t> method;
  std::optional<uint32_t> crc;
  std::optional<uint32_t> size;             ///< uncompressed, as both headers say
  std::optional<uint32_t> compressed_size;  ///< as both headers say
  std::optional<std::string> local_name;    ///< in the local header
  std::optional<uint32_t> offset;           ///< of the local header, as the directory says
};

/// The bytes of a zip archive, lies included: for tests of how damaged and hostile packages are
/// met.
std::string write_raw_zip(const std::vector<RawZipEntry>& entries);

/// Raw deflate of `content`, as zip archives hold it.
std::string raw_deflate(const std::string& content);

/// An honest archive of names and contents, deflated.
std::string write_zip(const std::vector<std::pair<std::string, std::string>>& files);

/// Writes a file, with the folders it needs.
void write_file(const std::string& path, const std::string& content);

}  // namespace neuropod
