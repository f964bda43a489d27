#pragma once

#include <memory>
#include <string>

#include "neuropod/base/visibility.hh"
#include "neuropod/internal/config_utils.hh"
#include "neuropod/internal/neuropod_loader.hh"
#include "neuropod/options.hh"

namespace neuropod {

/// What the options demand of a package, in one place. Errors name the package.

/// Opens the package to load its model: signed by one of `require_signature` if there are any, and
/// then whatever it reads is verified (open_signed_package); otherwise compared with its manifest
/// if `verify_hashes`. Error(invalid_argument, not_found) for a key that can't be used.
NEUROPOD_EXPORT std::unique_ptr<NeuropodLoader> open_checked_package(const std::string& path,
                                                                     const RuntimeOptions& options);

/// Reads the configuration. Error(invalid_package) without `allow_native_code` if the package
/// brings compiled code: it names custom operators, or holds anything below 0/ops.
NEUROPOD_EXPORT std::unique_ptr<ModelConfig> read_checked_config(NeuropodLoader& loader,
                                                                 const std::string& path,
                                                                 const RuntimeOptions& options);

/// The configuration alone, before a plug-in is picked and opened by what it says: as the two
/// above, except that no other file's content is read.
NEUROPOD_EXPORT std::unique_ptr<ModelConfig> peek_checked_config(const std::string& path,
                                                                 const RuntimeOptions& options);

}  // namespace neuropod
