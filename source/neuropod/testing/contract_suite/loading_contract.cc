// C01xx: loading.
#include <filesystem>
#include <fstream>

#include "neuropod/testing/contract_suite/contract.hh"
#include "neuropod/testing/package_on_disk.hh"

namespace neuropod {
namespace {

using contract::fixtures;
using contract::Json;
using contract::PackageVariant;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST_F(Contract, C0101_LoadsAPackageAndKnowsItsProblem) {
  if (!has("addition")) return;
  const Neuropod model = load("addition");
  EXPECT_EQ(model.get_platform(), fixtures().platform());
  EXPECT_FALSE(model.get_name().empty());
  ASSERT_EQ(model.get_inputs().size(), 2u);
  EXPECT_EQ(model.get_outputs().at(0).name, "out");
  const auto outputs = model.infer({{"x", floats(model, {1, 2})}, {"y", floats(model, {10, 20})}});
  EXPECT_THAT(values(*outputs, "out"), ElementsAre(11, 22));
}

TEST_F(Contract, C0102_LoadsAZip) {
  if (!has("identity_zip")) return;
  const Neuropod model = load("identity_zip");
  EXPECT_THAT(values(*model.infer({{"x", floats(model, {1, 2})}}), "y"), ElementsAre(1, 2));
}

TEST_F(Contract, C0103_AMissingPackageIsNamed) {
  const Error error = error_of([] { Neuropod model("/nowhere/at all.neuropod", on_cpu()); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_THAT(error.what(), HasSubstr("/nowhere/at all.neuropod"));
}

TEST_F(Contract, C0104_ACorruptModelFailsToLoadAndDisturbsNothing) {
  if (!has("identity") || !able("corrupt_model_detected")) return;
  const PackageVariant corrupt(fixtures().package("identity"));
  corrupt.write(fixtures().model_file(), std::string(1000, '\x07') + "rubbish");
  const Error error = error_of([&] { Neuropod model(corrupt.path(), on_cpu()); });
  EXPECT_THAT(error.code(), AnyOf(ErrorCode::kLoadFailed, ErrorCode::kCorruptPackage));
  EXPECT_THAT(error.what(), HasSubstr(load("identity").get_name()));
  const Neuropod model = load("identity");
  EXPECT_EQ(model.infer({{"x", floats(model, {1})}})->size(), 1u);
}

TEST_F(Contract, C0105_AMissingModelFileIsNamed) {
  if (!has("identity")) return;
  const PackageVariant empty(fixtures().package("identity"));
  fs::remove(fs::path(empty.path()) / fixtures().model_file());
  const Error error = error_of([&] { Neuropod model(empty.path(), on_cpu()); });
  EXPECT_THAT(error.code(), AnyOf(ErrorCode::kInvalidPackage, ErrorCode::kLoadFailed));
  EXPECT_THAT(error.what(), HasSubstr(fixtures().model_file()));
}

TEST_F(Contract, C0106_AVersionRangeThatNothingMeetsIsNamed) {
  if (!has("identity")) return;
  const Error error = error_of([] {
    load_variant("identity", [](Json& config) { config["platform_version_semver"] = ">=999.0.0"; });
  });
  EXPECT_THAT(error.code(), AnyOf(ErrorCode::kBackendNotFound, ErrorCode::kVersionConflict));
  EXPECT_THAT(error.what(), HasSubstr(">=999.0.0"));
}

TEST_F(Contract, C0107_AnUnknownPlatformSaysWhatWouldHelp) {
  if (!has("identity")) return;
  const Error error = error_of(
      [] { load_variant("identity", [](Json& config) { config["platform"] = "abacus"; }); });
  EXPECT_EQ(error.code(), ErrorCode::kBackendNotFound);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("'abacus'"), HasSubstr("looked in"),
                                  HasSubstr("neuropod backends install abacus")));
}

TEST_F(Contract, C0108_LoadsAPackageTwice) {
  if (!has("identity")) return;
  const Neuropod first = load("identity");
  auto second = std::make_unique<Neuropod>(load("identity"));
  EXPECT_NE(first.get_tensor_allocator(), second->get_tensor_allocator());
  const auto input = floats(*second, {4});
  second.reset();
  EXPECT_THAT(values(*first.infer({{"x", input}}), "y"), ElementsAre(4));
}

TEST_F(Contract, C0109_LoadsLaterIfAsked) {
  if (!has("identity")) return;
  RuntimeOptions options = on_cpu();
  options.load_model_at_construction = false;
  Neuropod model = load("identity", options);
  EXPECT_FALSE(model.get_inputs().empty());
  const auto input = floats(model, {1});
  EXPECT_EQ(error_of([&] { model.infer({{"x", input}}); }).code(), ErrorCode::kInvalidArgument);
  model.load_model();
  EXPECT_THAT(values(*model.infer({{"x", input}}), "y"), ElementsAre(1));
  EXPECT_EQ(error_of([&] { model.load_model(); }).code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(values(*model.infer({{"x", input}}), "y"), ElementsAre(1));
}

TEST_F(Contract, C0110_AChangedFileFailsItsHash) {
  if (!has("identity")) return;
  const PackageVariant changed(fixtures().package("identity"));
  changed.write("manifest.json", R"({"files": {"config.json": ")" + std::string(64, '0') +
                                     R"("}, "manifest_version": 1})");
  const Error error = error_of([&] { Neuropod model(changed.path(), on_cpu()); });
  EXPECT_EQ(error.code(), ErrorCode::kCorruptPackage);
  RuntimeOptions unverified = on_cpu();
  unverified.verify_hashes = false;
  const Neuropod model(changed.path(), unverified);
  EXPECT_THAT(values(*model.infer({{"x", floats(model, {1})}}), "y"), ElementsAre(1));
}

TEST_F(Contract, C0111_LoadsFromAnyPath) {
  if (!has("identity")) return;
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/modèle 模型 😀 (1)";
  fs::copy(fixtures().package("identity"), path, fs::copy_options::recursive);
  const Neuropod model(path, on_cpu());
  EXPECT_THAT(values(*model.infer({{"x", floats(model, {1})}}), "y"), ElementsAre(1));
}

TEST_F(Contract, C0112_LeavesNoTemporaryFiles) {
  if (!has("identity_zip") || !has("identity")) return;
  const TemporaryFolder folder;
  const ScopedEnvironment temporary("TMPDIR", folder.path());
  {
    const Neuropod model = load("identity_zip");
    model.infer({{"x", floats(model, {1})}});
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
  error_of([] { load_variant("identity", [](Json& config) { config["platform"] = "abacus"; }); });
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace neuropod
