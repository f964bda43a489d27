#include "neuropod/base/shared_library.hh"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "neuropod/base/error.hh"

namespace neuropod {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

fs::path scratch_folder() {
  fs::path folder = fs::temp_directory_path() / ("shared_library_test_" + std::to_string(getpid()));
  fs::create_directories(folder);
  return folder;
}

std::optional<LibraryIdentity> find_mapped(const std::string& soname) {
  for (const LibraryIdentity& library : mapped_libraries()) {
    if (library.soname == soname) return library;
  }
  return std::nullopt;
}

TEST(SharedLibraryTest, ListsTheLibrariesOfThisProcess) {
  const std::optional<LibraryIdentity> library = find_mapped("libstdc++.so.6");
  ASSERT_TRUE(library.has_value());
  EXPECT_TRUE(fs::exists(library->path));
  EXPECT_NE(library->inode, 0u);
  EXPECT_EQ(library->build_id.size(), 40u);
}

TEST(SharedLibraryTest, ReadsFromTheFileWhatTheMappedLibrarySays) {
  const std::optional<LibraryIdentity> mapped = find_mapped("libstdc++.so.6");
  ASSERT_TRUE(mapped.has_value());
  const std::optional<LibraryIdentity> read = read_library_identity(mapped->path);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->soname, mapped->soname);
  EXPECT_EQ(read->build_id, mapped->build_id);
  EXPECT_TRUE(read->same_file(*mapped));
}

TEST(SharedLibraryTest, ACopyIsAnotherFileOfTheSameContent) {
  const std::optional<LibraryIdentity> mapped = find_mapped("libstdc++.so.6");
  ASSERT_TRUE(mapped.has_value());
  const fs::path copy = scratch_folder() / "copy.so";
  fs::copy_file(mapped->path, copy, fs::copy_options::overwrite_existing);
  const std::optional<LibraryIdentity> read = read_library_identity(copy);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->soname, "libstdc++.so.6");
  EXPECT_FALSE(read->same_file(*mapped));
  EXPECT_TRUE(read->same_content(*mapped));
  fs::remove_all(copy.parent_path());
}

TEST(SharedLibraryTest, OtherLibrariesDiffer) {
  const std::optional<LibraryIdentity> one = find_mapped("libstdc++.so.6");
  const std::optional<LibraryIdentity> other = find_mapped("libc.so.6");
  ASSERT_TRUE(one.has_value() && other.has_value());
  EXPECT_FALSE(one->same_content(*other));
}

TEST(SharedLibraryTest, WhatIsNoLibraryHasNoIdentity) {
  const fs::path text = scratch_folder() / "text.so";
  std::ofstream(text) << "not a library";
  EXPECT_FALSE(read_library_identity(text).has_value());
  EXPECT_FALSE(read_library_identity("/nowhere/libnothing.so").has_value());
  fs::remove_all(text.parent_path());
}

TEST(SharedLibraryTest, OpeningSaysWhatTheLoaderSaid) {
  try {
    open_library("/nowhere/libnothing.so");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kLoadFailed);
    EXPECT_THAT(error.what(), HasSubstr("'/nowhere/libnothing.so'"));
    EXPECT_THAT(error.what(), HasSubstr("No such file or directory"));
  }
}

TEST(SharedLibraryTest, FindsTheLibraryOfAnAddress) {
  EXPECT_THAT(library_path_of(reinterpret_cast<const void*>(&mapped_libraries)),
              HasSubstr("libneuropod.so"));
  EXPECT_EQ(library_path_of(nullptr), "");
}

}  // namespace
}  // namespace neuropod
