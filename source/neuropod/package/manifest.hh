#pragma once

namespace neuropod {

class NeuropodLoader;

/// The newest package format that this library reads. docs/formats/package.md.
inline constexpr int kNewestFormatVersion = 1;

/// The `format_version` that the package's manifest gives, 0 if it has none. It stands there, not
/// in config.json, when a package uses nothing that older readers of config.json don't know.
/// Error(invalid_package) for a version this library doesn't read.
int read_manifest_format_version(NeuropodLoader& loader);

}  // namespace neuropod
