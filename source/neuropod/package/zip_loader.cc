#include "neuropod/package/zip_loader.hh"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "neuropod/base/error.hh"
#include "neuropod/base/sha256.hh"
#include "neuropod/package/entry_stream.hh"
#include "neuropod/package/package_path.hh"
#include "neuropod/package/unpacked_file.hh"

namespace neuropod {
namespace {

constexpr size_t kCopyBytes = size_t{1} << 20;

std::string in_lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::vector<ZipEntry> read_files(const ReadOnlyFile& file) {
  std::vector<ZipEntry> entries = read_zip_directory(file);
  check_zip_entries(file, entries);
  entries.erase(std::remove_if(entries.begin(), entries.end(),
                               [](const ZipEntry& entry) { return entry.is_folder(); }),
                entries.end());
  return entries;
}

}  // namespace

ZipLoader::ZipLoader(const std::string& path)
    : file_(std::make_shared<const ReadOnlyFile>(path)), entries_(read_files(*file_)) {
  for (const ZipEntry& entry : entries_) {
    by_name_.emplace(entry.name, &entry);
    by_lower_name_.emplace(in_lower_case(entry.name), &entry);
  }
}

const ZipEntry* ZipLoader::find(const std::string& path) const {
  check_package_path(path);
  const auto exact = by_name_.find(path);
  if (exact != by_name_.end()) return exact->second;
  const auto similar = by_lower_name_.find(in_lower_case(path));
  return similar == by_lower_name_.end() ? nullptr : similar->second;
}

const ZipEntry& ZipLoader::find_or_throw(const std::string& path) const {
  const ZipEntry* entry = find(path);
  if (entry == nullptr) {
    throw_error(ErrorCode::kNotFound,
                fmt::format("package '{}' has no file '{}'", file_->path(), path));
  }
  return *entry;
}

std::unique_ptr<std::istream> ZipLoader::open(const ZipEntry& entry, bool check_crc) const {
  EntrySource source;
  source.file = file_;
  source.offset = entry.data_offset;
  source.compressed_size = entry.compressed_size;
  source.size = entry.size;
  source.deflated = entry.method == ZipEntry::kDeflated;
  source.name = entry.name;
  if (check_crc) source.crc = entry.crc;
  return open_entry_stream(std::move(source));
}

std::unique_ptr<std::istream> ZipLoader::get_istream_for_file(const std::string& path) {
  const ZipEntry* entry = find(path);
  return entry == nullptr ? nullptr : open(*entry, /*check_crc=*/true);
}

std::string ZipLoader::get_file_path(const std::string& path) {
  const ZipEntry& entry = find_or_throw(path);
  const std::lock_guard<std::mutex> lock(mutex_);
  return unpack(entry);
}

std::string ZipLoader::get_hash_for_file(const std::string& path) {
  const ZipEntry& entry = find_or_throw(path);
  if (entry.method == ZipEntry::kStored)
    return sha256_of_file(*file_, entry.data_offset, entry.size);
  // The hash says more than the checksum would.
  return sha256_of_stream(*open(entry, /*check_crc=*/false));
}

std::string ZipLoader::ensure_local() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!folder_) folder_.emplace();
  for (const ZipEntry& entry : entries_) unpack(entry);
  return folder_->path();
}

std::vector<std::string> ZipLoader::list_files() {
  std::vector<std::string> names;
  names.reserve(entries_.size());
  for (const ZipEntry& entry : entries_) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  return names;
}

uint64_t ZipLoader::get_file_size(const std::string& path) { return find_or_throw(path).size; }

std::string ZipLoader::unpack(const ZipEntry& entry) {
  const auto known = unpacked_.find(&entry);
  if (known != unpacked_.end()) return known->second;
  if (!folder_) folder_.emplace();
  const std::string path = folder_->path() + "/" + entry.name;
  UnpackedFile file(path, (entry.unix_mode & S_IXUSR) != 0);
  const auto stream = open(entry, /*check_crc=*/true);
  stream->exceptions(std::ios::badbit);
  const auto chunk = std::make_unique_for_overwrite<char[]>(kCopyBytes);
  do {
    stream->read(chunk.get(), kCopyBytes);
    file.write(chunk.get(), static_cast<size_t>(stream->gcount()));
  } while (*stream);
  file.finish();
  unpacked_.emplace(&entry, path);
  return path;
}

}  // namespace neuropod
