#pragma once

#include <map>
#include <string>
#include <string_view>

namespace neuropod {

class NeuropodLoader;

/// The newest package format that this library reads. docs/formats/package.md.
inline constexpr int kNewestFormatVersion = 1;

inline constexpr char kManifestName[] = "manifest.json";

/// Signs the manifest (docs/formats/signature.md), so the manifest can't list it.
inline constexpr char kSignatureName[] = "signature.json";

/// File name to hex SHA-256.
using FileHashes = std::map<std::string, std::string>;

/// What to do about a package that differs from its manifest.
inline constexpr std::string_view kGetItAgain = "get it again";

/// The `format_version` that the package's manifest gives, 0 if it has none. It stands there, not
/// in config.json, when a package uses nothing that older readers of config.json don't know.
/// Error(invalid_package) for a version this library doesn't read.
int read_manifest_format_version(NeuropodLoader& loader);

bool has_file(NeuropodLoader& loader, const std::string& name);

/// The manifest's exact bytes. Error(not_found) if the package has none.
std::string read_manifest_bytes(NeuropodLoader& loader);

/// What the manifest of these bytes lists. Error(invalid_package), Error(corrupt_package).
FileHashes parse_manifest(const std::string& manifest);

/// A manifest of the files that the package has now. Error(invalid_package) for a name that isn't
/// UTF-8.
std::string make_manifest(NeuropodLoader& loader);

/// Error(corrupt_package) naming the first file that `hashes` lists and the package lacks, or the
/// other way round. Reads no content.
void check_file_names(NeuropodLoader& loader, const FileHashes& hashes,
                      std::string_view remedy = kGetItAgain);

/// check_file_names(), and then compares each file's content.
void verify_files(NeuropodLoader& loader, const FileHashes& hashes,
                  std::string_view remedy = kGetItAgain);

/// Throws the Error(corrupt_package) for a file whose content isn't what the manifest says.
[[noreturn]] void throw_hash_differs(const std::string& name, const std::string& actual,
                                     const std::string& expected,
                                     std::string_view remedy = kGetItAgain);

}  // namespace neuropod
