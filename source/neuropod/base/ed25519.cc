#include "neuropod/base/ed25519.hh"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <memory>
#include <utility>

#include "neuropod/base/crypto_library.hh"
#include "neuropod/base/error.hh"
#include "neuropod/base/pem.hh"
#include "neuropod/base/sha256.hh"

namespace neuropod {
namespace {

using namespace std::string_view_literals;

constexpr size_t kKeyBytes = 32;
constexpr char kPublicLabel[] = "PUBLIC KEY";
constexpr char kPrivateLabel[] = "PRIVATE KEY";
// What stands before the key's bytes in DER (RFC 8410): a public key, and a private key after its
// outermost header and version.
constexpr std::string_view kPublicPrefix = "\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00"sv;
constexpr std::string_view kPrivateHeader = "\x30\x2e\x02\x01\x00"sv;
constexpr std::string_view kPrivatePrefix = "\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20"sv;

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Digest = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

[[noreturn]] void fail(const std::string& path, const std::string& problem) {
  throw_error(ErrorCode::kInvalidArgument, fmt::format("'{}' {}", path, problem));
}

void check(bool success) {
  if (success) return;
  ERR_clear_error();
  throw_error(ErrorCode::kUnavailable, "libcrypto cannot compute Ed25519");
}

// The algorithm of a key in DER, by its object identifier.
std::string algorithm_of(std::string_view der) {
  constexpr std::pair<std::string_view, const char*> kKnown[] = {
      {"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01"sv, "RSA"},
      {"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01"sv, "elliptic curve (ECDSA)"},
      {"\x06\x03\x2b\x65\x71"sv, "Ed448"},
      {"\x06\x03\x2b\x65\x6e"sv, "X25519"},
  };
  const std::string_view start = der.substr(0, 40);
  for (const auto& [identifier, name] : kKnown) {
    if (start.find(identifier) != std::string_view::npos) return name;
  }
  return "";
}

[[noreturn]] void fail_other_key(const std::string& path, const PemBlock& block,
                                 const char* expected) {
  const std::string algorithm = algorithm_of(block.bytes);
  if (algorithm.empty() && (block.label == kPublicLabel || block.label == kPrivateLabel)) {
    fail(path,
         fmt::format("holds a damaged key, or one of an unknown kind; expected {}", expected));
  }
  if (algorithm.empty()) {
    fail(path, fmt::format("holds '{}', expected {}", block.label, expected));
  }
  fail(path, fmt::format("holds a key for {}, expected {}; `neuropod keygen` makes one", algorithm,
                         expected));
}

void check_public_label(const std::string& path, const std::string& label) {
  if (label.find(kPrivateLabel) != std::string::npos) {
    fail(path,
         "holds a private key, expected the public key of its pair (`openssl pkey -pubout -in "
         "PRIVATE.pem` writes it); the private key belongs only where packages are signed");
  }
}

void check_private_label(const std::string& path, const PemBlock& block) {
  if (block.label == kPublicLabel) {
    fail(path, "holds a public key, expected the private key of its pair, which signs");
  }
  const bool is_private = block.label.find(kPrivateLabel) != std::string::npos;
  if (block.label == "ENCRYPTED PRIVATE KEY" ||
      (is_private && block.label != kPrivateLabel && block.bytes.empty())) {
    fail(path,
         "holds a private key that is encrypted with a passphrase, which isn't supported; "
         "`(umask 077; openssl pkey -in IN.pem -out OUT.pem)` decrypts it");
  }
  if (block.label == "OPENSSH PRIVATE KEY") {
    fail(path,
         "holds a key in OpenSSH's own format, expected PEM of PKCS #8; `neuropod keygen` "
         "makes a new pair");
  }
}

}  // namespace

Ed25519PublicKey::Ed25519PublicKey(std::string bytes)
    : bytes_(std::move(bytes)), id_(sha256_of(std::string(kPublicPrefix) + bytes_)) {
  if (bytes_.size() != kKeyBytes) {
    throw_error(ErrorCode::kInvalidArgument,
                fmt::format("a public key has 32 bytes, not {}", bytes_.size()));
  }
}

Ed25519PublicKey Ed25519PublicKey::read(const std::string& path) {
  const PemBlock block = read_pem(path);
  check_public_label(path, block.label);
  const std::string_view der = block.bytes;
  if (block.label != kPublicLabel || der.size() != kPublicPrefix.size() + kKeyBytes ||
      der.substr(0, kPublicPrefix.size()) != kPublicPrefix) {
    fail_other_key(path, block, "a public key for Ed25519");
  }
  return Ed25519PublicKey(std::string(der.substr(kPublicPrefix.size())));
}

std::string Ed25519PublicKey::to_pem() const {
  return write_pem(kPublicLabel, std::string(kPublicPrefix) + bytes_);
}

bool Ed25519PublicKey::verify(std::string_view message, std::string_view signature) const {
  if (signature.size() != kSignatureBytes) return false;
  initialize_crypto();
  const Key key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, bytes_of(bytes_), kKeyBytes),
                EVP_PKEY_free);
  const Digest digest(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  check(key != nullptr && digest != nullptr);
  check(EVP_DigestVerifyInit(digest.get(), nullptr, nullptr, nullptr, key.get()) == 1);
  const int result = EVP_DigestVerify(digest.get(), bytes_of(signature), signature.size(),
                                      bytes_of(message), message.size());
  // Bytes that can't be a signature at all are reported as an error, and are none either.
  ERR_clear_error();
  return result == 1;
}

Ed25519PrivateKey::Ed25519PrivateKey(std::string seed) : seed_(std::move(seed)) {}

Ed25519PrivateKey::~Ed25519PrivateKey() { wipe(&seed_); }

Ed25519PrivateKey Ed25519PrivateKey::generate() {
  initialize_crypto();
  std::string seed(kKeyBytes, '\0');
  check(RAND_priv_bytes(reinterpret_cast<unsigned char*>(seed.data()), kKeyBytes) == 1);
  return Ed25519PrivateKey(std::move(seed));
}

Ed25519PrivateKey Ed25519PrivateKey::read(const std::string& path) {
  const PemBlock block = read_pem(path);
  check_private_label(path, block);
  const std::string_view der = block.bytes;
  const size_t key_offset = kPrivateHeader.size() + kPrivatePrefix.size();
  // Version 2 adds the public key behind it.
  if (block.label != kPrivateLabel || der.size() < key_offset + kKeyBytes ||
      der.substr(kPrivateHeader.size(), kPrivatePrefix.size()) != kPrivatePrefix) {
    fail_other_key(path, block, "a private key for Ed25519");
  }
  return Ed25519PrivateKey(std::string(der.substr(key_offset, kKeyBytes)));
}

Ed25519PublicKey Ed25519PrivateKey::public_key() const {
  initialize_crypto();
  const Key key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, bytes_of(seed_), kKeyBytes),
                EVP_PKEY_free);
  std::string bytes(kKeyBytes, '\0');
  size_t size = bytes.size();
  check(key != nullptr &&
        EVP_PKEY_get_raw_public_key(key.get(), reinterpret_cast<unsigned char*>(bytes.data()),
                                    &size) == 1);
  return Ed25519PublicKey(std::move(bytes));
}

std::string Ed25519PrivateKey::to_pem() const {
  std::string der = std::string(kPrivateHeader).append(kPrivatePrefix).append(seed_);
  std::string pem = write_pem(kPrivateLabel, der);
  wipe(&der);
  return pem;
}

std::string Ed25519PrivateKey::sign(std::string_view message) const {
  initialize_crypto();
  const Key key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, bytes_of(seed_), kKeyBytes),
                EVP_PKEY_free);
  const Digest digest(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  check(key != nullptr && digest != nullptr);
  check(EVP_DigestSignInit(digest.get(), nullptr, nullptr, nullptr, key.get()) == 1);
  std::string signature(Ed25519PublicKey::kSignatureBytes, '\0');
  size_t size = signature.size();
  check(EVP_DigestSign(digest.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                       bytes_of(message), message.size()) == 1 &&
        size == signature.size());
  return signature;
}

}  // namespace neuropod
