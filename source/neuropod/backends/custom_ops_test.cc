#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "neuropod/backends/neuropod_backend.hh"
#include "neuropod/base/ed25519.hh"
#include "neuropod/base/error.hh"
#include "neuropod/package/signature.hh"
#include "neuropod/testing/package_on_disk.hh"

namespace neuropod {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Libraries stay loaded, so each test has contents and names of its own.
class CustomOpsTest : public ::testing::Test {
 protected:
  static fs::path library(const std::string& name) {
    return fs::path(NEUROPOD_TEST_PLUGINS) / "ops" / ("lib" + name + ".so");
  }

  void add_op(const std::string& name, const fs::path& content) {
    const fs::path to = fs::path(package_.path()) / "0" / "ops" / name;
    fs::create_directories(to.parent_path());
    fs::remove(to);  // writing into a library that is loaded would change it
    fs::copy_file(content, to);
  }

  void load(const std::string& name) {
    const std::unique_ptr<NeuropodLoader> loader = get_loader(package_.path());
    load_custom_op(*loader, name);
  }

  Error error_of_loading(const std::string& name) {
    try {
      load(name);
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "no error";
    return Error(ErrorCode::kUnavailable, "no error");
  }

  // What the libraries wrote while they were opened.
  std::string opened() {
    std::ifstream file(log_folder_.path() + "/log");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  PackageOnDisk package_{one_input_config()};
  TemporaryFolder log_folder_;
  ScopedEnvironment log_{"NEUROPOD_TEST_OP_LOG", log_folder_.path() + "/log"};
};

TEST_F(CustomOpsTest, TheSameContentIsOpenedOnceWhateverItsName) {
  add_op("a.so", library("op_1"));
  add_op("a_copy.so", library("op_1"));
  load("a.so");
  load("a_copy.so");
  load("a.so");
  EXPECT_EQ(opened(), "1\n");
}

TEST_F(CustomOpsTest, OtherContentUnderALoadedNameIsAConflict) {
  add_op("b.so", library("op_2"));
  load("b.so");
  add_op("b.so", library("op_3"));
  const Error error = error_of_loading("b.so");
  EXPECT_EQ(error.code(), ErrorCode::kVersionConflict);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("'b.so'"), HasSubstr("use_ope=True")));
  EXPECT_EQ(opened(), "2\n");
}

TEST_F(CustomOpsTest, WhatFailedMayBeTriedAgain) {
  add_op("c.so", library("op_needing"));
  const Error error = error_of_loading("c.so");
  EXPECT_EQ(error.code(), ErrorCode::kLoadFailed);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("c.so"), HasSubstr("libpretend_framework.so")));
  add_op("libpretend_framework.so",
         fs::path(NEUROPOD_TEST_PLUGINS) / "framework_one" / "libpretend_framework.so");
  load("c.so");
  EXPECT_EQ(opened(), "needing\n1.0.0");
}

TEST_F(CustomOpsTest, AMissingLibraryIsNamed) {
  const Error error = error_of_loading("none.so");
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_THAT(error.what(), HasSubstr("0/ops/none.so"));
}

TEST_F(CustomOpsTest, ManyThreadsOpenALibraryOnce) {
  add_op("d.so", library("op_4"));
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this] { load("d.so"); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(opened(), "4\n");
}

// Signs the package, and opens it with that signature required.
std::unique_ptr<NeuropodLoader> open_signed(const PackageOnDisk& package) {
  const Ed25519PrivateKey key = Ed25519PrivateKey::generate();
  for (const auto& [name, content] : make_signature(*get_loader(package.path()), key, true)) {
    package.write(name, content);
  }
  return open_signed_package(get_loader(package.path()), {key.public_key()});
}

TEST_F(CustomOpsTest, ASignedLibraryIsOpened) {
  add_op("e.so", library("op_5"));
  const auto loader = open_signed(package_);
  load_custom_op(*loader, "e.so");
  EXPECT_EQ(opened(), "5\n");
}

TEST_F(CustomOpsTest, ALibraryThatWasChangedAfterItWasVerifiedIsNotOpened) {
  add_op("f.so", library("op_6"));
  const auto loader = open_signed(package_);
  add_op("f.so", library("op_1"));
  try {
    load_custom_op(*loader, "f.so");
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorruptPackage);
    EXPECT_THAT(error.what(), HasSubstr("'0/ops/f.so'"));
  }
  EXPECT_EQ(opened(), "");
}

}  // namespace
}  // namespace neuropod
