#include "neuropod/package/checked_package.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "neuropod/backends/neuropod_backend.hh"
#include "neuropod/base/ed25519.hh"
#include "neuropod/base/error.hh"
#include "neuropod/base/temporary_folder.hh"
#include "neuropod/package/signature.hh"
#include "neuropod/package/testing/raw_zip_writer.hh"

namespace neuropod {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Files = std::map<std::string, std::string>;

// Loads packages of a platform that nobody serves: what is refused because of the package itself is
// refused before a plug-in is looked for.
class CheckedPackageTest : public ::testing::Test {
 protected:
  static std::string config(const std::string& more = "") {
    return "{\"name\": \"m\", " + more + "\"platform\": \"nobody-serves-it\"}";
  }

  std::string outcome(const Files& files, const RuntimeOptions& options) {
    const std::string zip = folder_.path() + "/zip" + std::to_string(++packages_);
    write_file(zip, write_zip({files.begin(), files.end()}));
    return outcome_of_path(zip, options);
  }

  static std::string outcome_of_path(const std::string& path, const RuntimeOptions& options) {
    try {
      load_backend(path, {}, options);
    } catch (const Error& error) {
      return std::string(to_string(error.code())) + ": " + error.message();
    }
    return "loaded";
  }

  static RuntimeOptions without_native_code() {
    RuntimeOptions options;
    options.allow_native_code = false;
    return options;
  }

  const TemporaryFolder folder_;
  int packages_ = 0;
};

TEST_F(CheckedPackageTest, PackagesWithoutCompiledCodePassEitherWay) {
  const Files files = {{"config.json", config()}, {"0/data/model", "m"}};
  EXPECT_THAT(outcome(files, {}), HasSubstr("backend_not_found"));
  EXPECT_THAT(outcome(files, without_native_code()), HasSubstr("backend_not_found"));
}

TEST_F(CheckedPackageTest, CustomOperatorsAreRefusedBeforeAnythingIsOpened) {
  const Files files = {{"config.json", config(R"("custom_ops": ["op.so"], )")},
                       {"0/ops/op.so", "o"}};
  EXPECT_THAT(outcome(files, {}), HasSubstr("backend_not_found"));
  EXPECT_THAT(outcome(files, without_native_code()),
              AllOf(HasSubstr("invalid_package: package '"), HasSubstr("'op.so'"),
                    HasSubstr("rights of this process"), HasSubstr("allow_native_code=false")));
}

TEST_F(CheckedPackageTest, OperatorsThatTheConfigurationDoesNotNameAreRefusedToo) {
  for (const std::string name : {"0/ops/hidden.so", "0/OPS/hidden.so", "0/ops/a/b"}) {
    EXPECT_THAT(outcome({{"config.json", config()}, {name, "o"}}, without_native_code()),
                AllOf(HasSubstr("invalid_package"), HasSubstr("'" + name + "'"),
                      HasSubstr("doesn't name")));
  }
  const Files harmless = {{"config.json", config()}, {"0/ops", "a file"}, {"0/opsx", "another"}};
  EXPECT_THAT(outcome(harmless, without_native_code()), HasSubstr("backend_not_found"));
}

TEST_F(CheckedPackageTest, ABackendThatIsMadeDirectlyRefusesThem) {
  const Files files = {{"config.json", config(R"("custom_ops": ["op.so"], )")}};
  const std::string zip = folder_.path() + "/direct";
  write_file(zip, write_zip({files.begin(), files.end()}));
  const auto loader = open_checked_package(zip, without_native_code());
  EXPECT_THROW(read_checked_config(*loader, zip, without_native_code()), Error);
}

TEST_F(CheckedPackageTest, NoPluginIsLookedForBeforeTheSignatureIsVerified) {
  const Ed25519PrivateKey key = Ed25519PrivateKey::generate();
  const std::string key_file = folder_.path() + "/public.pem";
  std::ofstream(key_file) << key.public_key().to_pem();
  RuntimeOptions options;
  options.require_signature = {key_file};
  options.verify_hashes = false;
  EXPECT_THAT(outcome({{"config.json", config()}}, options),
              AllOf(HasSubstr("invalid_package"), HasSubstr("manifest.json")));

  const std::string folder = folder_.path() + "/package";
  write_file(folder + "/config.json", config());
  for (const auto& [name, content] : make_signature(*get_loader(folder), key, true)) {
    write_file(folder + "/" + name, content);
  }
  EXPECT_THAT(outcome_of_path(folder, options), HasSubstr("backend_not_found"));
  write_file(folder + "/config.json", config(R"("version": "2", )"));
  EXPECT_THAT(outcome_of_path(folder, options),
              AllOf(HasSubstr("corrupt_package: package '" + folder), HasSubstr("config.json")));
  options.require_signature = {folder_.path() + "/none.pem"};
  EXPECT_THAT(outcome_of_path(folder, options), HasSubstr("not_found: public key"));
}

}  // namespace
}  // namespace neuropod
