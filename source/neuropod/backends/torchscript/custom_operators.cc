#include "custom_operators.hh"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>

#include "neuropod/backends/neuropod_backend.hh"
#include "neuropod/base/error.hh"
#include "neuropod/base/shared_library.hh"

namespace neuropod {
namespace {

// Contents that load_custom_op() has opened. Process-wide, because torch's registrations are; the
// core keeps such a table too, but only torch knows what else is registered, which must be asked
// before.
struct OpenedLibraries {
  std::mutex mutex;
  std::set<std::string> hashes;
};

OpenedLibraries& opened_libraries() {
  static auto* const instance = new OpenedLibraries;  // threads may load while the process ends
  return *instance;
}

bool has_content(const std::string& path, const std::string& content) {
  std::error_code error;
  if (std::filesystem::file_size(path, error) != content.size() || error) return false;
  std::ifstream file(path, std::ios::binary);
  return std::equal(std::istreambuf_iterator<char>(file), {}, content.begin(), content.end());
}

bool is_mapped(const std::string& path, const std::string& content) {
  const std::optional<LibraryIdentity> identity = read_library_identity(path);
  const std::vector<LibraryIdentity> mapped = mapped_libraries();
  return std::any_of(mapped.begin(), mapped.end(), [&](const LibraryIdentity& library) {
    return (identity && identity->same_content(library)) || has_content(library.path, content);
  });
}

// The namespaces of TORCH_LIBRARY(name, …), which leaves a static variable named after each.
std::set<std::string> registered_namespaces(std::string_view content) {
  constexpr std::string_view kVariable = "TORCH_LIBRARY_static_init_";
  std::set<std::string> names;
  for (size_t at = content.find(kVariable); at != std::string_view::npos;
       at = content.find(kVariable, at)) {
    at += kVariable.size();
    const auto is_identifier = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    const auto* end = std::find_if_not(content.begin() + at, content.end(), is_identifier);
    if (end != content.end() && *end == '\0') names.emplace(content.begin() + at, end);
  }
  return names;
}

bool is_registered(const std::string& name) {
  try {
    // Undone at once: it only tells whether torch would accept the namespace.
    const auto registration = c10::Dispatcher::singleton().registerLibrary(name, "neuropod");
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

void check_namespaces(const std::string& base_name, std::string_view content) {
  for (const std::string& name : registered_namespaces(content)) {
    if (!is_registered(name)) continue;
    std::string message = "custom operator library '";
    message.append(base_name).append("' registers the namespace '").append(name);
    message +=
        "', which another library in this process has registered; torch ends the process when that "
        "happens twice; use_ope=True runs the model in a process of its own";
    throw_error(ErrorCode::kVersionConflict, message);
  }
}

}  // namespace

void load_custom_operators(NeuropodLoader& loader, const std::vector<std::string>& base_names) {
  OpenedLibraries& opened = opened_libraries();
  const std::lock_guard<std::mutex> lock(opened.mutex);
  for (const std::string& base_name : base_names) {
    const std::string file = "0/ops/" + base_name;
    const std::string hash = loader.get_hash_for_file(file);
    if (opened.hashes.count(hash) != 0) continue;
    const std::string content = loader.read_file(file);
    if (is_mapped(loader.get_file_path(file), content)) continue;
    check_namespaces(base_name, content);
    load_custom_op(loader, base_name);
    opened.hashes.insert(hash);
  }
}

}  // namespace neuropod
