#pragma once

#include <string>
#include <string_view>

#include "neuropod/base/visibility.hh"

namespace neuropod {

/// The one block of a PEM file (RFC 7468): "-----BEGIN <label>-----", base64, "-----END …".
struct PemBlock {
  std::string label;  ///< e.g. "PUBLIC KEY"
  std::string bytes;  ///< empty if they aren't base64; wiped when the block dies

  PemBlock() = default;
  ~PemBlock();
  PemBlock(PemBlock&&) = default;
  PemBlock& operator=(PemBlock&&) = delete;
};

/// Reads the file at `path`. Text around the block is skipped. Errors as ReadOnlyFile, and
/// invalid_argument for a file without a block, with several, or larger than 64 KiB.
PemBlock read_pem(const std::string& path);

NEUROPOD_EXPORT std::string write_pem(std::string_view label, std::string_view bytes);

/// Base64 without line breaks.
NEUROPOD_EXPORT std::string to_base64(std::string_view bytes);

/// False if `text` isn't base64 as to_base64() writes it.
NEUROPOD_EXPORT bool from_base64(std::string_view text, std::string* bytes);

/// Overwrites a secret so that no optimizer drops it.
void wipe(std::string* secret) noexcept;

}  // namespace neuropod
