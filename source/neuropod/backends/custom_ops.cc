#include <map>
#include <mutex>

#include <fmt/format.h>

#include "neuropod/backends/neuropod_backend.hh"
#include "neuropod/base/error.hh"
#include "neuropod/base/logging.hh"
#include "neuropod/base/shared_library.hh"

namespace neuropod {
namespace {

// Process-wide, because operators are registered with a framework for as long as the process lives.
// Never destroyed: threads may load models while the process ends.
struct OperatorTable {
  std::mutex mutex;  // held while a library is opened, so that no content is opened twice
  std::map<std::string, std::string> names_by_hash;
  std::map<std::string, std::string> hashes_by_name;
};

OperatorTable& operator_table() {
  static auto* const instance = new OperatorTable;
  return *instance;
}

}  // namespace

void load_custom_op(NeuropodLoader& loader, const std::string& base_name) {
  const std::string file = "0/ops/" + base_name;
  const std::string hash = loader.get_hash_for_file(file);
  OperatorTable& table = operator_table();
  std::lock_guard lock(table.mutex);
  if (const auto same = table.names_by_hash.find(hash); same != table.names_by_hash.end()) {
    log(LogLevel::kDebug, fmt::format("custom operator library '{}' is loaded already, as '{}'",
                                      base_name, same->second));
    return;
  }
  if (const auto other = table.hashes_by_name.find(base_name);
      other != table.hashes_by_name.end()) {
    throw_error(
        ErrorCode::kVersionConflict,
        fmt::format("custom operator library '{}' (SHA-256 {}) differs from the one of that "
                    "name that this process has loaded (SHA-256 {}); frameworks end the process "
                    "when an operator is registered twice; use_ope=True runs the model in a "
                    "process of its own; if the two register different operators, give the "
                    "library another name",
                    base_name, hash, other->second));
  }
  open_library(loader.get_file_path(file));
  table.names_by_hash.emplace(hash, base_name);
  table.hashes_by_name.emplace(base_name, hash);
}

}  // namespace neuropod
