#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "neuropod/base/error.hh"
#include "neuropod/base/sha256.hh"
#include "neuropod/base/temporary_folder.hh"
#include "neuropod/internal/neuropod_loader.hh"
#include "neuropod/package/testing/raw_zip_writer.hh"

namespace neuropod {
namespace {

namespace fs = std::filesystem;

using Files = std::vector<std::pair<std::string, std::string>>;

// Text that deflate can shrink, different at every place.
std::string numbered_lines(size_t bytes) {
  std::string text;
  for (size_t i = 0; text.size() < bytes; ++i) text += std::to_string(i * 2654435761u) + "\n";
  text.resize(bytes);
  return text;
}

const Files& package_files() {
  static const Files files = {
      {"config.json", "{\"name\": \"x\"}"},
      {"0/data/model.pt", numbered_lines(3000000)},
      {"0/data/empty", ""},
      {"0/Größe/模型.txt", "unicode"},
  };
  return files;
}

enum class Form { kDirectory, kDeflated, kStored, kZip64, kStreamed };

std::string write_package(Form form, const Files& files, const std::string& folder) {
  const std::string path = folder + "/package";
  if (form == Form::kDirectory) {
    for (const auto& [name, content] : files) write_file(path + "/" + name, content);
    return path;
  }
  std::vector<RawZipEntry> entries;
  for (const auto& [name, content] : files) {
    RawZipEntry entry;
    entry.name = name;
    entry.content = content;
    entry.deflate = form == Form::kDeflated || form == Form::kStreamed;
    entry.zip64 = form == Form::kZip64;
    entry.data_descriptor = form == Form::kStreamed;
    entries.push_back(entry);
  }
  write_file(path, write_raw_zip(entries));
  return path;
}

class LoaderTest : public testing::TestWithParam<Form> {
 protected:
  LoaderTest() : loader_(get_loader(write_package(GetParam(), package_files(), folder_.path()))) {}

  const TemporaryFolder folder_;
  const std::unique_ptr<NeuropodLoader> loader_;
};

std::string read_all(std::istream& stream) {
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

std::string code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return to_string(error.code());
  }
  return "no error";
}

TEST_P(LoaderTest, ReadsEveryFile) {
  for (const auto& [name, content] : package_files()) {
    EXPECT_TRUE(loader_->read_file(name) == content) << name;
    EXPECT_EQ(loader_->get_file_size(name), content.size()) << name;
    EXPECT_EQ(loader_->get_hash_for_file(name), sha256_of(content)) << name;
    EXPECT_TRUE(read_all(*loader_->get_istream_for_file(name)) == content) << name;
    std::ifstream file(loader_->get_file_path(name), std::ios::binary);
    EXPECT_TRUE(read_all(file) == content) << name;
  }
}

TEST_P(LoaderTest, ListsFilesByName) {
  EXPECT_THAT(loader_->list_files(), testing::ElementsAre("0/Größe/模型.txt", "0/data/empty",
                                                          "0/data/model.pt", "config.json"));
}

TEST_P(LoaderTest, GivesTheWholePackageAsAFolder) {
  const std::string local = loader_->ensure_local();
  for (const auto& [name, content] : package_files()) {
    std::ifstream file(local + "/" + name, std::ios::binary);
    EXPECT_TRUE(read_all(file) == content) << name;
    EXPECT_EQ(loader_->get_file_path(name), local + "/" + name);
  }
  EXPECT_EQ(loader_->ensure_local(), local);
}

TEST_P(LoaderTest, MissingFilesAreNullAsStreamsAndErrorsOtherwise) {
  for (const char* name : {"none", "0", "0/data", "0/data/none", "config.json/x"}) {
    EXPECT_EQ(loader_->get_istream_for_file(name), nullptr) << name;
    EXPECT_EQ(code_of([&] { loader_->get_file_path(name); }), "not_found") << name;
    EXPECT_EQ(code_of([&] { loader_->get_hash_for_file(name); }), "not_found") << name;
    EXPECT_EQ(code_of([&] { loader_->get_file_size(name); }), "not_found") << name;
    EXPECT_EQ(code_of([&] { loader_->read_file(name); }), "not_found") << name;
  }
}

TEST_P(LoaderTest, RefusesNamesThatLeaveThePackage) {
  for (const char* name :
       {"", "/", "/config.json", "../package/config.json", "0/../config.json", "..", "0/..",
        "0\\data\\model.pt", "./config.json", "0//data/model.pt", "0/data/"}) {
    EXPECT_EQ(code_of([&] { loader_->get_istream_for_file(name); }), "invalid_argument") << name;
    EXPECT_EQ(code_of([&] { loader_->get_file_path(name); }), "invalid_argument") << name;
    EXPECT_EQ(code_of([&] { loader_->get_hash_for_file(name); }), "invalid_argument") << name;
    EXPECT_EQ(code_of([&] { loader_->get_file_size(name); }), "invalid_argument") << name;
  }
}

TEST_P(LoaderTest, StreamsSeekAsFilesDo) {
  const std::string& content = package_files()[1].second;
  const auto stream = loader_->get_istream_for_file("0/data/model.pt");
  stream->seekg(0, std::ios::end);
  EXPECT_EQ(stream->tellg(), std::streamoff(content.size()));
  EXPECT_EQ(stream->get(), EOF);
  stream->clear();
  // As a reader of archives does it: the end first, then here and there, small and large.
  const std::pair<size_t, size_t> reads[] = {{2999978, 22},     {0, 10},     {10, 100},
                                             {2000000, 900000}, {5, 1},      {1999999, 300},
                                             {2000299, 1},      {0, 3000000}};
  for (const auto& [position, count] : reads) {
    stream->seekg(static_cast<std::streamoff>(position));
    std::string bytes(count, '\0');
    stream->read(bytes.data(), static_cast<std::streamsize>(count));
    ASSERT_TRUE(*stream) << position;
    EXPECT_TRUE(bytes == content.substr(position, count)) << position;
    EXPECT_EQ(stream->tellg(), std::streamoff(position + count));
  }
  stream->seekg(-10, std::ios::cur);
  EXPECT_EQ(read_all(*stream), content.substr(content.size() - 10));
}

TEST_P(LoaderTest, RefusesToSeekOutsideTheFile) {
  const auto stream = loader_->get_istream_for_file("config.json");
  stream->seekg(-1);
  EXPECT_TRUE(stream->fail());
  stream->clear();
  stream->seekg(1, std::ios::end);
  EXPECT_TRUE(stream->fail());
  stream->clear();
  stream->seekg(0);
  EXPECT_EQ(read_all(*stream), package_files()[0].second);
}

TEST_P(LoaderTest, StreamsDoNotDisturbEachOther) {
  const std::string& content = package_files()[1].second;
  const auto first = loader_->get_istream_for_file("0/data/model.pt");
  const auto second = loader_->get_istream_for_file("0/data/model.pt");
  std::string a;
  std::string b;
  std::string chunk(70000, '\0');
  while (*first || *second) {
    first->read(chunk.data(), 70000);
    a.append(chunk, 0, static_cast<size_t>(first->gcount()));
    second->read(chunk.data(), 999);
    b.append(chunk, 0, static_cast<size_t>(second->gcount()));
  }
  EXPECT_TRUE(a == content);
  EXPECT_TRUE(b == content);
}

TEST_P(LoaderTest, ServesThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::vector<int> good(8);
  for (int& one : good) {
    threads.emplace_back([&] {
      for (const auto& [name, content] : package_files()) {
        std::ifstream file(loader_->get_file_path(name), std::ios::binary);
        one += loader_->read_file(name) == content && read_all(file) == content;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(good, testing::Each(int(package_files().size())));
}

INSTANTIATE_TEST_SUITE_P(Forms, LoaderTest,
                         testing::Values(Form::kDirectory, Form::kDeflated, Form::kStored,
                                         Form::kZip64, Form::kStreamed));

// A package whose files are gone when their sizes have been asked for.
class VanishingPackage : public NeuropodLoader {
 public:
  std::unique_ptr<std::istream> get_istream_for_file(const std::string&) override {
    return nullptr;
  }
  std::string get_file_path(const std::string& path) override { return path; }
  std::string get_hash_for_file(const std::string&) override { return ""; }
  std::string ensure_local() override { return ""; }
  std::vector<std::string> list_files() override { return {"file"}; }
  uint64_t get_file_size(const std::string&) override { return 7; }
};

TEST(NeuropodLoaderTest, AFileThatIsRemovedWhileItIsReadIsNotFound) {
  VanishingPackage package;
  EXPECT_EQ(code_of([&] { package.read_file("file"); }), "not_found");
}

TEST(GetLoaderTest, NamesAPathWhereThereIsNothing) {
  try {
    get_loader("no/such/päckage");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_NE(error.message().find("no/such/päckage"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find(fs::current_path().string()), std::string::npos)
        << error.message();
  }
}

TEST(GetLoaderTest, RefusesPipesWithoutWaiting) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder.path() + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(code_of([&] { get_loader(folder.path() + "/pipe"); }), "invalid_argument");
}

TEST(GetLoaderTest, RelativePathsSurviveAChangeOfFolder) {
  const TemporaryFolder folder;
  write_file(folder.path() + "/d/config.json", "directory");
  write_file(folder.path() + "/z", write_zip({{"config.json", "zip"}}));
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const auto directory = get_loader("d/");
  const auto zip = get_loader("z");
  fs::current_path(before);
  EXPECT_EQ(directory->read_file("config.json"), "directory");
  EXPECT_EQ(zip->read_file("config.json"), "zip");
}

TEST(DirectoryLoaderTest, FollowsLinks) {
  const TemporaryFolder folder;
  write_file(folder.path() + "/elsewhere/model.pt", "weights");
  write_file(folder.path() + "/package/config.json", "{}");
  fs::create_directory_symlink("../elsewhere", folder.path() + "/package/0");
  fs::create_symlink("config.json", folder.path() + "/package/copy.json");
  const auto loader = get_loader(folder.path() + "/package");
  EXPECT_THAT(loader->list_files(), testing::ElementsAre("0/model.pt", "config.json", "copy.json"));
  EXPECT_EQ(loader->read_file("0/model.pt"), "weights");
}

TEST(DirectoryLoaderTest, NamesWhatItCannotList) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/package";
  write_file(path + "/a/config.json", "{}");
  const auto loader = get_loader(path);
  const auto problem = [&](const std::string& name) {
    try {
      loader->list_files();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidPackage);
      EXPECT_NE(error.message().find(name), std::string::npos) << error.message();
      fs::remove(path + "/" + name);
      return true;
    }
    return false;
  };
  EXPECT_FALSE(problem(""));
  fs::create_directory_symlink("..", path + "/a/loop");
  EXPECT_TRUE(problem("a/loop"));
  fs::create_symlink("nowhere", path + "/a/dangling");
  EXPECT_TRUE(problem("a/dangling"));
  ASSERT_EQ(::mkfifo((path + "/a/pipe").c_str(), 0600), 0);
  EXPECT_TRUE(problem("a/pipe"));
  write_file(path + "/a/back\\slash", "");
  EXPECT_TRUE(problem("a/back\\slash"));
}

}  // namespace
}  // namespace neuropod
