#include "neuropod/package/signature.hh"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <tuple>
#include <utility>

#include "neuropod/base/error.hh"
#include "neuropod/bindings/python/gil.hh"
#include "neuropod/bindings/python/package.hh"
#include "neuropod/internal/neuropod_loader.hh"

namespace neuropod::python {
namespace {

std::tuple<std::string, std::string, std::string> generate_key_pair() {
  const Ed25519PrivateKey key = Ed25519PrivateKey::generate();
  const Ed25519PublicKey public_key = key.public_key();
  return {key.to_pem(), public_key.to_pem(), public_key.id()};
}

nb::tuple make_package_signature(nb::handle path, nb::handle key_path, bool add_manifest) {
  const std::string package = package_path(path);
  const std::string key_file = package_path(key_path);
  std::map<std::string, std::string> files;
  std::string id;
  {
    const WithoutGil no_gil;
    try {
      const Ed25519PrivateKey key = Ed25519PrivateKey::read(key_file);
      id = key.public_key().id();
      files = make_signature(*get_loader(package), key, add_manifest);
    } catch (const Error& error) {
      throw error.with_context("can't sign '" + package + "'");
    }
  }
  nb::dict contents;
  for (const auto& [name, content] : files) {
    contents[nb::cast(name)] = nb::bytes(content.data(), content.size());
  }
  return nb::make_tuple(contents, id);
}

std::string verify_package_signature(nb::handle path, const std::vector<std::string>& keys) {
  const std::string package = package_path(path);
  const WithoutGil no_gil;
  const std::vector<Ed25519PublicKey> public_keys = read_public_keys(keys);
  std::string signer;
  std::unique_ptr<NeuropodLoader> loader = get_loader(package);
  try {
    open_signed_package(std::move(loader), public_keys, &signer);
  } catch (const Error& error) {
    throw error.with_context("package '" + package + "'");
  }
  return signer;
}

}  // namespace

void bind_signature(nb::module_& module) {
  module.def("generate_key_pair", &generate_key_pair,
             "A new Ed25519 pair: the private key's PEM, the public key's PEM, the key's id.");
  module.def(
      "private_key_id",
      [](nb::handle path) { return Ed25519PrivateKey::read(package_path(path)).public_key().id(); },
      nb::arg("path"), nb::sig("def private_key_id(path: " NEUROPOD_PATH_TYPE ") -> str"),
      "The id of the pair that the private key in the file belongs to.");
  module.def(
      "make_signature", &make_package_signature, nb::arg("path"), nb::arg("private_key"),
      nb::arg("add_manifest") = false,
      nb::sig("def make_signature(path: " NEUROPOD_PATH_TYPE ", private_key: " NEUROPOD_PATH_TYPE
              ", add_manifest: bool = False) -> tuple[dict[str, bytes], str]"),
      "What must be put into the package, by file name, so that the key in the file "
      "`private_key` signs it\ntoo, and that key's id. The package isn't changed.");
  module.def("verify_signature", &verify_package_signature, nb::arg("path"), nb::arg("public_keys"),
             nb::sig("def verify_signature(path: " NEUROPOD_PATH_TYPE
                     ", public_keys: collections.abc.Sequence[str]) -> str"),
             "Verifies every file of a package against the signature by one of the keys in the "
             "files\n`public_keys`; returns that key's id.");
  module.def(
      "list_signers", [](nb::handle path) { return list_signers(*get_loader(package_path(path))); },
      nb::arg("path"), nb::sig("def list_signers(path: " NEUROPOD_PATH_TYPE ") -> list[str]"),
      "Ids of the keys that sign the package, by its own account: nothing is verified.");
}

}  // namespace neuropod::python
