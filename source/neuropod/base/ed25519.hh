#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "neuropod/base/visibility.hh"

namespace neuropod {

/// Keys are files of their own in PEM, as `openssl genpkey -algorithm ED25519` and
/// `openssl pkey -pubout` write them: PKCS #8 for the private key, SubjectPublicKeyInfo for the
/// public one (RFC 8410).
///
/// **Thread safety**: immutable.
/// **Errors** of reading: not_found if there is no such file; invalid_argument, naming the file,
/// for one that holds anything else: the other key of the pair, another algorithm, an encrypted
/// key, no PEM, more than one key.
class NEUROPOD_EXPORT Ed25519PublicKey {
 public:
  static constexpr size_t kSignatureBytes = 64;

  /// Reads the key from the file at `path`.
  static Ed25519PublicKey read(const std::string& path);

  /// The key with these 32 bytes.
  explicit Ed25519PublicKey(std::string bytes);

  /// Hex SHA-256 of the key's SubjectPublicKeyInfo in DER: what people compare.
  const std::string& id() const noexcept { return id_; }

  std::string to_pem() const;

  /// True if `signature` (64 bytes) is this key's for exactly `message`.
  bool verify(std::string_view message, std::string_view signature) const;

 private:
  std::string bytes_;
  std::string id_;
};

/// The secret half. Its bytes are wiped from memory when it dies.
class NEUROPOD_EXPORT Ed25519PrivateKey {
 public:
  /// A new key, from the system's random numbers.
  static Ed25519PrivateKey generate();

  /// Reads the key from the file at `path`.
  static Ed25519PrivateKey read(const std::string& path);

  Ed25519PrivateKey(Ed25519PrivateKey&&) noexcept = default;
  Ed25519PrivateKey(const Ed25519PrivateKey&) = delete;
  Ed25519PrivateKey& operator=(const Ed25519PrivateKey&) = delete;
  ~Ed25519PrivateKey();

  Ed25519PublicKey public_key() const;
  std::string to_pem() const;

  /// The signature of `message`: 64 bytes, the same each time.
  std::string sign(std::string_view message) const;

 private:
  explicit Ed25519PrivateKey(std::string seed);
  std::string seed_;
};

}  // namespace neuropod
