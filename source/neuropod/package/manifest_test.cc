#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "neuropod/base/error.hh"
#include "neuropod/base/sha256.hh"
#include "neuropod/base/temporary_folder.hh"
#include "neuropod/internal/neuropod_loader.hh"
#include "neuropod/package/testing/raw_zip_writer.hh"

namespace neuropod {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Files = std::map<std::string, std::string>;

std::string manifest_of(const Files& files) {
  std::string entries;
  for (const auto& [name, content] : files) {
    entries += (entries.empty() ? "\"" : ", \"") + name + "\": \"" + sha256_of(content) + "\"";
  }
  return "{\"files\": {" + entries + "}, \"manifest_version\": 1}";
}

class ManifestTest : public testing::Test {
 protected:
  // What verifying the package of `files` says, as folder and as zip: the same for both.
  std::string outcome(const Files& files) {
    const std::string folder = folder_.path() + "/directory" + std::to_string(++packages_);
    for (const auto& [name, content] : files) write_file(folder + "/" + name, content);
    const std::string zip = folder_.path() + "/zip" + std::to_string(packages_);
    write_file(zip, write_zip({files.begin(), files.end()}));
    const std::string from_folder = verify(folder);
    EXPECT_EQ(verify(zip), from_folder);
    return from_folder;
  }

  static std::string verify(const std::string& path) {
    try {
      verify_manifest(*get_loader(path));
    } catch (const Error& error) {
      return std::string(to_string(error.code())) + ": " + error.message();
    }
    return "verified";
  }

  Files whole() const {
    Files files = {
        {"config.json", "{}"}, {"0/data/model.pt", std::string(100000, 'm')}, {"0/ä", "x"}};
    files["manifest.json"] = manifest_of(files);
    return files;
  }

  std::string with_manifest(const std::string& text) {
    Files files = whole();
    files["manifest.json"] = text;
    return outcome(files);
  }

  const TemporaryFolder folder_;
  int packages_ = 0;
};

TEST_F(ManifestTest, AWholePackagePasses) { EXPECT_EQ(outcome(whole()), "verified"); }

TEST_F(ManifestTest, APackageWithoutManifestPasses) {
  EXPECT_EQ(outcome({{"config.json", "{}"}, {"0/data/model.pt", "m"}}), "verified");
}

TEST_F(ManifestTest, NamesAFileThatDiffers) {
  Files files = whole();
  files["0/data/model.pt"][5000] = 'M';
  EXPECT_THAT(outcome(files),
              AllOf(HasSubstr("corrupt_package"), HasSubstr("'0/data/model.pt'"),
                    HasSubstr(sha256_of(files["0/data/model.pt"])),
                    HasSubstr(sha256_of(whole()["0/data/model.pt"])), HasSubstr("verify_hashes")));
}

TEST_F(ManifestTest, NamesAFileThatIsMissing) {
  Files files = whole();
  files.erase("0/data/model.pt");
  EXPECT_THAT(outcome(files),
              AllOf(HasSubstr("corrupt_package"),
                    HasSubstr("'0/data/model.pt' is listed in manifest.json but missing")));
}

TEST_F(ManifestTest, NamesAFileThatIsNotListed) {
  Files files = whole();
  files["0/code/evil.py"] = "";
  EXPECT_THAT(outcome(files), AllOf(HasSubstr("corrupt_package"),
                                    HasSubstr("'0/code/evil.py' isn't listed in manifest.json")));
}

TEST_F(ManifestTest, NamesTheFirstOfSeveral) {
  Files files = whole();
  for (auto& [name, content] : files) {
    if (name != "manifest.json") content += '!';
  }
  EXPECT_THAT(outcome(files), HasSubstr("'0/data/model.pt'"));
}

TEST_F(ManifestTest, LooksNamesUpAsTheyAreWritten) {
  Files files = whole();
  files["Config.json"] = files["config.json"];
  files.erase("config.json");
  EXPECT_THAT(outcome(files), HasSubstr("'config.json' is listed"));
}

TEST_F(ManifestTest, LargePackagesAreHashedByThreads) {
  Files files = {{"config.json", "{}"}};
  for (int i = 0; i < 5; ++i) {
    files["0/data/" + std::to_string(i)] = std::string((5 + i) << 20, static_cast<char>('a' + i));
  }
  files["manifest.json"] = manifest_of(files);
  EXPECT_EQ(outcome(files), "verified");
  files["0/data/3"].back() = '!';
  EXPECT_THAT(outcome(files), HasSubstr("'0/data/3'"));
}

TEST_F(ManifestTest, RefusesWhatIsNoManifest) {
  EXPECT_THAT(with_manifest(""), HasSubstr("corrupt_package: manifest.json: is no valid JSON"));
  EXPECT_THAT(with_manifest("{\"files\": {"), HasSubstr("corrupt_package"));
  EXPECT_THAT(with_manifest("[]"),
              HasSubstr("invalid_package: manifest.json: must hold an object"));
  EXPECT_THAT(with_manifest("{\"files\": {}}"), HasSubstr("'manifest_version' must be 1"));
  EXPECT_THAT(with_manifest("{\"files\": {}, \"manifest_version\": 2}"),
              HasSubstr("later Neuropod"));
  EXPECT_THAT(with_manifest("{\"files\": {}, \"manifest_version\": 1.0}"), HasSubstr("must be 1"));
  EXPECT_THAT(with_manifest("{\"manifest_version\": 1}"), HasSubstr("'files' must be an object"));
  EXPECT_THAT(with_manifest("{\"files\": [], \"manifest_version\": 1}"),
              HasSubstr("'files' must be"));
  EXPECT_THAT(with_manifest("{\"files\": {\"a\": 1}, \"manifest_version\": 1}"),
              HasSubstr("files['a']"));
  EXPECT_THAT(with_manifest("{\"files\": {\"a\": \"ABC\"}, \"manifest_version\": 1}"),
              HasSubstr("files['a'] must be a SHA-256"));
  EXPECT_THAT(with_manifest("{\"files\": {\"../a\": \"ABC\"}, \"manifest_version\": 1}"),
              HasSubstr("files['../a']: the name has a '..' part"));
  EXPECT_THAT(with_manifest(std::string(1000000, '[')), HasSubstr("nested too deeply"));
}

}  // namespace
}  // namespace neuropod
