#pragma once

#include <string>
#include <string_view>

#include "neuropod/base/visibility.hh"

namespace neuropod {

/// Why `path` can't name a file inside a package, e.g. "is absolute"; empty if it can. Paths use
/// '/', have no empty, "." or ".." part, no backslash and no control character.
NEUROPOD_EXPORT std::string why_unsafe_path(std::string_view path);

/// `text` for a message: control characters, which would act on a terminal, become '?'.
NEUROPOD_EXPORT std::string printable(std::string_view text);

/// Error(invalid_argument) naming `path` if it can't name a file inside a package.
NEUROPOD_EXPORT void check_package_path(const std::string& path);

}  // namespace neuropod
