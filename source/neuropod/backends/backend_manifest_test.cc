#include "neuropod/backends/backend_manifest.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "neuropod/base/error.hh"
#include "neuropod/base/temporary_folder.hh"

namespace neuropod {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BackendManifestTest : public ::testing::Test {
 protected:
  BackendManifest read(const std::string& content) {
    std::ofstream(folder_.path() + "/backend.json") << content;
    return read_backend_manifest(folder_.path());
  }

  std::string error_of(const std::string& content) {
    try {
      read(content);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kLoadFailed);
      EXPECT_THAT(error.what(), HasSubstr(folder_.path() + "/backend.json"));
      return error.what();
    }
    return "no error";
  }

  static std::string manifest_with(const std::string& keys) {
    return R"({"manifest_version": 1, "platform": "p", "framework": "f", "neuropod_abi": "1",
               "framework_version": "2.13.0", "library": "libp.so", )" +
           keys + R"("gpu": false})";
  }

  TemporaryFolder folder_;
};

TEST_F(BackendManifestTest, ReadsEveryKey) {
  const BackendManifest manifest = read(R"({
    "manifest_version": 1, "platform": "p", "framework": "f", "framework_version": "2.13.0+cpu",
    "neuropod_abi": "7", "library": "libp.so", "libraries": ["/usr/lib/f/liba.so", "../libb.so"],
    "python_module": "f", "gpu": true, "something_newer": 1})");
  EXPECT_EQ(manifest.platform, "p");
  EXPECT_EQ(manifest.framework, "f");
  EXPECT_EQ(manifest.framework_version, "2.13.0+cpu");
  EXPECT_EQ(manifest.neuropod_abi, "7");
  EXPECT_EQ(manifest.library, folder_.path() + "/libp.so");
  EXPECT_EQ(manifest.python_module, "f");
  EXPECT_TRUE(manifest.gpu);
  EXPECT_EQ(manifest.directory, folder_.path());
}

TEST_F(BackendManifestTest, WhatIsNoManifestAtAllIsAnErrorToo) {
  const std::string deep = std::string(400000, '[') + std::string(400000, ']');
  EXPECT_THAT(error_of(R"({"manifest_version": 1, "platform": )" + deep + "}"),
              HasSubstr("is nested too deeply"));
  EXPECT_THAT(error_of(std::string(2 << 20, ' ')), HasSubstr("is larger than 1 MiB"));
  std::filesystem::remove(folder_.path() + "/backend.json");
  ASSERT_EQ(mkfifo((folder_.path() + "/backend.json").c_str(), 0600), 0);
  try {
    read_backend_manifest(folder_.path());
    ADD_FAILURE() << "it was read";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("is no file"));
  }
}

TEST_F(BackendManifestTest, RelativeLibrariesAreRelativeToTheManifest) {
  const BackendManifest manifest =
      read(manifest_with(R"("libraries": ["/usr/lib/f/liba.so", "../libb.so"], )"));
  EXPECT_THAT(
      manifest.libraries,
      ElementsAre("/usr/lib/f/liba.so",
                  std::filesystem::path(folder_.path()).parent_path().string() + "/libb.so"));
}

TEST_F(BackendManifestTest, LibrariesAndModuleMayBeAbsent) {
  const BackendManifest manifest = read(manifest_with(""));
  EXPECT_TRUE(manifest.libraries.empty());
  EXPECT_EQ(manifest.python_module, "");
}

TEST_F(BackendManifestTest, NamesWhatIsWrong) {
  EXPECT_THAT(error_of("{"), HasSubstr("is no valid JSON"));
  EXPECT_THAT(error_of("[]"), HasSubstr("must hold an object, not array"));
  EXPECT_THAT(error_of("{}"), HasSubstr("lacks the key 'manifest_version'"));
  EXPECT_THAT(error_of(R"({"manifest_version": 2})"), HasSubstr("expected 1, found 2"));
  EXPECT_THAT(error_of(R"({"manifest_version": 1})"), HasSubstr("lacks the key 'platform'"));
  EXPECT_THAT(error_of(R"({"manifest_version": 1, "platform": 3})"),
              HasSubstr("'platform': expected a text that isn't empty, found 3"));
  EXPECT_THAT(error_of(manifest_with(R"("libraries": "liba.so", )")),
              HasSubstr("'libraries': expected a list of paths"));
  EXPECT_THAT(error_of(manifest_with(R"("libraries": [1], )")),
              HasSubstr("'libraries': expected a list of paths, found [1]"));
  EXPECT_THAT(error_of(manifest_with(R"("python_module": 1, )")), HasSubstr("'python_module'"));
  EXPECT_THAT(error_of(R"({"manifest_version": 1, "platform": "p", "framework": "f", "gpu": 1,
                           "framework_version": "1", "neuropod_abi": "1", "library": "l"})"),
              HasSubstr("'gpu': expected true or false, found 1"));
  EXPECT_THAT(error_of(R"({"manifest_version": 1, "platform": "p", "framework": "f",
                           "framework_version": "new", "neuropod_abi": "1", "library": "l"})"),
              HasSubstr("wrong value for 'framework_version'"));
}

TEST_F(BackendManifestTest, LibrariesMayLieInAPythonModule) {
  const BackendManifest manifest = read(manifest_with(
      R"("python_module": "f", "libraries_relative_to": "python_module",
         "libraries": ["lib/liba.so"], "library_build_ids": ["0f"], )"));
  EXPECT_TRUE(manifest.libraries_in_module);
  EXPECT_THAT(manifest.libraries, ElementsAre("lib/liba.so"));
  EXPECT_THAT(manifest.library_build_ids, ElementsAre("0f"));
}

TEST_F(BackendManifestTest, NamesWhatIsWrongWithLibrariesOfAModule) {
  const std::string base = R"("python_module": "f", "libraries_relative_to": "python_module", )";
  EXPECT_THAT(error_of(manifest_with(R"("libraries_relative_to": "root", )")),
              HasSubstr(R"(expected "manifest" or "python_module", found "root")"));
  EXPECT_THAT(error_of(manifest_with(R"("libraries_relative_to": "python_module", )")),
              HasSubstr("no such module"));
  EXPECT_THAT(error_of(manifest_with(base)), HasSubstr("and no libraries"));
  EXPECT_THAT(error_of(manifest_with(base + R"("libraries": ["/lib/a.so"], )")),
              HasSubstr("paths relative to the module's folder"));
  EXPECT_THAT(error_of(manifest_with(base + R"("libraries": ["a.so"], )")),
              HasSubstr("needs one of 'library_build_ids' for each of its 1 libraries, found 0"));
}

TEST_F(BackendManifestTest, NamesAManifestThatIsNotThere) {
  try {
    read_backend_manifest("/nowhere");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'/nowhere/backend.json' can't be opened"));
  }
}

}  // namespace
}  // namespace neuropod
