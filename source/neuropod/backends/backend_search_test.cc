#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "neuropod/base/logging.hh"
#include "neuropod/base/temporary_folder.hh"
#include "neuropod/internal/backend_registration.hh"
#include "neuropod/testing/package_on_disk.hh"

namespace neuropod {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Plug-ins without a library that can be opened: a search opens none.
class BackendSearchTest : public ::testing::Test {
 protected:
  std::string add_plugin(const std::string& place, const std::string& name,
                         const std::string& version, const std::string& abi = NEUROPOD_ABI_VERSION,
                         const std::string& libraries = "", bool with_library = true) {
    const fs::path directory = fs::path(folder_.path()) / place / name;
    fs::create_directories(directory);
    std::ofstream(directory / "backend.json")
        << R"({"manifest_version": 1, "platform": "searched", "framework": "f", "neuropod_abi": ")"
        << abi << R"(", "framework_version": ")" << version << R"(", "library": "libx.so",
          "libraries": [)"
        << libraries << "]}";
    if (with_library) std::ofstream(directory / "libx.so") << "no library";
    return directory.string();
  }

  std::string place(const std::string& name) const { return folder_.path() + "/" + name; }

  std::vector<std::string> versions(const BackendSearch& search) {
    std::vector<std::string> list;
    for (const BackendCandidate& candidate : search.candidates) {
      list.push_back(candidate.manifest.framework_version);
    }
    return list;
  }

  BackendCandidate only(const BackendSearch& search) {
    EXPECT_EQ(search.candidates.size(), 1u);
    return search.candidates.empty() ? BackendCandidate{} : search.candidates.front();
  }

  TemporaryFolder folder_;
  ScopedEnvironment path_{"NEUROPOD_BACKEND_PATH", ""};
  ScopedEnvironment data_home_{"XDG_DATA_HOME", folder_.path() + "/data"};
  ScopedEnvironment base_dir_{"NEUROPOD_BASE_DIR", folder_.path() + "/base"};
};

TEST_F(BackendSearchTest, WithinAPlaceTheNewestComesFirst) {
  add_plugin("a", "old", "1.9.0");
  add_plugin("a", "new", "1.10.0");
  add_plugin("a", "middle", "1.9.1");
  ScopedEnvironment path("NEUROPOD_BACKEND_PATH", place("a"));
  EXPECT_THAT(versions(find_backends({}, "searched")), ElementsAre("1.10.0", "1.9.1", "1.9.0"));
}

TEST_F(BackendSearchTest, AnyVersionTakesPreReleasesAndARangeDoesNot) {
  add_plugin("a", "vendor", "2.8.0a0+vendor");
  ScopedEnvironment path("NEUROPOD_BACKEND_PATH", place("a"));
  EXPECT_EQ(only(find_backends({}, "searched")).rejected, "");
  EXPECT_THAT(only(find_backends({}, "searched", ">=2.0.0")).rejected, HasSubstr("2.8.0a0+vendor"));
}

TEST_F(BackendSearchTest, PlacesComeInOrder) {
  add_plugin("base/backends", "x", "5.0.0");
  add_plugin("data/neuropod/backends", "x", "4.0.0");
  add_plugin("b", "x", "3.0.0");
  add_plugin("a", "x", "2.0.0");
  const std::string override = add_plugin("elsewhere", "x", "1.0.0");
  ScopedEnvironment path("NEUROPOD_BACKEND_PATH", place("a") + ":" + place("b"));
  const BackendSearch search = find_backends({{"searched", "1.0.0", override}}, "searched");
  EXPECT_THAT(versions(search), ElementsAre("1.0.0", "2.0.0", "3.0.0", "4.0.0", "5.0.0"));
  EXPECT_EQ(search.candidates.front().source, "override");
  EXPECT_THAT(
      search.searched,
      ElementsAre(HasSubstr(place("a")), HasSubstr(place("b")), HasSubstr("beside"),
                  HasSubstr(place("data/neuropod/backends")), HasSubstr(place("base/backends"))));
}

TEST_F(BackendSearchTest, TheLastOverrideWins) {
  const std::string one = add_plugin("a", "one", "1.0.0");
  const std::string two = add_plugin("a", "two", "1.5.0");
  EXPECT_THAT(
      versions(find_backends({{"searched", "1.5.0", two}, {"searched", "1.0.0", one}}, "searched")),
      ElementsAre("1.0.0", "1.5.0"));
}

TEST_F(BackendSearchTest, APlaceMayBeAPlugin) {
  ScopedEnvironment path("NEUROPOD_BACKEND_PATH", add_plugin("a", "x", "1.0.0"));
  EXPECT_EQ(only(find_backends({}, "searched")).rejected, "");
}

TEST_F(BackendSearchTest, AnOverrideMayNameTheLibrary) {
  const std::string directory = add_plugin("a", "x", "1.0.0");
  const BackendCandidate candidate =
      only(find_backends({{"searched", "1.0.0", directory + "/libx.so"}}, "searched"));
  EXPECT_EQ(candidate.rejected, "");
  EXPECT_EQ(candidate.manifest.framework, "f");
}

TEST_F(BackendSearchTest, ALibraryWithoutAManifestIsTakenAtTheCallersWord) {
  std::ofstream(place("lonely.so")) << "no library";
  const BackendCandidate candidate =
      only(find_backends({{"searched", "3.2.1", place("lonely.so")}}, "searched"));
  EXPECT_EQ(candidate.rejected, "");
  EXPECT_EQ(candidate.manifest.framework_version, "3.2.1");
  EXPECT_EQ(candidate.manifest.library, place("lonely.so"));
}

TEST_F(BackendSearchTest, SaysWhyAnOverrideIsRefused) {
  const std::string directory = add_plugin("a", "x", "1.0.0");
  EXPECT_THAT(only(find_backends({{"searched", "2.0.0", directory}}, "searched")).rejected,
              HasSubstr("the override says version 2.0.0, its manifest 1.0.0"));
  EXPECT_THAT(only(find_backends({{"searched", "2.0.0", place("none.so")}}, "searched")).rejected,
              HasSubstr("doesn't exist"));
}

TEST_F(BackendSearchTest, SaysWhyACandidateIsRejected) {
  add_plugin("a", "other-abi", "1.0.0", "0");
  ScopedEnvironment path("NEUROPOD_BACKEND_PATH", place("a"));
  EXPECT_THAT(only(find_backends({}, "searched")).rejected,
              HasSubstr("built for neuropod ABI 0, this is ABI " NEUROPOD_ABI_VERSION
                        ": `neuropod backends install searched` builds it again"));
  add_plugin("a", "other-abi", "1.0.0");
  EXPECT_THAT(only(find_backends({}, "searched", ">=2")).rejected,
              HasSubstr("version 1.0.0 isn't in the range '>=2'"));
  add_plugin("a", "other-abi", "1.0.0", NEUROPOD_ABI_VERSION, R"("/gone/libf.so")");
  EXPECT_THAT(only(find_backends({}, "searched")).rejected,
              HasSubstr("the framework's library '/gone/libf.so' doesn't exist"));
}

TEST_F(BackendSearchTest, SaysThatAPluginLacksItsLibrary) {
  add_plugin("a", "x", "1.0.0", NEUROPOD_ABI_VERSION, "", false);
  ScopedEnvironment path("NEUROPOD_BACKEND_PATH", place("a"));
  EXPECT_THAT(only(find_backends({}, "searched")).rejected,
              AllOf(HasSubstr("libx.so"), HasSubstr("doesn't exist")));
}

TEST_F(BackendSearchTest, PluginsOfOlderNeuropodsAreIgnoredWithADebugLine) {
  const std::string layouts[] = {"base/0.3.0rc7/backends/torchscript_1.4.0",
                                 "base/0.3.0rc7/backends/tensorflow_1.15.0_gpu",
                                 "base/backends/torchscript_1.4.0"};
  for (const std::string& layout : layouts) {
    fs::create_directories(place(layout));
    // Opening it would block for ever: nobody writes into it.
    ASSERT_EQ(mkfifo(place(layout + "/libneuropod_torchscript_backend.so").c_str(), 0600), 0);
  }
  add_plugin("base/backends", "ours", "1.0.0");
  EXPECT_THAT(versions(find_backends({}, "")), ::testing::Contains("1.0.0"));
  set_log_level(LogLevel::kDebug);
  ::testing::internal::CaptureStderr();
  const BackendSearch search = find_backends({}, "searched");
  const std::string log = ::testing::internal::GetCapturedStderr();
  set_log_level(LogLevel::kInfo);
  EXPECT_THAT(versions(search), ElementsAre("1.0.0"));
  for (const std::string& layout : layouts) {
    EXPECT_THAT(log, HasSubstr("'" + place(layout) + "' is ignored"));
  }
  EXPECT_THAT(log, HasSubstr("neuropod backends install"));
}

TEST_F(BackendSearchTest, ABrokenManifestIsListedForEveryPlatform) {
  fs::create_directories(place("a/broken"));
  std::ofstream(place("a/broken/backend.json")) << "{";
  ScopedEnvironment path("NEUROPOD_BACKEND_PATH", place("a"));
  EXPECT_THAT(only(find_backends({}, "searched")).rejected, HasSubstr("is no valid JSON"));
}

TEST_F(BackendSearchTest, OtherPlatformsAreLeftOutUnlessAllAreAskedFor) {
  add_plugin("a", "x", "1.0.0");
  ScopedEnvironment path("NEUROPOD_BACKEND_PATH", place("a"));
  EXPECT_TRUE(find_backends({}, "another").candidates.empty());
  bool found_echo = false;
  bool found_searched = false;
  for (const BackendCandidate& candidate : find_backends({}, "").candidates) {
    found_echo |= candidate.manifest.platform == "echo" && candidate.rejected.empty();
    found_searched |= candidate.manifest.platform == "searched";
  }
  EXPECT_TRUE(found_echo) << "echo lies beside the library";
  EXPECT_TRUE(found_searched);
}

TEST_F(BackendSearchTest, APluginThatIsFoundTwiceIsListedOnce) {
  add_plugin("a", "x", "1.0.0");
  ScopedEnvironment path("NEUROPOD_BACKEND_PATH", place("a") + ":" + place("a") + "/");
  only(find_backends({}, "searched"));
}

TEST_F(BackendSearchTest, TheUsersFolderFollowsTheEnvironment) {
  EXPECT_EQ(user_backend_folder(), folder_.path() + "/data/neuropod/backends");
  ScopedEnvironment no_data_home("XDG_DATA_HOME", "");
  ScopedEnvironment home("HOME", "/home/somebody");
  EXPECT_EQ(user_backend_folder(), "/home/somebody/.local/share/neuropod/backends");
  ScopedEnvironment no_home("HOME", "");
  EXPECT_EQ(user_backend_folder(), "");
}

}  // namespace
}  // namespace neuropod
