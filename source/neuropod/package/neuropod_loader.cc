#include "neuropod/internal/neuropod_loader.hh"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "neuropod/base/error.hh"
#include "neuropod/package/directory_loader.hh"
#include "neuropod/package/zip_loader.hh"

namespace neuropod {

NeuropodLoader::~NeuropodLoader() = default;

std::string NeuropodLoader::read_file(const std::string& path) {
  std::string content(get_file_size(path), '\0');
  const std::unique_ptr<std::istream> stream = get_istream_for_file(path);
  if (stream == nullptr) {
    throw_error(ErrorCode::kNotFound,
                fmt::format("file '{}' was removed while the package was read", path));
  }
  stream->exceptions(std::ios::badbit);
  stream->read(content.data(), static_cast<std::streamsize>(content.size()));
  if (static_cast<size_t>(stream->gcount()) < content.size()) {
    throw_error(ErrorCode::kCorruptPackage, fmt::format("'{}' ends after {} of its {} bytes", path,
                                                        stream->gcount(), content.size()));
  }
  return content;
}

std::unique_ptr<NeuropodLoader> get_loader(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    const fs::path here = fs::path(path).is_relative() ? fs::current_path(error) : fs::path();
    throw_error(ErrorCode::kNotFound,
                fmt::format("there is no package at '{}'{}", path,
                            here.empty() ? "" : fmt::format(" (looked in '{}')", here.string())));
  }
  if (status.type() == fs::file_type::directory) return std::make_unique<DirectoryLoader>(path);
  return std::make_unique<ZipLoader>(path);
}

}  // namespace neuropod
