// Plug-ins whose manifests say that their framework's libraries lie in a Python module's folder, as
// those of wheels do. The "module" is a folder with a copy of the pretend framework.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "neuropod/base/shared_library.hh"
#include "neuropod/internal/backend_registration.hh"
#include "neuropod/testing/package_on_disk.hh"

namespace neuropod {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kLibrary = "lib/libpretend_framework.so";

std::string built_framework(const std::string& name) {
  return std::string(NEUROPOD_TEST_PLUGINS) + "/" + name + "/libpretend_framework.so";
}

class FrameworkLibrariesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(plugin_);
    std::ofstream(plugin_ + "/libplugin.so") << "no library";
    std::ofstream(plugin_ + "/backend.json")
        << R"({"manifest_version": 1, "platform": "wheeled", "framework": "pretend",
               "framework_version": "1.0.0", "neuropod_abi": ")" NEUROPOD_ABI_VERSION R"(",
               "library": "libplugin.so", "libraries": ["lib/libpretend_framework.so"],
               "libraries_relative_to": "python_module", "python_module": "pretend",
               "library_build_ids": [")"
        << read_library_identity(built_framework("framework_one"))->build_id << R"("]})";
  }
  void TearDown() override { set_host_module_resolver(nullptr); }

  // Puts the module with the framework `name` into `folder`.
  void add_module(const std::string& folder, const std::string& name = "framework_one") {
    fs::create_directories(folder + "/pretend/lib");
    fs::copy_file(built_framework(name), folder + "/pretend/" + kLibrary);
  }

  BackendCandidate search() {
    const BackendSearch found = find_backends({{"wheeled", "", plugin_}}, "wheeled");
    return found.candidates.empty() ? BackendCandidate{} : found.candidates.front();
  }

  TemporaryFolder folder_;
  const std::string site_ = folder_.path() + "/site-packages";
  const std::string plugin_ = site_ + "/neuropod/lib/neuropod/backends/wheeled-1.0.0";
};

TEST_F(FrameworkLibrariesTest, FindsTheModuleInAFolderAboveThePlugin) {
  add_module(site_);
  const BackendCandidate candidate = search();
  EXPECT_EQ(candidate.rejected, "");
  EXPECT_THAT(candidate.manifest.libraries, ElementsAre(site_ + "/pretend/" + kLibrary));
}

TEST_F(FrameworkLibrariesTest, TheHostsModuleComesFirst) {
  const std::string other = folder_.path() + "/elsewhere";
  add_module(other);
  add_module(site_, "framework_two");
  set_host_module_resolver([&](const std::string& module) { return other + "/" + module; });
  const BackendCandidate candidate = search();
  EXPECT_EQ(candidate.rejected, "");
  EXPECT_THAT(candidate.manifest.libraries, ElementsAre(other + "/pretend/" + kLibrary));
}

TEST_F(FrameworkLibrariesTest, SaysThatThereIsNoModule) {
  set_host_module_resolver([](const std::string&) { return std::nullopt; });
  EXPECT_THAT(search().rejected, AllOf(HasSubstr("no Python module 'pretend'"), HasSubstr(plugin_),
                                       HasSubstr("pretend 1.0.0 has it")));
}

TEST_F(FrameworkLibrariesTest, RefusesAnotherBuildOfTheFramework) {
  add_module(site_, "framework_two");
  EXPECT_THAT(search().rejected,
              AllOf(HasSubstr("compiled against another build of pretend 1.0.0"),
                    HasSubstr("'" + site_ + "/pretend/" + kLibrary + "' has the build-id "),
                    HasSubstr(read_library_identity(built_framework("framework_one"))->build_id),
                    HasSubstr("`neuropod backends install wheeled`")));
}

TEST_F(FrameworkLibrariesTest, SaysWhichLibraryIsMissing) {
  set_host_module_resolver([&](const std::string&) { return folder_.path(); });
  EXPECT_THAT(search().rejected, HasSubstr("'" + folder_.path() + "/" + kLibrary + "' is missing"));
}

}  // namespace
}  // namespace neuropod
