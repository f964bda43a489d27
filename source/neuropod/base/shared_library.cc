#include "neuropod/base/shared_library.hh"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

#include "neuropod/base/error.hh"

namespace neuropod {
namespace {

constexpr size_t kMaxNotes = 1 << 16;

std::string to_hex(const unsigned char* bytes, size_t count) {
  std::string hex;
  for (size_t i = 0; i < count; ++i) hex += fmt::format("{:02x}", bytes[i]);
  return hex;
}

// Notes are a chain of headers, each followed by a name and a description, both padded to 4 bytes.
std::string find_build_id(std::string_view notes) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes.data(), sizeof(header));
    const size_t name_at = sizeof(header);
    const size_t content_at = name_at + (size_t(header.n_namesz) + 3) / 4 * 4;
    const size_t end = content_at + (size_t(header.n_descsz) + 3) / 4 * 4;
    if (end > notes.size()) return "";
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
        notes.substr(name_at, 3) == "GNU") {
      return to_hex(reinterpret_cast<const unsigned char*>(notes.data()) + content_at,
                    header.n_descsz);
    }
    notes.remove_prefix(end);
  }
  return "";
}

void set_inode(LibraryIdentity* identity) {
  struct stat status;
  if (stat(identity->path.c_str(), &status) != 0) return;
  identity->device = status.st_dev;
  identity->inode = status.st_ino;
}

void set_default_soname(LibraryIdentity* identity) {
  if (identity->soname.empty()) {
    identity->soname = std::filesystem::path(identity->path).filename().string();
  }
}

std::string mapped_soname(const ElfW(Dyn) * entry, ElfW(Addr) base) {
  ElfW(Addr) strings = 0;
  std::optional<ElfW(Addr)> soname;
  for (; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) strings = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SONAME) soname = entry->d_un.d_val;
  }
  if (!soname || strings == 0) return "";
  // The loader has turned the table's offset into an address, except on a few machines.
  if (strings < base) strings += base;
  return reinterpret_cast<const char*>(strings + *soname);
}

int add_mapped_library(dl_phdr_info* info, size_t, void* libraries) {
  if (info->dlpi_name == nullptr || info->dlpi_name[0] != '/') return 0;
  LibraryIdentity identity;
  identity.path = info->dlpi_name;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) & segment = info->dlpi_phdr[i];
    const char* content = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    if (segment.p_type == PT_NOTE && identity.build_id.empty()) {
      identity.build_id = find_build_id({content, segment.p_memsz});
    } else if (segment.p_type == PT_DYNAMIC) {
      identity.soname = mapped_soname(reinterpret_cast<const ElfW(Dyn)*>(content), info->dlpi_addr);
    }
  }
  set_default_soname(&identity);
  set_inode(&identity);
  static_cast<std::vector<LibraryIdentity>*>(libraries)->push_back(std::move(identity));
  return 0;
}

// Reads what a library's headers say from its file.
class ElfFile {
 public:
  explicit ElfFile(const std::string& path) : file_(path, std::ios::binary) {}

  bool open() {
    if (!read(0, &header_, sizeof(header_)) || std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 ||
        header_.e_ident[EI_CLASS] != (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        header_.e_type != ET_DYN || header_.e_phentsize != sizeof(ElfW(Phdr))) {
      return false;
    }
    segments_.resize(header_.e_phnum);
    return read(header_.e_phoff, segments_.data(), segments_.size() * sizeof(ElfW(Phdr)));
  }

  std::string build_id() {
    for (const ElfW(Phdr) & segment : segments_) {
      if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNotes) continue;
      std::string notes(segment.p_filesz, '\0');
      if (!read(segment.p_offset, notes.data(), notes.size())) continue;
      std::string build_id = find_build_id(notes);
      if (!build_id.empty()) return build_id;
    }
    return "";
  }

  std::string soname() {
    ElfW(Addr) strings = 0;
    std::optional<ElfW(Addr)> soname;
    for (const ElfW(Phdr) & segment : segments_) {
      if (segment.p_type != PT_DYNAMIC) continue;
      std::vector<ElfW(Dyn)> entries(segment.p_filesz / sizeof(ElfW(Dyn)));
      if (!read(segment.p_offset, entries.data(), entries.size() * sizeof(ElfW(Dyn)))) return "";
      for (const ElfW(Dyn) & entry : entries) {
        if (entry.d_tag == DT_NULL) break;
        if (entry.d_tag == DT_STRTAB) strings = entry.d_un.d_ptr;
        if (entry.d_tag == DT_SONAME) soname = entry.d_un.d_val;
      }
    }
    if (!soname) return "";
    for (const ElfW(Phdr) & segment : segments_) {
      if (segment.p_type == PT_LOAD && strings >= segment.p_vaddr &&
          strings < segment.p_vaddr + segment.p_filesz) {
        return read_string(segment.p_offset + (strings - segment.p_vaddr) + *soname);
      }
    }
    return "";
  }

 private:
  bool read(uint64_t offset, void* to, size_t bytes) {
    file_.clear();
    file_.seekg(std::streamoff(offset));
    return bool(file_.read(static_cast<char*>(to), std::streamsize(bytes)));
  }

  std::string read_string(uint64_t offset) {
    std::string text;
    file_.clear();
    file_.seekg(std::streamoff(offset));
    std::getline(file_, text, '\0');
    return text;
  }

  std::ifstream file_;
  ElfW(Ehdr) header_ {};
  std::vector<ElfW(Phdr)> segments_;
};

}  // namespace

std::vector<LibraryIdentity> mapped_libraries() {
  std::vector<LibraryIdentity> libraries;
  dl_iterate_phdr(add_mapped_library, &libraries);
  return libraries;
}

std::optional<LibraryIdentity> read_library_identity(const std::string& path) {
  ElfFile file(path);
  if (!file.open()) return std::nullopt;
  LibraryIdentity identity;
  identity.path = path;
  identity.soname = file.soname();
  identity.build_id = file.build_id();
  set_default_soname(&identity);
  set_inode(&identity);
  return identity;
}

void open_library(const std::string& path) {
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return;
  const char* reason = dlerror();
  throw_error(ErrorCode::kLoadFailed, fmt::format("can't open the shared library '{}': {}", path,
                                                  reason != nullptr ? reason : "no reason given"));
}

std::string library_path_of(const void* address) {
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "";
  return info.dli_fname;
}

}  // namespace neuropod
