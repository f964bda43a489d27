#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "neuropod/base/error.hh"
#include "neuropod/package/package_path.hh"
#include "neuropod/package/zip_directory.hh"

namespace neuropod {
namespace {

constexpr uint64_t kHarmlessBytes = uint64_t{64} << 20;
constexpr uint64_t kLargestExpansion = 1000;
// Encrypted, strongly encrypted, headers encrypted.
constexpr uint16_t kAnyEncryption = 1u << 0 | 1u << 6 | 1u << 13;

bool expands_too_much(uint64_t from, uint64_t to) {
  return to > kHarmlessBytes && to / kLargestExpansion > from;
}

class ZipRules {
 public:
  ZipRules(const ReadOnlyFile& file, const std::vector<ZipEntry>& entries)
      : file_(file), entries_(entries) {}

  void check() const {
    for (const ZipEntry& entry : entries_) {
      check_name(entry);
      check_kind(entry);
      check_compression(entry);
    }
    check_names();
    check_overlaps();
    check_expansion();
  }

 private:
  [[noreturn]] void fail(ErrorCode code, const std::string& problem) const {
    throw_error(code, fmt::format("package '{}' {}", file_.path(), problem));
  }

  void check_name(const ZipEntry& entry) const {
    std::string_view path = entry.name;
    if (path.size() > 1 && entry.is_folder()) path.remove_suffix(1);
    const std::string reason = why_unsafe_path(path);
    if (!reason.empty()) {
      fail(ErrorCode::kInvalidPackage,
           fmt::format("has an entry '{}' whose name {}", printable(entry.name), reason));
    }
  }

  void check_kind(const ZipEntry& entry) const {
    const uint32_t kind = entry.unix_mode & S_IFMT;
    if (kind == 0 || kind == S_IFREG || (kind == S_IFDIR && entry.is_folder())) return;
    fail(ErrorCode::kInvalidPackage,
         fmt::format("has an entry '{}' that is {}; expected files only", entry.name,
                     kind == S_IFLNK ? "a symbolic link" : "a special file"));
  }

  void check_compression(const ZipEntry& entry) const {
    if ((entry.flags & kAnyEncryption) != 0) {
      fail(ErrorCode::kCorruptPackage,
           fmt::format("has an encrypted entry '{}'; packages aren't encrypted", entry.name));
    }
    if (entry.method != ZipEntry::kStored && entry.method != ZipEntry::kDeflated) {
      fail(ErrorCode::kInvalidPackage,
           fmt::format(
               "has an entry '{}' compressed by method {}; expected 0 (stored) or 8 (deflate)",
               entry.name, entry.method));
    }
    const bool stored_sizes_differ =
        entry.method == ZipEntry::kStored && entry.size != entry.compressed_size;
    if (stored_sizes_differ || (entry.size == 0 && entry.crc != 0)) {
      fail(ErrorCode::kCorruptPackage,
           fmt::format("is damaged: the sizes of entry '{}' contradict each other", entry.name));
    }
    if (expands_too_much(entry.compressed_size, entry.size)) {
      fail(ErrorCode::kInvalidPackage,
           fmt::format(
               "has an entry '{}' that expands from {} to {} bytes: more than {}-fold, which "
               "no model does",
               entry.name, entry.compressed_size, entry.size, kLargestExpansion));
    }
  }

  void check_names() const {
    std::unordered_set<std::string_view> files;
    std::unordered_set<std::string_view> folders;
    for (const ZipEntry& entry : entries_) {
      const std::string_view name = entry.name;
      if (!entry.is_folder() && !files.insert(name).second) {
        fail(ErrorCode::kCorruptPackage,
             fmt::format("has more than one entry '{}': which one is meant can't be known", name));
      }
      for (size_t slash = name.rfind('/'); slash != std::string_view::npos && slash > 0;
           slash = name.rfind('/', slash - 1)) {
        folders.insert(name.substr(0, slash));
      }
    }
    for (const std::string_view name : files) {
      if (folders.count(name) > 0) {
        fail(ErrorCode::kInvalidPackage, fmt::format("has '{}' as a file and as a folder", name));
      }
    }
  }

  void check_overlaps() const {
    std::vector<const ZipEntry*> order;
    order.reserve(entries_.size());
    for (const ZipEntry& entry : entries_) order.push_back(&entry);
    std::sort(order.begin(), order.end(), [](const ZipEntry* a, const ZipEntry* b) {
      return a->header_offset < b->header_offset;
    });
    for (size_t i = 1; i < order.size(); ++i) {
      const ZipEntry& previous = *order[i - 1];
      if (previous.data_offset + previous.compressed_size > order[i]->header_offset) {
        fail(ErrorCode::kCorruptPackage,
             fmt::format("is damaged: entries '{}' and '{}' share bytes", previous.name,
                         order[i]->name));
      }
    }
  }

  void check_expansion() const {
    uint64_t total = 0;
    for (const ZipEntry& entry : entries_) {
      if (__builtin_add_overflow(total, entry.size, &total)) total = UINT64_MAX;
    }
    if (expands_too_much(file_.size(), total)) {
      fail(ErrorCode::kInvalidPackage,
           fmt::format("expands from {} to {} bytes: more than {}-fold, which no model does",
                       file_.size(), total, kLargestExpansion));
    }
  }

  const ReadOnlyFile& file_;
  const std::vector<ZipEntry>& entries_;
};

}  // namespace

void check_zip_entries(const ReadOnlyFile& file, const std::vector<ZipEntry>& entries) {
  ZipRules(file, entries).check();
}

}  // namespace neuropod
