#include "neuropod/base/temporary_folder.hh"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "neuropod/base/error.hh"

namespace neuropod {
namespace {

namespace fs = std::filesystem;

fs::path parent_folder() {
  const char* from_environment = std::getenv("TMPDIR");
  if (from_environment == nullptr || *from_environment == '\0') return "/tmp";
  std::error_code error;
  const fs::path absolute = fs::absolute(from_environment, error);
  return error ? fs::path(from_environment) : absolute;
}

// What lies in a folder can only be removed if its owner may write there. Links aren't followed.
void make_folders_writable(const fs::path& folder) {
  std::error_code error;
  fs::permissions(folder, fs::perms::owner_all, fs::perm_options::add, error);
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    if (fs::is_directory(entry->symlink_status(ignored))) make_folders_writable(entry->path());
  }
}

}  // namespace

TemporaryFolder::TemporaryFolder() : owner_(::getpid()) {
  const fs::path parent = parent_folder();
  path_ = (parent / "neuropod_tmp_XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr) {
    const int number = errno;
    throw_error(
        ErrorCode::kUnavailable,
        fmt::format("cannot make a temporary folder in '{}': {}; set TMPDIR to a folder that "
                    "can be written to",
                    parent.string(), std::system_category().message(number)));
  }
}

TemporaryFolder::~TemporaryFolder() {
  if (::getpid() != owner_) return;
  std::error_code error;
  fs::remove_all(path_, error);
  if (!error) return;
  make_folders_writable(path_);
  fs::remove_all(path_, error);
}

}  // namespace neuropod
