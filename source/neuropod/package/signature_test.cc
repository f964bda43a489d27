#include "neuropod/package/signature.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>

#include "neuropod/base/error.hh"
#include "neuropod/base/pem.hh"
#include "neuropod/base/sha256.hh"
#include "neuropod/base/temporary_folder.hh"
#include "neuropod/internal/config_utils.hh"
#include "neuropod/internal/neuropod_loader.hh"
#include "neuropod/package/testing/raw_zip_writer.hh"

namespace neuropod {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

using Files = std::map<std::string, std::string>;

std::string manifest_of(const Files& files) {
  std::string entries;
  for (const auto& [name, content] : files) {
    entries += (entries.empty() ? "\"" : ", \"") + name + "\": \"" + sha256_of(content) + "\"";
  }
  return "{\"files\": {" + entries + "}, \"format_version\": 1, \"manifest_version\": 1}";
}

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class SignatureTest : public ::testing::Test {
 protected:
  static Files unsigned_files() {
    Files files = {{"config.json", R"({"name": "m", "platform": "p"})"},
                   {"0/data/model.pt", std::string(100000, 'm')},
                   {"0/ops/op.so", "operator"}};
    files["manifest.json"] = manifest_of(files);
    return files;
  }

  Files signed_files() {
    Files files = unsigned_files();
    sign(&files, key_);
    return files;
  }

  void sign(Files* files, const Ed25519PrivateKey& key) {
    for (const auto& [name, content] : make_signature(*get_loader(write_folder(*files)), key)) {
      (*files)[name] = content;
    }
  }

  std::string write_folder(const Files& files) {
    const std::string folder = folder_.path() + "/directory" + std::to_string(++packages_);
    for (const auto& [name, content] : files) write_file(folder + "/" + name, content);
    return folder;
  }

  std::string write_archive(const Files& files) {
    const std::string zip = folder_.path() + "/zip" + std::to_string(++packages_);
    write_file(zip, write_zip({files.begin(), files.end()}));
    return zip;
  }

  std::unique_ptr<NeuropodLoader> open(const std::string& path) {
    return open_signed_package(get_loader(path), {key_.public_key()});
  }

  static std::string outcome_of(const std::function<void()>& function) {
    try {
      function();
    } catch (const Error& error) {
      return std::string(to_string(error.code())) + ": " + error.message();
    }
    return "verified";
  }

  // What opening says of the package, as folder and as zip: the same for both.
  std::string outcome(const Files& files) {
    const std::string path = write_folder(files);
    const std::string from_folder = outcome_of([&] { open(path); });
    const std::string zip = write_archive(files);
    EXPECT_EQ(outcome_of([&] { open(zip); }), from_folder);
    return from_folder;
  }

  std::string with_signature(const std::string& text) {
    Files files = signed_files();
    files["signature.json"] = text;
    return outcome(files);
  }

  const Ed25519PrivateKey key_ = Ed25519PrivateKey::generate();
  const Ed25519PrivateKey other_key_ = Ed25519PrivateKey::generate();
  const TemporaryFolder folder_;
  int packages_ = 0;
};

TEST_F(SignatureTest, ASignedPackagePasses) { EXPECT_EQ(outcome(signed_files()), "verified"); }

TEST_F(SignatureTest, SaysWhoSigned) {
  std::string signer;
  open_signed_package(get_loader(write_folder(signed_files())),
                      {other_key_.public_key(), key_.public_key()}, &signer);
  EXPECT_EQ(signer, key_.public_key().id());
}

TEST_F(SignatureTest, SigningAgainGivesTheSameBytes) {
  Files files = signed_files();
  const std::string first = files["signature.json"];
  sign(&files, key_);
  EXPECT_EQ(files["signature.json"], first);
}

TEST_F(SignatureTest, SeveralKeysMaySign) {
  Files files = signed_files();
  sign(&files, other_key_);
  EXPECT_EQ(outcome(files), "verified");
  const auto loader = get_loader(write_archive(files));
  EXPECT_THAT(list_signers(*loader),
              ElementsAre(key_.public_key().id(), other_key_.public_key().id()));
}

TEST_F(SignatureTest, ThePlainVerificationIgnoresIt) {
  verify_manifest(*get_loader(write_folder(signed_files())));
  EXPECT_THAT(list_signers(*get_loader(write_folder(unsigned_files()))), IsEmpty());
}

TEST_F(SignatureTest, AnUnsignedPackageIsRefused) {
  EXPECT_THAT(outcome(unsigned_files()),
              AllOf(HasSubstr("invalid_package"), HasSubstr("isn't signed"),
                    HasSubstr(key_.public_key().id()), HasSubstr("neuropod sign")));
}

TEST_F(SignatureTest, APackageWithoutManifestIsRefused) {
  Files files = signed_files();
  files.erase("manifest.json");
  EXPECT_THAT(outcome(files),
              AllOf(HasSubstr("invalid_package"), HasSubstr("has no manifest.json")));
}

TEST_F(SignatureTest, ASignatureByAnotherKeyIsRefusedWithBothIds) {
  Files files = unsigned_files();
  sign(&files, other_key_);
  EXPECT_THAT(outcome(files),
              AllOf(HasSubstr("invalid_package: it is signed by key"),
                    HasSubstr(key_.public_key().id()), HasSubstr(other_key_.public_key().id())));
}

TEST_F(SignatureTest, EveryFileThatWasChangedIsNamed) {
  for (const std::string name : {"config.json", "0/data/model.pt", "0/ops/op.so"}) {
    Files files = signed_files();
    files[name].back() ^= 1;
    EXPECT_THAT(outcome(files), AllOf(HasSubstr("corrupt_package: file '" + name + "'"),
                                      testing::Not(HasSubstr("verify_hashes"))));
  }
}

TEST_F(SignatureTest, FilesThatCameOrWentAreNamed) {
  Files files = signed_files();
  files["0/code/evil.py"] = "";
  EXPECT_THAT(outcome(files), HasSubstr("'0/code/evil.py' isn't listed in manifest.json"));
  files = signed_files();
  files["Signature.json"] = files["signature.json"];
  EXPECT_THAT(outcome(files), HasSubstr("'Signature.json' isn't listed in manifest.json"));
  files = signed_files();
  files.erase("0/ops/op.so");
  EXPECT_THAT(outcome(files), HasSubstr("'0/ops/op.so' is listed in manifest.json but missing"));
}

TEST_F(SignatureTest, AManifestThatWasChangedIsCorrupt) {
  // Whoever changes a file may change the manifest too: it is still a whole package.
  Files files = signed_files();
  const std::string signature = files["signature.json"];
  files.erase("signature.json");
  files.erase("manifest.json");
  files["0/data/model.pt"][0] = 'M';
  files["manifest.json"] = manifest_of(files);
  files["signature.json"] = signature;
  verify_manifest(*get_loader(write_folder(files)));
  EXPECT_THAT(outcome(files),
              AllOf(HasSubstr("corrupt_package: the signature by key " + key_.public_key().id()),
                    HasSubstr("doesn't fit manifest.json")));
}

TEST_F(SignatureTest, NoByteOfTheManifestMayDiffer) {
  const Files files = signed_files();
  for (size_t i = 0; i < files.at("manifest.json").size(); i += 7) {
    Files changed = files;
    changed["manifest.json"][i] ^= 1;
    EXPECT_THAT(outcome(changed), HasSubstr("doesn't fit manifest.json")) << i;
  }
  Files longer = files;
  longer["manifest.json"] += ' ';
  EXPECT_THAT(outcome(longer), HasSubstr("doesn't fit manifest.json"));
}

TEST_F(SignatureTest, AnotherPackagesSignatureIsRefused) {
  Files other = {{"config.json", "{}"}};
  other["manifest.json"] = manifest_of(other);
  sign(&other, key_);
  EXPECT_THAT(with_signature(other["signature.json"]), HasSubstr("is another package's"));
}

TEST_F(SignatureTest, AKeyIdThatIsPutOnAForeignSignatureDoesNotHelp) {
  Files files = unsigned_files();
  sign(&files, other_key_);
  std::string& text = files["signature.json"];
  text.replace(text.find(other_key_.public_key().id()), 64, key_.public_key().id());
  EXPECT_THAT(outcome(files), HasSubstr("corrupt_package"));
}

TEST_F(SignatureTest, ASignatureOverTheBareManifestIsNone) {
  Files files = signed_files();
  const std::string bare = to_base64(key_.sign(files["manifest.json"]));
  std::string& text = files["signature.json"];
  const size_t begin = text.find("\"signature\": \"") + 14;
  text.replace(begin, text.find('"', begin) - begin, bare);
  EXPECT_THAT(outcome(files), HasSubstr("doesn't fit manifest.json"));
}

TEST_F(SignatureTest, MalformedSignatureFilesAreRefused) {
  const std::string id(64, 'a');
  const std::string good = to_base64(std::string(64, 's'));
  const auto entry = [](const std::string& algorithm, const std::string& key_id,
                        const std::string& signature) {
    return "{\"signature_version\": 1, \"signatures\": [{\"algorithm\": \"" + algorithm +
           "\", \"key_id\": \"" + key_id + "\", \"signature\": \"" + signature + "\"}]}";
  };
  EXPECT_THAT(with_signature(entry("ed25519", id, good)), HasSubstr("signed by key " + id));
  EXPECT_THAT(with_signature(""), HasSubstr("corrupt_package: signature.json: is no valid JSON"));
  EXPECT_THAT(with_signature("[]"), HasSubstr("invalid_package: signature.json: must hold"));
  EXPECT_THAT(with_signature("{}"), HasSubstr("'signature_version' must be 1"));
  EXPECT_THAT(with_signature("{\"signature_version\": 2}"), HasSubstr("later Neuropod"));
  EXPECT_THAT(with_signature("{\"signature_version\": 1}"), HasSubstr("'signatures' must be"));
  EXPECT_THAT(with_signature("{\"signature_version\": 1, \"signatures\": []}"),
              HasSubstr("at least one"));
  EXPECT_THAT(with_signature("{\"signature_version\": 1, \"signatures\": [1]}"),
              HasSubstr("signatures[0] must be an object"));
  EXPECT_THAT(with_signature(entry("rsa", id, good)), HasSubstr("algorithm must be \"ed25519\""));
  EXPECT_THAT(with_signature(entry("ed25519", "AB", good)), HasSubstr("key_id must be"));
  EXPECT_THAT(with_signature(entry("ed25519", id, "c2hvcnQ=")), HasSubstr("64 bytes in base64"));
  EXPECT_THAT(with_signature(entry("ed25519", id, good + " ")), HasSubstr("64 bytes in base64"));
  EXPECT_THAT(with_signature(std::string(100000, ' ')), HasSubstr("larger than 64 KiB"));
}

TEST_F(SignatureTest, AKeySignsOnce) {
  Files files = signed_files();
  std::string& text = files["signature.json"];
  const size_t begin = text.find('{', 1);
  const std::string entry = text.substr(begin, text.find('}', begin) + 1 - begin);
  text.insert(begin, entry + ", ");
  EXPECT_THAT(outcome(files), AllOf(HasSubstr("invalid_package"),
                                    HasSubstr("signatures[1].key_id is that of an earlier")));
}

// Nor would one be that is larger than the memory there is.
TEST_F(SignatureTest, AHugeFileInPlaceOfASmallOneIsNotReadIntoMemory) {
  const std::string folder = write_folder(signed_files());
  const auto loader = open_signed_package_lazily(get_loader(folder), {key_.public_key()});
  fs::resize_file(folder + "/config.json", uintmax_t{65} << 20);
  try {
    loader->get_istream_for_file("config.json");
    ADD_FAILURE() << "it was read";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("file 'config.json' has SHA-256"));
  }
}

TEST_F(SignatureTest, AManifestThatListsTheSignatureIsRefused) {
  Files files = unsigned_files();
  files["signature.json"] = "{}";
  files.erase("manifest.json");
  files["manifest.json"] = manifest_of(files);
  EXPECT_THAT(outcome_of([&] { verify_manifest(*get_loader(write_folder(files))); }),
              AllOf(HasSubstr("invalid_package"), HasSubstr("files['signature.json']")));
}

TEST_F(SignatureTest, DamagedPackagesAndThoseWithoutManifestAreNotSigned) {
  Files files = unsigned_files();
  files["0/data/model.pt"][5] = 'M';
  EXPECT_THAT(outcome_of([&] { sign(&files, key_); }),
              AllOf(HasSubstr("corrupt_package"), HasSubstr("'0/data/model.pt'")));
  files.erase("manifest.json");
  EXPECT_THAT(outcome_of([&] { sign(&files, key_); }),
              AllOf(HasSubstr("invalid_package"), HasSubstr("neuropod sign --add-manifest")));
}

TEST_F(SignatureTest, APackageWithoutManifestGetsOneOnRequest) {
  Files files = unsigned_files();
  files.erase("manifest.json");
  const auto added = make_signature(*get_loader(write_archive(files)), key_, true);
  EXPECT_EQ(added.size(), 2u);
  for (const auto& [name, content] : added) files[name] = content;
  EXPECT_EQ(outcome(files), "verified");
  // Its calls keep the rules they were written under.
  EXPECT_EQ(load_model_config(*open(write_folder(files)))->format_version, 0);
}

TEST_F(SignatureTest, WhatIsChangedAfterItWasVerifiedIsNotRead) {
  const std::string folder = write_folder(signed_files());
  const auto loader = open(folder);
  EXPECT_EQ(loader->read_file("0/data/model.pt"), std::string(100000, 'm'));
  write_file(folder + "/0/data/model.pt", std::string(100000, 'x'));
  write_file(folder + "/0/ops/op.so", "evil");
  EXPECT_THAT(outcome_of([&] { loader->read_file("0/data/model.pt"); }),
              HasSubstr("corrupt_package: file '0/data/model.pt'"));
  EXPECT_THAT(outcome_of([&] { loader->get_istream_for_file("0/data/model.pt"); }),
              HasSubstr("corrupt_package"));
  EXPECT_THAT(outcome_of([&] { loader->get_file_path("0/ops/op.so"); }),
              HasSubstr("corrupt_package"));
  EXPECT_THAT(outcome_of([&] { loader->ensure_local(); }), HasSubstr("corrupt_package"));
  // Even the manifest: the one that was verified counts.
  write_file(folder + "/manifest.json", "{}");
  EXPECT_EQ(load_model_config(*loader)->format_version, 1);
}

TEST_F(SignatureTest, AnArchiveThatIsOverwrittenIsNotRead) {
  const std::string zip = write_archive(signed_files());
  const auto loader = open(zip);
  std::fstream(zip, std::ios::in | std::ios::out | std::ios::binary) << std::string(2000, 'x');
  EXPECT_THAT(outcome_of([&] { loader->read_file("0/data/model.pt"); }),
              HasSubstr("corrupt_package"));
}

TEST_F(SignatureTest, PathsArePrivateCopies) {
  for (const std::string& path : {write_folder(signed_files()), write_archive(signed_files())}) {
    const auto loader = open(path);
    const std::string copy = loader->get_file_path("0/ops/op.so");
    EXPECT_NE(copy.substr(0, folder_.path().size()), folder_.path());
    EXPECT_EQ(content_of(copy), "operator");
    EXPECT_EQ(loader->get_file_path("0/ops/op.so"), copy);
    const std::string local = loader->ensure_local();
    EXPECT_EQ(content_of(local + "/0/data/model.pt"), std::string(100000, 'm'));
    EXPECT_EQ(fs::status(local).permissions() & fs::perms::others_all, fs::perms::none);
  }
}

TEST_F(SignatureTest, TheVerifiedPackageReadsLikeAnyOther) {
  const auto loader = open(write_archive(signed_files()));
  EXPECT_THAT(loader->list_files(), UnorderedElementsAre("0/data/model.pt", "0/ops/op.so",
                                                         "config.json", "manifest.json"));
  EXPECT_EQ(loader->get_hash_for_file("0/ops/op.so"), sha256_of("operator"));
  EXPECT_EQ(loader->get_file_size("0/data/model.pt"), 100000u);
  EXPECT_EQ(loader->get_istream_for_file("0/none"), nullptr);
  const auto stream = loader->get_istream_for_file("0/ops/op.so");
  stream->seekg(4);
  char rest[4];
  stream->read(rest, 4);
  EXPECT_EQ(std::string(rest, 4), "ator");
  EXPECT_THAT(outcome_of([&] { loader->get_file_path("0/none"); }), HasSubstr("not_found"));
  EXPECT_THAT(outcome_of([&] { loader->get_file_path("../x"); }), HasSubstr("invalid_argument"));
}

TEST_F(SignatureTest, HostileArchivesFailBeforeTheirSignature) {
  const Files files = signed_files();
  std::vector<std::pair<std::string, std::string>> entries(files.begin(), files.end());
  entries.emplace_back("0/data/model.pt", "evil");
  const std::string twice = folder_.path() + "/twice";
  write_file(twice, write_zip(entries));
  EXPECT_THAT(outcome_of([&] { open(twice); }), HasSubstr("more than one entry"));
  entries.back() = {"../evil", "evil"};
  const std::string outside = folder_.path() + "/outside";
  write_file(outside, write_zip(entries));
  EXPECT_THAT(outcome_of([&] { open(outside); }), HasSubstr("'..' part"));
}

TEST_F(SignatureTest, KeysThatCannotBeUsedAreNamed) {
  EXPECT_THAT(outcome_of([] { read_public_keys({}); }), HasSubstr("no public key"));
  EXPECT_THAT(outcome_of([] { read_public_keys({"/none.pem"}); }),
              AllOf(HasSubstr("not_found"), HasSubstr("public key: "), HasSubstr("/none.pem")));
}

}  // namespace
}  // namespace neuropod
