#include "neuropod/package/signature.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "neuropod/base/error.hh"
#include "neuropod/base/pem.hh"
#include "neuropod/internal/neuropod_loader.hh"
#include "neuropod/package/manifest.hh"
#include "neuropod/package/verified_loader.hh"

namespace neuropod {
namespace {

using Json = nlohmann::json;

constexpr char kPrefix[] = "Neuropod package signature 1\n";
constexpr char kAlgorithm[] = "ed25519";
constexpr int kSignatureVersion = 1;
constexpr uint64_t kLargestFile = uint64_t{64} << 10;

struct Signature {
  std::string key_id;
  std::string bytes;
};

[[noreturn]] void fail(ErrorCode code, const std::string& problem) {
  throw_error(code, fmt::format("{}: {}", kSignatureName, problem));
}

[[noreturn]] void fail_invalid(const std::string& problem) {
  fail(ErrorCode::kInvalidPackage, problem);
}

bool is_key_id(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string string_of(const Json& entry, const char* key, size_t index) {
  const auto value = entry.find(key);
  if (value == entry.end() || !value->is_string()) {
    fail_invalid(fmt::format("signatures[{}].{} must be a string", index, key));
  }
  return value->get<std::string>();
}

Signature read_signature(const Json& entry, size_t index) {
  if (!entry.is_object()) fail_invalid(fmt::format("signatures[{}] must be an object", index));
  const std::string algorithm = string_of(entry, "algorithm", index);
  if (algorithm != kAlgorithm) {
    fail_invalid(
        fmt::format("signatures[{}].algorithm must be \"{}\"; another algorithm needs a "
                    "later Neuropod",
                    index, kAlgorithm));
  }
  Signature signature;
  signature.key_id = string_of(entry, "key_id", index);
  if (!is_key_id(signature.key_id)) {
    fail_invalid(
        fmt::format("signatures[{}].key_id must be a SHA-256 in 64 lowercase hex digits", index));
  }
  if (!from_base64(string_of(entry, "signature", index), &signature.bytes) ||
      signature.bytes.size() != Ed25519PublicKey::kSignatureBytes) {
    fail_invalid(fmt::format("signatures[{}].signature must be 64 bytes in base64", index));
  }
  return signature;
}

Json read_json(NeuropodLoader& loader) {
  if (loader.get_file_size(kSignatureName) > kLargestFile) fail_invalid("is larger than 64 KiB");
  Json json;
  try {
    json = Json::parse(loader.read_file(kSignatureName));
  } catch (const Json::exception& exception) {
    fail(ErrorCode::kCorruptPackage, fmt::format("is no valid JSON: {}", exception.what()));
  }
  if (!json.is_object()) fail_invalid("must hold an object");
  const auto version = json.find("signature_version");
  if (version == json.end() || !version->is_number_integer() || *version != kSignatureVersion) {
    fail_invalid(
        fmt::format("'signature_version' must be {}; a later version needs a later "
                    "Neuropod",
                    kSignatureVersion));
  }
  return json;
}

// Empty if the package isn't signed.
std::vector<Signature> read_signatures(NeuropodLoader& loader) {
  std::vector<Signature> signatures;
  if (!has_file(loader, kSignatureName)) return signatures;
  const Json json = read_json(loader);
  const auto list = json.find("signatures");
  if (list == json.end() || !list->is_array() || list->empty()) {
    fail_invalid("'signatures' must be a list of at least one signature");
  }
  // One signature a key: a crafted list can't make verifying take long.
  std::set<std::string> key_ids;
  for (size_t i = 0; i < list->size(); ++i) {
    signatures.push_back(read_signature((*list)[i], i));
    if (!key_ids.insert(signatures.back().key_id).second) {
      fail_invalid(fmt::format("signatures[{}].key_id is that of an earlier signature", i));
    }
  }
  return signatures;
}

std::string write_signatures(const std::vector<Signature>& signatures) {
  Json list = Json::array();
  for (const Signature& signature : signatures) {
    list.push_back({{"algorithm", kAlgorithm},
                    {"key_id", signature.key_id},
                    {"signature", to_base64(signature.bytes)}});
  }
  const Json json = {{"signature_version", kSignatureVersion}, {"signatures", std::move(list)}};
  return json.dump(4) + "\n";
}

std::string ids_of(const std::vector<Ed25519PublicKey>& keys) {
  std::vector<std::string> ids;
  for (const Ed25519PublicKey& key : keys) ids.push_back(key.id());
  return fmt::format("{} {}", ids.size() == 1 ? "key" : "one of the keys", fmt::join(ids, ", "));
}

std::string ids_of(const std::vector<Signature>& signatures) {
  std::vector<std::string> ids;
  for (const Signature& signature : signatures) ids.push_back(signature.key_id);
  return fmt::format("{}", fmt::join(ids, ", "));
}

std::string read_manifest_to_sign(NeuropodLoader& loader, const std::string& remedy) {
  if (has_file(loader, kManifestName)) return read_manifest_bytes(loader);
  throw_error(ErrorCode::kInvalidPackage,
              fmt::format("it has no {}, whose hashes are what a signature covers; {}",
                          kManifestName, remedy));
}

// The id of the first key whose signature fits.
std::string find_signer(const std::vector<Signature>& signatures,
                        const std::vector<Ed25519PublicKey>& keys, const std::string& manifest) {
  if (signatures.empty()) {
    throw_error(ErrorCode::kInvalidPackage,
                fmt::format("it isn't signed, and a signature by {} is required; `neuropod sign` "
                            "signs it",
                            ids_of(keys)));
  }
  const std::string message = signed_message(manifest);
  std::string broken;
  for (const Signature& signature : signatures) {
    for (const Ed25519PublicKey& key : keys) {
      if (key.id() != signature.key_id) continue;
      if (key.verify(message, signature.bytes)) return key.id();
      broken = key.id();
    }
  }
  if (broken.empty()) {
    throw_error(ErrorCode::kInvalidPackage,
                fmt::format("it is signed by key {}, but a signature by {} is required",
                            ids_of(signatures), ids_of(keys)));
  }
  throw_error(ErrorCode::kCorruptPackage,
              fmt::format("the signature by key {} doesn't fit {}: one of the two was changed, or "
                          "the signature is another package's; get the package again",
                          broken, kManifestName));
}

std::unique_ptr<VerifiedLoader> verified(std::unique_ptr<NeuropodLoader> loader,
                                         const std::vector<Ed25519PublicKey>& keys,
                                         std::string* signer) {
  std::string manifest =
      read_manifest_to_sign(*loader, fmt::format("a signature by {} is required", ids_of(keys)));
  std::string found = find_signer(read_signatures(*loader), keys, manifest);
  if (signer != nullptr) *signer = std::move(found);
  return std::make_unique<VerifiedLoader>(std::move(loader), std::move(manifest));
}

}  // namespace

std::string signed_message(std::string_view manifest) {
  return std::string(kPrefix).append(manifest);
}

std::vector<std::string> list_signers(NeuropodLoader& loader) {
  std::vector<std::string> ids;
  for (Signature& signature : read_signatures(loader)) ids.push_back(std::move(signature.key_id));
  return ids;
}

std::map<std::string, std::string> make_signature(NeuropodLoader& loader,
                                                  const Ed25519PrivateKey& key, bool add_manifest) {
  std::map<std::string, std::string> files;
  std::string manifest;
  if (add_manifest && !has_file(loader, kManifestName)) {
    manifest = files[kManifestName] = make_manifest(loader);
  } else {
    manifest = read_manifest_to_sign(loader, "`neuropod sign --add-manifest` adds one");
    verify_files(loader, parse_manifest(manifest));
  }
  std::vector<Signature> signatures = read_signatures(loader);
  Signature own{key.public_key().id(), key.sign(signed_message(manifest))};
  const auto place = std::find_if(signatures.begin(), signatures.end(),
                                  [&](const Signature& each) { return each.key_id == own.key_id; });
  if (place == signatures.end()) {
    signatures.push_back(std::move(own));
  } else {
    *place = std::move(own);
  }
  files[kSignatureName] = write_signatures(signatures);
  return files;
}

std::vector<Ed25519PublicKey> read_public_keys(const std::vector<std::string>& paths) {
  if (paths.empty()) {
    throw_error(ErrorCode::kInvalidArgument, "no public key is given to verify a signature with");
  }
  std::vector<Ed25519PublicKey> keys;
  for (const std::string& path : paths) {
    try {
      keys.push_back(Ed25519PublicKey::read(path));
    } catch (const Error& error) {
      throw error.with_context("public key");
    }
  }
  return keys;
}

std::unique_ptr<NeuropodLoader> open_signed_package(std::unique_ptr<NeuropodLoader> loader,
                                                    const std::vector<Ed25519PublicKey>& keys,
                                                    std::string* signer) {
  std::unique_ptr<VerifiedLoader> package = verified(std::move(loader), keys, signer);
  package->verify_all();
  return package;
}

std::unique_ptr<NeuropodLoader> open_signed_package_lazily(
    std::unique_ptr<NeuropodLoader> loader, const std::vector<Ed25519PublicKey>& keys) {
  return verified(std::move(loader), keys, nullptr);
}

}  // namespace neuropod
