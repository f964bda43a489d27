#include "neuropod/package/package_path.hh"

#include <fmt/format.h>

#include <algorithm>

#include "neuropod/base/error.hh"

namespace neuropod {
namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

}  // namespace

std::string printable(std::string_view text) {
  std::string result(text);
  std::replace_if(result.begin(), result.end(), is_control, '?');
  return result;
}

std::string why_unsafe_path(std::string_view path) {
  if (path.empty()) return "is empty";
  if (path.front() == '/') return "is absolute";
  if (path.find('\\') != std::string_view::npos) return "holds a backslash";
  if (std::any_of(path.begin(), path.end(), is_control)) return "holds a control character";
  while (true) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part == "..") return "has a '..' part";
    if (part == "." || part.empty()) return "has an empty or '.' part";
    if (slash == std::string_view::npos) return "";
    path.remove_prefix(slash + 1);
  }
}

void check_package_path(const std::string& path) {
  const std::string reason = why_unsafe_path(path);
  if (reason.empty()) return;
  throw_error(ErrorCode::kInvalidArgument,
              fmt::format("'{}' can't name a file of a package: it {}; expected a path like "
                          "'0/data/model.pt', relative to the package",
                          printable(path), reason));
}

}  // namespace neuropod
