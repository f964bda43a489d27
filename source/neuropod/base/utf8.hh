#pragma once

#include <string>

namespace neuropod {

/// `text` with U+FFFD in place of bytes that aren't UTF-8: for what is handed on as text and may
/// quote a path, or what somebody else printed.
std::string valid_utf8(const std::string& text);

}  // namespace neuropod
