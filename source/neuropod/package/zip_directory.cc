#include "neuropod/package/zip_directory.hh"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "neuropod/base/error.hh"
#include "neuropod/package/package_path.hh"

// Debian's libminizip isn't used: bookworm's doesn't read the sizes and offsets of ZIP64 entries.
namespace neuropod {
namespace {

constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kCentralSignature = 0x02014b50;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint32_t kLocator64Signature = 0x07064b50;
constexpr size_t kLocalBytes = 30;
constexpr size_t kCentralBytes = 46;
constexpr size_t kEndBytes = 22;
constexpr size_t kEnd64Bytes = 56;
constexpr size_t kLocator64Bytes = 20;
constexpr size_t kLongestComment = 0xffff;
constexpr uint64_t kLargestDirectory = uint64_t{256} << 20;
constexpr uint16_t kSizesFollowData = 1u << 3;
// A field that says: look into the ZIP64 record.
constexpr uint32_t kSeeZip64 = 0xffffffff;
constexpr uint16_t kZip64Field = 1;
constexpr uint16_t kMadeOnUnix = 3;

// Little-endian numbers in bytes whose length was checked.
template <typename T>
T get(std::string_view bytes, size_t at) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value | static_cast<T>(static_cast<unsigned char>(bytes[at + i]))
                                       << (8 * i));
  }
  return value;
}

struct DirectoryPlace {
  uint64_t offset = 0;  // in the archive, which may begin behind other data
  uint64_t size = 0;
  uint64_t count = 0;
  uint64_t end = 0;  // in the file
};

class ZipDirectoryReader {
 public:
  explicit ZipDirectoryReader(const ReadOnlyFile& file) : file_(file) {}

  std::vector<ZipEntry> read() {
    if (file_.size() == 0) fail("is an empty file");
    const DirectoryPlace place = find_directory();
    if (place.size > place.end || place.offset > place.end - place.size) {
      fail_damaged("its end points to a directory outside of it");
    }
    before_archive_ = place.end - place.size - place.offset;
    if (place.size > kLargestDirectory || place.count > place.size / kCentralBytes) {
      fail_damaged(
          fmt::format("its directory can't have {} entries in {} bytes", place.count, place.size));
    }
    const std::string directory = read_at(place.end - place.size, place.size);
    std::vector<ZipEntry> entries;
    entries.reserve(place.count);
    std::string_view rest = directory;
    for (uint64_t i = 0; i < place.count; ++i) entries.push_back(take_entry(&rest));
    if (!rest.empty()) fail_damaged("its directory has more bytes than entries");
    return entries;
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw_error(ErrorCode::kCorruptPackage,
                fmt::format("package '{}' {}; get the package again", file_.path(), problem));
  }
  [[noreturn]] void fail_damaged(const std::string& how) const { fail("is damaged: " + how); }

  std::string read_at(uint64_t offset, uint64_t size) const {
    std::string bytes(size, '\0');
    if (file_.read_at(offset, bytes.data(), bytes.size()) < size) fail("is truncated");
    return bytes;
  }

  // The end record is the last thing in the file but for a comment of unknown length.
  DirectoryPlace find_directory() const {
    const uint64_t tail_size = std::min<uint64_t>(file_.size(), kEndBytes + kLongestComment);
    const std::string tail = read_at(file_.size() - tail_size, tail_size);
    for (size_t i = tail.size() >= kEndBytes ? tail.size() - kEndBytes + 1 : 0; i-- > 0;) {
      if (get<uint32_t>(tail, i) != kEndSignature) continue;
      if (i + kEndBytes + get<uint16_t>(tail, i + 20) != tail.size()) continue;
      return read_end(std::string_view(tail).substr(i, kEndBytes), file_.size() - tail_size + i);
    }
    const std::string start = read_at(0, std::min<uint64_t>(file_.size(), 4));
    if (start == "PK\3\4")
      fail("is truncated or damaged: its directory, at its end, can't be found");
    fail("is neither a zip archive nor a folder");
  }

  DirectoryPlace read_end(std::string_view end, uint64_t offset) const {
    DirectoryPlace place;
    place.count = get<uint16_t>(end, 10);
    place.size = get<uint32_t>(end, 12);
    place.offset = get<uint32_t>(end, 16);
    place.end = offset;
    const bool split =
        get<uint16_t>(end, 4) != get<uint16_t>(end, 6) || get<uint16_t>(end, 8) != place.count;
    if (place.count == 0xffff || place.size == kSeeZip64 || place.offset == kSeeZip64) {
      return read_end64(place);
    }
    if (split) fail_damaged("it is one volume of several");
    return place;
  }

  DirectoryPlace read_end64(const DirectoryPlace& place) const {
    if (place.end < kLocator64Bytes) return place;
    const uint64_t locator_offset = place.end - kLocator64Bytes;
    const std::string locator = read_at(locator_offset, kLocator64Bytes);
    // Exactly 65,535 entries need no ZIP64.
    if (get<uint32_t>(locator, 0) != kLocator64Signature) return place;
    std::string end64;
    uint64_t offset = get<uint64_t>(locator, 8);
    if (offset <= locator_offset && locator_offset - offset >= kEnd64Bytes) {
      end64 = read_at(offset, kEnd64Bytes);
    }
    if (end64.empty() || get<uint32_t>(end64, 0) != kEnd64Signature) {
      // The archive begins behind other data: the record then stands right before its locator.
      if (locator_offset < kEnd64Bytes) fail_damaged("its ZIP64 record is missing");
      offset = locator_offset - kEnd64Bytes;
      end64 = read_at(offset, kEnd64Bytes);
    }
    if (get<uint32_t>(end64, 0) != kEnd64Signature) fail_damaged("its ZIP64 record is missing");
    DirectoryPlace result;
    result.count = get<uint64_t>(end64, 32);
    result.size = get<uint64_t>(end64, 40);
    result.offset = get<uint64_t>(end64, 48);
    result.end = offset;
    if (get<uint64_t>(end64, 24) != result.count) fail_damaged("it is one volume of several");
    return result;
  }

  ZipEntry take_entry(std::string_view* rest) const {
    if (rest->size() < kCentralBytes || get<uint32_t>(*rest, 0) != kCentralSignature) {
      fail_damaged("its directory can't be read");
    }
    const std::string_view header = *rest;
    const size_t name_size = get<uint16_t>(header, 28);
    const size_t extra_size = get<uint16_t>(header, 30);
    const size_t total = kCentralBytes + name_size + extra_size + get<uint16_t>(header, 32);
    if (rest->size() < total) fail_damaged("its directory can't be read");
    rest->remove_prefix(total);
    ZipEntry entry;
    entry.name = header.substr(kCentralBytes, name_size);
    entry.flags = get<uint16_t>(header, 8);
    entry.method = get<uint16_t>(header, 10);
    entry.crc = get<uint32_t>(header, 16);
    entry.compressed_size = get<uint32_t>(header, 20);
    entry.size = get<uint32_t>(header, 24);
    entry.header_offset = get<uint32_t>(header, 42);
    if (get<uint16_t>(header, 4) >> 8 == kMadeOnUnix)
      entry.unix_mode = get<uint32_t>(header, 38) >> 16;
    read_zip64(header.substr(kCentralBytes + name_size, extra_size), &entry);
    locate(&entry);
    return entry;
  }

  // The ZIP64 field holds, in this order, those of the three numbers that the header has no room
  // for.
  void read_zip64(std::string_view extra, ZipEntry* entry) const {
    std::string_view field;
    while (extra.size() >= 4) {
      const size_t size = get<uint16_t>(extra, 2);
      if (size > extra.size() - 4) break;
      if (get<uint16_t>(extra, 0) == kZip64Field) field = extra.substr(4, size);
      extra.remove_prefix(4 + size);
    }
    for (uint64_t* number : {&entry->size, &entry->compressed_size, &entry->header_offset}) {
      if (*number != kSeeZip64) continue;
      if (field.size() < 8) {
        fail_damaged(fmt::format("entry '{}' lacks its ZIP64 sizes", printable(entry->name)));
      }
      *number = get<uint64_t>(field, 0);
      field.remove_prefix(8);
    }
  }

  // Finds the entry's data behind its local header, and compares that with the directory.
  void locate(ZipEntry* entry) const {
    const auto fail_entry = [&](const char* how) {
      fail_damaged(fmt::format("entry '{}' {}", printable(entry->name), how));
    };
    const uint64_t header_size = kLocalBytes + entry->name.size();
    const uint64_t room = file_.size() - before_archive_;
    if (entry->header_offset > room || room - entry->header_offset < header_size) {
      fail_entry("lies outside of it");
    }
    entry->header_offset += before_archive_;
    const std::string header = read_at(entry->header_offset, header_size);
    if (get<uint32_t>(header, 0) != kLocalSignature) fail_entry("has no header");
    if (get<uint16_t>(header, 26) != entry->name.size() ||
        header.substr(kLocalBytes) != entry->name) {
      fail_entry("is called otherwise in its header");
    }
    const bool agrees = get<uint16_t>(header, 8) == entry->method && sizes_agree(header, *entry);
    if (!agrees) fail_entry("is described otherwise in its header");
    entry->data_offset = entry->header_offset + header_size + get<uint16_t>(header, 28);
    if (entry->data_offset > file_.size() ||
        file_.size() - entry->data_offset < entry->compressed_size) {
      fail_entry("isn't all there");
    }
  }

  static bool sizes_agree(std::string_view header, const ZipEntry& entry) {
    const auto agree = [](uint32_t local, uint64_t central) {
      return local == kSeeZip64 || local == central;
    };
    if ((get<uint16_t>(header, 6) & kSizesFollowData) != 0) return true;
    return get<uint32_t>(header, 14) == entry.crc &&
           agree(get<uint32_t>(header, 18), entry.compressed_size) &&
           agree(get<uint32_t>(header, 22), entry.size);
  }

  const ReadOnlyFile& file_;
  uint64_t before_archive_ = 0;
};

}  // namespace

std::vector<ZipEntry> read_zip_directory(const ReadOnlyFile& file) {
  return ZipDirectoryReader(file).read();
}

}  // namespace neuropod
