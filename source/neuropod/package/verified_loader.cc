#include "neuropod/package/verified_loader.hh"

#include <fmt/format.h>

#include <sstream>
#include <utility>

#include "neuropod/base/error.hh"
#include "neuropod/base/sha256.hh"
#include "neuropod/package/package_path.hh"
#include "neuropod/package/unpacked_file.hh"

namespace neuropod {
namespace {

// What is larger than this isn't read into memory before its hash is known to be right: somebody
// may have put a file in its place that is larger than all memory.
constexpr uint64_t kHarmlessBytes = uint64_t{64} << 20;

[[noreturn]] void throw_no_file(const std::string& path) {
  throw_error(ErrorCode::kNotFound, fmt::format("the package has no file '{}'", path));
}

}  // namespace

VerifiedLoader::VerifiedLoader(std::unique_ptr<NeuropodLoader> package, std::string manifest)
    : package_(std::move(package)),
      manifest_(std::move(manifest)),
      hashes_(parse_manifest(manifest_)) {
  check_file_names(*package_, hashes_);
  hashes_.emplace(kManifestName, sha256_of(manifest_));
}

std::string VerifiedLoader::read_verified(const std::string& path) const {
  if (path == kManifestName) return manifest_;
  const auto expected = hashes_.find(path);
  if (expected == hashes_.end()) throw_no_file(path);
  const auto check = [&](const std::string& actual) {
    if (actual != expected->second) throw_hash_differs(path, actual, expected->second);
  };
  if (!is_verified_ && package_->get_file_size(path) > kHarmlessBytes) {
    check(package_->get_hash_for_file(path));
  }
  std::string content = package_->read_file(path);
  check(sha256_of(content));
  return content;
}

void VerifiedLoader::verify_all() {
  verify_files(*package_, hashes_);
  is_verified_ = true;
}

std::unique_ptr<std::istream> VerifiedLoader::get_istream_for_file(const std::string& path) {
  check_package_path(path);
  if (hashes_.count(path) == 0) return nullptr;
  return std::make_unique<std::istringstream>(read_verified(path));
}

std::string VerifiedLoader::get_file_path(const std::string& path) {
  check_package_path(path);
  const std::lock_guard<std::mutex> lock(mutex_);
  return unpack(path);
}

std::string VerifiedLoader::get_hash_for_file(const std::string& path) {
  check_package_path(path);
  const auto hash = hashes_.find(path);
  if (hash == hashes_.end()) throw_no_file(path);
  return hash->second;  // reading gives that content or an error
}

std::string VerifiedLoader::ensure_local() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!folder_) folder_.emplace();
  for (const auto& [name, hash] : hashes_) unpack(name);
  return folder_->path();
}

std::vector<std::string> VerifiedLoader::list_files() {
  std::vector<std::string> names;
  for (const auto& [name, hash] : hashes_) names.push_back(name);
  return names;
}

uint64_t VerifiedLoader::get_file_size(const std::string& path) {
  check_package_path(path);
  if (path == kManifestName) return manifest_.size();
  if (hashes_.count(path) == 0) throw_no_file(path);
  return package_->get_file_size(path);
}

std::string VerifiedLoader::unpack(const std::string& path) {
  const auto known = unpacked_.find(path);
  if (known != unpacked_.end()) return known->second;
  const std::string content = read_verified(path);
  if (!folder_) folder_.emplace();
  const std::string copy = folder_->path() + "/" + path;
  UnpackedFile file(copy, /*executable=*/false);
  file.write(content.data(), content.size());
  file.finish();
  unpacked_.emplace(path, copy);
  return copy;
}

}  // namespace neuropod
