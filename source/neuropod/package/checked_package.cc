#include "neuropod/package/checked_package.hh"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "neuropod/base/error.hh"
#include "neuropod/package/signature.hh"

namespace neuropod {
namespace {

constexpr std::string_view kOperatorFolder = "0/ops/";

// Archives find names without regard to case.
bool is_below_operator_folder(const std::string& name) {
  if (name.size() <= kOperatorFolder.size()) return false;
  return std::equal(kOperatorFolder.begin(), kOperatorFolder.end(), name.begin(),
                    [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); });
}

void refuse_native_code(NeuropodLoader& loader, const ModelConfig& config) {
  std::string found;
  if (!config.custom_ops.empty()) {
    found = fmt::format("the custom operator library '{}'", config.custom_ops.front());
  } else {
    const std::vector<std::string> files = loader.list_files();
    const auto file = std::find_if(files.begin(), files.end(), is_below_operator_folder);
    if (file == files.end()) return;
    found = fmt::format("the file '{}', which its configuration doesn't name", *file);
  }
  throw_error(ErrorCode::kInvalidPackage,
              fmt::format("it brings compiled code, {}, which would run with the rights of this "
                          "process; allow_native_code=false refuses that: leave the option out if "
                          "you trust who made the package",
                          found));
}

template <typename Function>
auto naming_package(const std::string& path, Function function) {
  try {
    return function();
  } catch (const Error& error) {
    throw error.with_context(fmt::format("package '{}'", path));
  }
}

}  // namespace

std::unique_ptr<NeuropodLoader> open_checked_package(const std::string& path,
                                                     const RuntimeOptions& options) {
  std::unique_ptr<NeuropodLoader> loader = get_loader(path);
  if (!options.require_signature.empty()) {
    const std::vector<Ed25519PublicKey> keys = read_public_keys(options.require_signature);
    return naming_package(path, [&] { return open_signed_package(std::move(loader), keys); });
  }
  if (options.verify_hashes) naming_package(path, [&] { verify_manifest(*loader); });
  return loader;
}

std::unique_ptr<ModelConfig> read_checked_config(NeuropodLoader& loader, const std::string& path,
                                                 const RuntimeOptions& options) {
  return naming_package(path, [&] {
    std::unique_ptr<ModelConfig> config = load_model_config(loader);
    if (!options.allow_native_code) refuse_native_code(loader, *config);
    return config;
  });
}

std::unique_ptr<ModelConfig> peek_checked_config(const std::string& path,
                                                 const RuntimeOptions& options) {
  std::unique_ptr<NeuropodLoader> loader = get_loader(path);
  if (!options.require_signature.empty()) {
    const std::vector<Ed25519PublicKey> keys = read_public_keys(options.require_signature);
    loader =
        naming_package(path, [&] { return open_signed_package_lazily(std::move(loader), keys); });
  }
  return read_checked_config(*loader, path, options);
}

}  // namespace neuropod
