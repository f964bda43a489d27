#include "neuropod/base/temporary_folder.hh"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "neuropod/base/error.hh"
#include "neuropod/base/read_only_file.hh"

namespace neuropod {
namespace {

namespace fs = std::filesystem;

// Sets TMPDIR while it lives.
class ScopedTmpdir {
 public:
  explicit ScopedTmpdir(const std::string& value) {
    if (const char* old = std::getenv("TMPDIR")) old_ = std::make_unique<std::string>(old);
    ::setenv("TMPDIR", value.c_str(), 1);
  }
  ~ScopedTmpdir() {
    if (old_) {
      ::setenv("TMPDIR", old_->c_str(), 1);
    } else {
      ::unsetenv("TMPDIR");
    }
  }

 private:
  std::unique_ptr<std::string> old_;
};

TEST(TemporaryFolderTest, IsPrivateAndNamedForNeuropod) {
  const TemporaryFolder folder;
  struct stat status{};
  ASSERT_EQ(::stat(folder.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  EXPECT_EQ(fs::path(folder.path()).filename().string().rfind("neuropod_tmp_", 0), 0u);
  EXPECT_TRUE(fs::path(folder.path()).is_absolute());
}

TEST(TemporaryFolderTest, LiesBelowTmpdir) {
  const TemporaryFolder parent;
  const ScopedTmpdir tmpdir(parent.path() + "/");
  const TemporaryFolder folder;
  EXPECT_EQ(fs::path(folder.path()).parent_path(), fs::path(parent.path()));
}

TEST(TemporaryFolderTest, EmptyTmpdirMeansTmp) {
  const ScopedTmpdir tmpdir("");
  const TemporaryFolder folder;
  EXPECT_EQ(fs::path(folder.path()).parent_path(), fs::path("/tmp"));
}

TEST(TemporaryFolderTest, SaysWhichFolderCannotBeUsed) {
  const TemporaryFolder parent;
  const ScopedTmpdir tmpdir(parent.path() + "/missing");
  try {
    const TemporaryFolder folder;
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_NE(error.message().find(parent.path() + "/missing"), std::string::npos);
    EXPECT_NE(error.message().find("TMPDIR"), std::string::npos);
  }
}

bool removes_read_only_folders() {
  auto folder = std::make_unique<TemporaryFolder>();
  const fs::path path = folder->path();
  fs::create_directories(path / "a" / "b");
  std::ofstream(path / "a" / "b" / "file") << "x";
  fs::permissions(path / "a" / "b", fs::perms::owner_read);
  fs::permissions(path / "a", fs::perms::none);
  folder.reset();
  return !fs::exists(path);
}

TEST(TemporaryFolderTest, RemovesReadOnlyFoldersToo) {
  // Permissions don't bind root: a child gives its privileges up first.
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::setenv("TMPDIR", "/tmp", 1);
    if (::getuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(2);
    ::_exit(removes_read_only_folders() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(TemporaryFolderTest, LeavesWhatLinksPointTo) {
  const TemporaryFolder outside;
  std::ofstream(outside.path() + "/kept") << "x";
  std::string path;
  {
    const TemporaryFolder folder;
    path = folder.path();
    fs::create_directory_symlink(outside.path(), path + "/link");
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::exists(outside.path() + "/kept"));
}

TEST(TemporaryFolderTest, SurvivesTheEndOfAForkedChild) {
  auto folder = std::make_unique<TemporaryFolder>();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    folder.reset();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(fs::exists(folder->path()));
}

TEST(ReadOnlyFileTest, ReadsAnyPartAndTellsTheEnd) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  std::ofstream(path, std::ios::binary) << "0123456789";
  const ReadOnlyFile file(path);
  EXPECT_EQ(file.size(), 10u);
  char bytes[8] = {};
  EXPECT_EQ(file.read_at(3, bytes, 4), 4u);
  EXPECT_EQ(std::string(bytes, 4), "3456");
  EXPECT_EQ(file.read_at(7, bytes, 8), 3u);
  EXPECT_EQ(file.read_at(10, bytes, 8), 0u);
}

TEST(ReadOnlyFileTest, KeepsTheFileThatWasOpened) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  std::ofstream(path) << "old";
  const ReadOnlyFile file(path);
  std::ofstream(path + ".new") << "new";
  fs::rename(path + ".new", path);
  char bytes[3] = {};
  EXPECT_EQ(file.read_at(0, bytes, 3), 3u);
  EXPECT_EQ(std::string(bytes, 3), "old");
}

TEST(ReadOnlyFileTest, RefusesWhatIsNoRegularFile) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder.path() + "/pipe").c_str(), 0600), 0);
  const auto code_for = [](const std::string& path) {
    try {
      const ReadOnlyFile file(path);
    } catch (const Error& error) {
      EXPECT_NE(error.message().find(path), std::string::npos);
      return std::string(to_string(error.code()));
    }
    return std::string("opened");
  };
  EXPECT_EQ(code_for(folder.path() + "/pipe"), "invalid_argument");
  EXPECT_EQ(code_for(folder.path()), "invalid_argument");
  EXPECT_EQ(code_for(folder.path() + "/none"), "not_found");
}

}  // namespace
}  // namespace neuropod
