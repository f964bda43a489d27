#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "neuropod/base/ed25519.hh"
#include "neuropod/base/visibility.hh"

namespace neuropod {

class NeuropodLoader;

/// What a signature is made over: a prefix that no other use of the key has, and the exact bytes of
/// the package's manifest, which holds the hash of every file. docs/formats/signature.md.
NEUROPOD_EXPORT std::string signed_message(std::string_view manifest);

/// The ids of the keys that sign the package, according to itself: nothing is verified. Empty if it
/// has no signature. Error(invalid_package), Error(corrupt_package) for a malformed one.
NEUROPOD_EXPORT std::vector<std::string> list_signers(NeuropodLoader& loader);

/// The files, by name and content, to put into the package so that it is signed by `key`:
/// signature.json with that key's signature added, or put in the place of its former one.
/// Signatures by other keys stay. Verifies every file first: what is damaged isn't signed.
/// `add_manifest`: a package without a manifest gets one too, of the files it has now, without a
/// `format_version`; otherwise that is Error(invalid_package).
NEUROPOD_EXPORT std::map<std::string, std::string> make_signature(NeuropodLoader& loader,
                                                                  const Ed25519PrivateKey& key,
                                                                  bool add_manifest = false);

/// Reads public keys, an Ed25519PublicKey::read() each. Error(invalid_argument) if there are none.
NEUROPOD_EXPORT std::vector<Ed25519PublicKey> read_public_keys(
    const std::vector<std::string>& paths);

/// The package behind `loader`, of which every file was verified: one of `keys` signed its
/// manifest, which lists every file with its hash. `signer`, if not null, becomes that key's id.
///
/// The result reads each file into memory and verifies its hash there before anybody sees a byte;
/// a path of a file is a private copy. So what is loaded is what was signed, even if the package is
/// changed while it is loaded. It costs memory for the file that is being read. It finds files by
/// their exact names.
///
/// **Errors**: invalid_package: no manifest, no signature, or signatures by other keys only.
/// corrupt_package: a signature that doesn't fit the manifest, a file that differs from it, is
/// missing or isn't listed; also later, when a file is read.
NEUROPOD_EXPORT std::unique_ptr<NeuropodLoader> open_signed_package(
    std::unique_ptr<NeuropodLoader> loader, const std::vector<Ed25519PublicKey>& keys,
    std::string* signer = nullptr);

/// The same without reading the files' contents now: each is verified when it is read.
NEUROPOD_EXPORT std::unique_ptr<NeuropodLoader> open_signed_package_lazily(
    std::unique_ptr<NeuropodLoader> loader, const std::vector<Ed25519PublicKey>& keys);

}  // namespace neuropod
