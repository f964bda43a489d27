#include "neuropod/package/directory_loader.hh"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "neuropod/base/error.hh"
#include "neuropod/base/sha256.hh"
#include "neuropod/package/entry_stream.hh"
#include "neuropod/package/package_path.hh"

namespace neuropod {
namespace {

namespace fs = std::filesystem;

// Collects the files below a folder. Links may point anywhere, but not to a folder around them.
class FileLister {
 public:
  explicit FileLister(fs::path root) : root_(std::move(root)) {}

  std::vector<std::string> list() {
    visit(root_, "");
    std::sort(files_.begin(), files_.end());
    return std::move(files_);
  }

 private:
  void visit(const fs::path& folder, const std::string& prefix) {
    std::error_code error;
    const fs::path real = fs::canonical(folder, error);
    if (error) fail(folder, error.message());
    if (std::find(around_.begin(), around_.end(), real) != around_.end()) {
      fail(folder, "it is a link to a folder around it");
    }
    around_.push_back(real);
    fs::directory_iterator entry(folder, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
      const std::string name = prefix + entry->path().filename().string();
      const fs::file_type type = entry->status(error).type();
      if (type == fs::file_type::directory) {
        visit(entry->path(), name + "/");
      } else if (type == fs::file_type::regular) {
        add(name);
      } else {
        fail(entry->path(), error ? error.message() : "it is neither a file nor a folder");
      }
    }
    if (error) fail(folder, error.message());
    around_.pop_back();
  }

  void add(const std::string& name) {
    const std::string reason = why_unsafe_path(name);
    if (!reason.empty()) fail(root_ / name, "its name " + reason);
    files_.push_back(name);
  }

  [[noreturn]] void fail(const fs::path& path, const std::string& reason) const {
    throw_error(ErrorCode::kInvalidPackage,
                fmt::format("package '{}' holds '{}', which can't be used: {}", root_.string(),
                            path.string(), reason));
  }

  const fs::path root_;
  std::vector<fs::path> around_;
  std::vector<std::string> files_;
};

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

}  // namespace

DirectoryLoader::DirectoryLoader(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  root_ = error ? path : absolute.string();
  while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
}

std::unique_ptr<std::istream> DirectoryLoader::get_istream_for_file(const std::string& path) {
  check_package_path(path);
  const std::string full = root_ + "/" + path;
  if (!is_file(full)) return nullptr;
  EntrySource source;
  source.file = std::make_shared<const ReadOnlyFile>(full);
  source.size = source.compressed_size = source.file->size();
  source.name = path;
  return open_entry_stream(std::move(source));
}

std::string DirectoryLoader::get_file_path(const std::string& path) {
  check_package_path(path);
  std::string full = root_ + "/" + path;
  if (!is_file(full)) {
    throw_error(ErrorCode::kNotFound, fmt::format("package '{}' has no file '{}'", root_, path));
  }
  return full;
}

std::string DirectoryLoader::get_hash_for_file(const std::string& path) {
  return sha256_of_file(get_file_path(path));
}

std::string DirectoryLoader::ensure_local() { return root_; }

std::vector<std::string> DirectoryLoader::list_files() { return FileLister(root_).list(); }

uint64_t DirectoryLoader::get_file_size(const std::string& path) {
  return ReadOnlyFile(get_file_path(path)).size();
}

}  // namespace neuropod
