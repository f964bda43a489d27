#include "neuropod/internal/backend_registration.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "neuropod/backends/backend_manifest.hh"
#include "neuropod/backends/neuropod_backend.hh"
#include "neuropod/base/error.hh"
#include "neuropod/base/shared_library.hh"
#include "neuropod/testing/error_of.hh"
#include "neuropod/testing/package_on_disk.hh"

namespace neuropod {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The plug-ins of testing/plugins. Plug-ins stay in the process, so each test has platforms of its
// own; pretend_one to pretend_four are over one framework library, pretend_other over another of
// that name.
std::string plugin_directory(const std::string& name) {
  return std::string(NEUROPOD_TEST_PLUGINS) + "/" + name;
}

BackendLoadSpec plugin(const std::string& name) { return {name, "", plugin_directory(name)}; }

std::unique_ptr<NeuropodBackend> load(const std::string& platform,
                                      const std::vector<BackendLoadSpec>& overrides,
                                      const std::string& range = "*",
                                      const RuntimeOptions& options = {}) {
  const PackageOnDisk package(
      one_input_config(R"("platform_version_semver": ")" + range + R"(", )", platform));
  return load_backend(package.path(), overrides, options);
}

class BackendRegistrationTest : public ::testing::Test {
 protected:
  void TearDown() override { set_host_module_resolver(nullptr); }

  // A plug-in directory of this test: `name`'s manifest with one text replaced by another.
  std::string changed_plugin(const std::string& name, const std::string& from,
                             const std::string& to) {
    std::ifstream file(plugin_directory(name) + "/backend.json");
    std::string manifest((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const size_t at = manifest.find(from);
    EXPECT_NE(at, std::string::npos) << manifest;
    manifest.replace(at, from.size(), to);
    std::ofstream(folder_.path() + "/backend.json") << manifest;
    return folder_.path();
  }

  TemporaryFolder folder_;
  ScopedEnvironment path_{"NEUROPOD_BACKEND_PATH", ""};
  ScopedEnvironment data_home_{"XDG_DATA_HOME", "/nowhere"};
  ScopedEnvironment base_dir_{"NEUROPOD_BASE_DIR", "/nowhere"};
};

TEST_F(BackendRegistrationTest, OpensAPluginAfterItsFramework) {
  const auto backend = load("pretend_one", {plugin("pretend_one")});
  EXPECT_THAT(error_of([&] { backend->load_model(); }).what(),
              HasSubstr("pretend framework 1.0.0"));
}

TEST_F(BackendRegistrationTest, FindsEchoBesideTheLibrary) {
  const PackageOnDisk package(one_input_config(),
                              R"({"outputs": {"y": {"op": "identity", "input": "x"}}})");
  EXPECT_EQ(load_backend(package.path(), {}, {})->get_platform(), "echo");
}

TEST_F(BackendRegistrationTest, ALoadedPluginServesLaterPackages) {
  load("pretend_one", {plugin("pretend_one")});
  EXPECT_EQ(load("pretend_one", {})->get_platform(), "pretend_one");
}

TEST_F(BackendRegistrationTest, ARangeThatTheLoadedPluginMissesIsAConflict) {
  load("pretend_one", {plugin("pretend_one")});
  const Error error = error_of([] { load("pretend_one", {}, ">=2.0.0"); });
  EXPECT_EQ(error.code(), ErrorCode::kVersionConflict);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("model 'tested'"), HasSubstr(">=2.0.0"),
                                  HasSubstr("1.0.0"), HasSubstr("use_ope=True")));
}

TEST_F(BackendRegistrationTest, ALateOverrideIsWarnedOf) {
  load("pretend_one", {plugin("pretend_one")});
  fs::copy_file(plugin_directory("pretend_one") + "/libpretend_one.so",
                folder_.path() + "/libpretend_one.so");
  const std::string other = changed_plugin("pretend_one", "1.0.0", "1.0.0");
  ::testing::internal::CaptureStderr();
  load("pretend_one", {{"pretend_one", "", other}});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr(other), HasSubstr("has no effect")));
}

TEST_F(BackendRegistrationTest, AnotherCopyOfAFrameworkIsAConflict) {
  load("pretend_one", {plugin("pretend_one")});
  const Error error = error_of([] { load("pretend_other", {plugin("pretend_other")}); });
  EXPECT_EQ(error.code(), ErrorCode::kVersionConflict);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("libpretend_framework.so"), HasSubstr("framework_one"),
                                  HasSubstr("framework_two"), HasSubstr("use_ope=True")));
  EXPECT_NE(find_library_conflict(read_backend_manifest(plugin_directory("pretend_other"))), "");
}

TEST_F(BackendRegistrationTest, ACopyOfTheSameLibraryIsNoConflict) {
  load("pretend_one", {plugin("pretend_one")});
  const std::string framework = folder_.path() + "/libpretend_framework.so";
  fs::copy_file(std::string(NEUROPOD_TEST_PLUGINS) + "/framework_one/libpretend_framework.so",
                framework);
  fs::copy_file(plugin_directory("pretend_two") + "/libpretend_two.so",
                folder_.path() + "/libpretend_two.so");
  const std::string copy = changed_plugin(
      "pretend_two", std::string(NEUROPOD_TEST_PLUGINS) + "/framework_one/libpretend_framework.so",
      framework);
  const auto backend = load("pretend_two", {{"pretend_two", "", copy}});
  EXPECT_THAT(error_of([&] { backend->load_model(); }).what(),
              HasSubstr("pretend framework 1.0.0"));
  for (const LibraryIdentity& library : mapped_libraries()) EXPECT_NE(library.path, framework);
}

TEST_F(BackendRegistrationTest, TheHostsCopyOfAFrameworkDecides) {
  set_host_module_resolver([](const std::string& module) -> std::optional<std::string> {
    return "/home/somebody/env/" + module;
  });
  const Error error = error_of([] { load("pretend_three", {plugin("pretend_three")}); });
  EXPECT_EQ(error.code(), ErrorCode::kVersionConflict);
  EXPECT_THAT(
      error.what(),
      AllOf(HasSubstr("module 'pretend'"), HasSubstr("/home/somebody/env/pretend"),
            HasSubstr("use_ope=True"), HasSubstr("neuropod backends install pretend_three")));

  set_host_module_resolver([](const std::string&) { return std::string(NEUROPOD_TEST_PLUGINS); });
  EXPECT_EQ(load("pretend_three", {plugin("pretend_three")})->get_platform(), "pretend_three");
}

TEST_F(BackendRegistrationTest, AFrameworkThatTheHostLacksDecidesNothing) {
  set_host_module_resolver([](const std::string&) { return std::nullopt; });
  EXPECT_EQ(find_library_conflict(read_backend_manifest(plugin_directory("pretend_three"))), "");
}

TEST_F(BackendRegistrationTest, EnvironmentsMayShareAFileByALink) {
  std::string environment = folder_.path() + "/framework_one";
  fs::create_directories(environment);
  fs::create_symlink(std::string(NEUROPOD_TEST_PLUGINS) + "/framework_one/libpretend_framework.so",
                     environment + "/libpretend_framework.so");
  set_host_module_resolver([&](const std::string&) { return environment; });
  EXPECT_EQ(find_library_conflict(read_backend_manifest(plugin_directory("pretend_three"))), "");
}

TEST_F(BackendRegistrationTest, LibrariesThatAFrameworkNeedsMayLieElsewhere) {
  BackendManifest manifest = read_backend_manifest(plugin_directory("pretend_three"));
  manifest.libraries.insert(manifest.libraries.begin(), "/usr/lib/driver/libdriver.so");
  set_host_module_resolver([](const std::string&) { return std::string(NEUROPOD_TEST_PLUGINS); });
  EXPECT_EQ(find_library_conflict(manifest), "");
  manifest.libraries.emplace_back("/usr/lib/test_plugins/framework_one/libpretend_framework.so");
  EXPECT_THAT(find_library_conflict(manifest), HasSubstr("'/usr/lib/test_plugins/framework_one/"));
}

TEST_F(BackendRegistrationTest, SaysWhereItLookedAndWhatItFound) {
  const Error error = error_of([] { load("abacus", {}); });
  EXPECT_EQ(error.code(), ErrorCode::kBackendNotFound);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("backend for platform 'abacus' (any version) not found; looked in: "),
                    HasSubstr("/nowhere/backends (NEUROPOD_BASE_DIR)"),
                    HasSubstr("; found: echo 1.0.0; `neuropod backends install abacus` adds it")));
}

TEST_F(BackendRegistrationTest, SaysWhyWhatItFoundWontDo) {
  ScopedEnvironment path("NEUROPOD_BACKEND_PATH", plugin_directory("pretend_four"));
  const Error error = error_of([] { load("pretend_four", {}, "^3.1"); });
  EXPECT_EQ(error.code(), ErrorCode::kBackendNotFound);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("'pretend_four' (version ^3.1)"),
                    HasSubstr("version 1.0.0 isn't in the range '^3.1'"),
                    HasSubstr("install pretend_four` (with --framework-version or ")));
}

TEST_F(BackendRegistrationTest, APluginThatRegistersNothingIsAnError) {
  const Error error = error_of([] { load("pretend_silent", {plugin("pretend_silent")}); });
  EXPECT_EQ(error.code(), ErrorCode::kLoadFailed);
  EXPECT_THAT(error.what(), HasSubstr("registered nothing for platform 'pretend_silent'"));
}

TEST_F(BackendRegistrationTest, APluginThatCantBeOpenedGivesTheLoadersReason) {
  const std::string library = folder_.path() + "/libtext.so";
  std::ofstream(library) << "text";
  const Error error = error_of([&] { load("text", {{"text", "1.0.0", library}}); });
  EXPECT_EQ(error.code(), ErrorCode::kLoadFailed);
  EXPECT_THAT(error.what(), AllOf(HasSubstr(library), HasSubstr("file too short")));
}

TEST_F(BackendRegistrationTest, LoadsInThisProcessOnly) {
  RuntimeOptions options;
  options.use_ope = true;
  const Error error = error_of([&] { load("echo", {}, "*", options); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("loads in this process"));
}

TEST_F(BackendRegistrationTest, ManyThreadsMayLoadAPluginAtOnce) {
  std::vector<std::thread> threads;
  std::vector<std::string> platforms(8);
  for (std::string& platform : platforms) {
    threads.emplace_back(
        [&platform] { platform = load("pretend_four", {plugin("pretend_four")})->get_platform(); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(platforms, ::testing::Each("pretend_four"));
}

TEST_F(BackendRegistrationTest, RefusesAPlatformThatIsServed) {
  const auto factory = [](const std::string&, const RuntimeOptions&) {
    return std::unique_ptr<NeuropodBackend>();
  };
  EXPECT_TRUE(register_backend("Mine", "mine", "1.0.0", NEUROPOD_ABI_VERSION, factory));
  const Error error =
      error_of([&] { register_backend("Other", "mine", "2.0.0", NEUROPOD_ABI_VERSION, factory); });
  EXPECT_EQ(error.code(), ErrorCode::kVersionConflict);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("Mine"), HasSubstr("Other"), HasSubstr("use_ope=True")));
}

TEST_F(BackendRegistrationTest, RefusesAnotherAbiAndWhatIsNoVersion) {
  const auto factory = [](const std::string&, const RuntimeOptions&) {
    return std::unique_ptr<NeuropodBackend>();
  };
  EXPECT_THAT(error_of([&] { register_backend("Old", "old", "1.0.0", "0", factory); }).what(),
              HasSubstr("neuropod ABI 0"));
  EXPECT_THAT(error_of([&] {
                register_backend("Odd", "odd", "latest", NEUROPOD_ABI_VERSION, factory);
              }).what(),
              HasSubstr("latest"));
}

}  // namespace
}  // namespace neuropod
