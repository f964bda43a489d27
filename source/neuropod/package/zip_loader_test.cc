#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "neuropod/base/error.hh"
#include "neuropod/base/temporary_folder.hh"
#include "neuropod/internal/neuropod_loader.hh"
#include "neuropod/package/testing/raw_zip_writer.hh"

namespace neuropod {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

RawZipEntry entry(const std::string& name, const std::string& content = "content") {
  RawZipEntry result;
  result.name = name;
  result.content = content;
  return result;
}

RawZipEntry deflated(const std::string& name, const std::string& content) {
  RawZipEntry result = entry(name, content);
  result.deflate = true;
  return result;
}

class ZipLoaderTest : public testing::Test {
 protected:
  std::unique_ptr<NeuropodLoader> open(const std::string& bytes) {
    write_file(path_, bytes);
    return get_loader(path_);
  }

  // "code: message" of what opening says, with the package's path checked and left out.
  std::string problem(const std::string& bytes) {
    try {
      open(bytes);
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), HasSubstr("'" + path_ + "'"));
      return std::string(to_string(error.code())) + ": " + error.message();
    }
    return "opened";
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/package.neuropod";
};

TEST_F(ZipLoaderTest, LooksNamesUpExactlyFirstThenWithoutCase) {
  const auto loader =
      open(write_raw_zip({entry("0/Model.PT", "mixed"), entry("0/model.pt", "lower"),
                          entry("Config.json", "config")}));
  EXPECT_EQ(loader->read_file("0/model.pt"), "lower");
  EXPECT_EQ(loader->read_file("0/Model.PT"), "mixed");
  EXPECT_EQ(loader->read_file("0/MODEL.pt"), "mixed");
  EXPECT_EQ(loader->read_file("config.json"), "config");
  EXPECT_EQ(fs::path(loader->get_file_path("config.json")).filename(), "Config.json");
}

TEST_F(ZipLoaderTest, LeavesFoldersOut) {
  const auto loader = open(write_raw_zip({entry("0/", ""), entry("0/ops/", ""), entry("0/a")}));
  EXPECT_THAT(loader->list_files(), testing::ElementsAre("0/a"));
  EXPECT_EQ(loader->get_istream_for_file("0/ops"), nullptr);
}

TEST_F(ZipLoaderTest, OpensAnArchiveWithoutEntries) {
  EXPECT_TRUE(open(write_raw_zip({}))->list_files().empty());
  EXPECT_EQ(problem("PK\5\6" + std::string(18, '\0')), "opened");
}

TEST_F(ZipLoaderTest, OpensAnArchiveBehindOtherData) {
  const auto loader = open("#!/bin/sh\n" + write_raw_zip({deflated("a", "content")}));
  EXPECT_EQ(loader->read_file("a"), "content");
}

TEST_F(ZipLoaderTest, ReadsPastFourGibibytes) {
  // A sparse file: the entries' headers, a hole of 5 GiB, the last bytes, then the directory.
  constexpr uint64_t kHole = uint64_t{5} << 30;
  RawZipEntry big = entry("big", "0123456789");
  big.zip64 = true;
  const std::string honest = write_raw_zip({big});
  const size_t header = honest.find("0123456789");
  std::string start = honest.substr(0, header);
  std::string end = honest.substr(header);
  const auto replace = [](std::string* text, uint64_t from, uint64_t to, size_t occurrence) {
    const std::string old(reinterpret_cast<const char*>(&from), 8);
    size_t at = text->find(old);
    for (; occurrence > 0; --occurrence) at = text->find(old, at + 1);
    ASSERT_NE(at, std::string::npos);
    text->replace(at, 8, reinterpret_cast<const char*>(&to), 8);
  };
  const uint64_t offset = header + 10;
  for (int i = 0; i < 2; ++i) replace(&start, 10, 10 + kHole, 0);
  for (int i = 0; i < 2; ++i) replace(&end, 10, 10 + kHole, 0);
  const uint64_t end_record = honest.find("PK\6\6");
  replace(&end, offset, offset + kHole, 0);
  replace(&end, end_record, end_record + kHole, 0);
  write_file(path_, start);
  {
    fs::resize_file(path_, header + kHole);
    std::ofstream stream(path_, std::ios::binary | std::ios::app);
    stream << end;
  }
  const auto loader = get_loader(path_);
  EXPECT_EQ(loader->get_file_size("big"), kHole + 10);
  const auto stream = loader->get_istream_for_file("big");
  stream->seekg(static_cast<std::streamoff>(kHole));
  std::string tail(10, '\0');
  EXPECT_TRUE(stream->read(tail.data(), 10));
  EXPECT_EQ(tail, "0123456789");
}

TEST_F(ZipLoaderTest, SaysWhatIsWrongWithFilesThatAreNoArchives) {
  EXPECT_THAT(problem(""), HasSubstr("corrupt_package: package '" + path_ + "' is an empty file"));
  EXPECT_THAT(problem("{\"name\": 1}"), HasSubstr("neither a zip archive nor a folder"));
  EXPECT_THAT(problem("PK"), HasSubstr("corrupt_package"));
  const std::string bytes = write_raw_zip({deflated("config.json", std::string(1000, 'x'))});
  EXPECT_THAT(problem(bytes.substr(0, bytes.size() / 2)),
              AllOf(HasSubstr("corrupt_package"), HasSubstr("truncated")));
  EXPECT_THAT(problem(bytes.substr(0, bytes.size() - 1)),
              AllOf(HasSubstr("corrupt_package"), HasSubstr("truncated")));
}

TEST_F(ZipLoaderTest, RefusesNamesThatLeaveThePackage) {
  for (const char* name : {"../evil", "0/../../evil", "/etc/evil", "0\\evil", "..\\evil", "..",
                           "./a", "0//a", "../", "/"}) {
    EXPECT_THAT(problem(write_raw_zip({entry("config.json"), entry(name)})),
                AllOf(HasSubstr("invalid_package"), HasSubstr(std::string("'") + name + "'")))
        << name;
  }
  EXPECT_THAT(problem(write_raw_zip({entry(std::string("a\0b\033[2J", 7))})),
              HasSubstr("'a?b?[2J' whose name holds a control character"));
  EXPECT_THAT(problem(write_raw_zip({entry("")})), HasSubstr("is empty"));
  EXPECT_EQ(problem(write_raw_zip({entry("..a"), entry("a..b/...")})), "opened");
}

TEST_F(ZipLoaderTest, RefusesTwoEntriesOfOneName) {
  EXPECT_THAT(problem(write_raw_zip({entry("a", "1"), entry("b"), entry("a", "2")})),
              AllOf(HasSubstr("corrupt_package"), HasSubstr("more than one entry 'a'")));
  EXPECT_THAT(problem(write_raw_zip({entry("a", "1"), entry("a/b", "2")})),
              AllOf(HasSubstr("invalid_package"), HasSubstr("'a' as a file and as a folder")));
  EXPECT_THAT(problem(write_raw_zip({entry("a/b/", ""), entry("a/b", "2")})),
              HasSubstr("'a/b' as a file and as a folder"));
}

TEST_F(ZipLoaderTest, RefusesEncryptedEntries) {
  RawZipEntry secret = entry("secret");
  secret.flags = 1;
  EXPECT_THAT(problem(write_raw_zip({secret})),
              AllOf(HasSubstr("corrupt_package"), HasSubstr("encrypted entry 'secret'")));
}

TEST_F(ZipLoaderTest, RefusesLinksAndDevices) {
  RawZipEntry link = entry("link", "/etc/passwd");
  link.external_attributes = 0120777u << 16;
  EXPECT_THAT(problem(write_raw_zip({link})),
              AllOf(HasSubstr("invalid_package"), HasSubstr("'link' that is a symbolic link")));
  link.external_attributes = 0010644u << 16;
  EXPECT_THAT(problem(write_raw_zip({link})), HasSubstr("a special file"));
}

TEST_F(ZipLoaderTest, RefusesOtherCompression) {
  RawZipEntry odd = entry("odd");
  odd.method = 14;
  EXPECT_THAT(problem(write_raw_zip({odd})),
              AllOf(HasSubstr("invalid_package"), HasSubstr("'odd' compressed by method 14")));
}

TEST_F(ZipLoaderTest, RefusesBombs) {
  const std::string zeros(65 << 20, '\0');
  EXPECT_THAT(problem(write_raw_zip({deflated("bomb", zeros)})),
              AllOf(HasSubstr("invalid_package"), HasSubstr("'bomb' that expands from")));
  // Each entry looks harmless; together they don't.
  const std::string less(8 << 20, '\0');
  std::vector<RawZipEntry> many;
  for (int i = 0; i < 12; ++i) many.push_back(deflated("bomb" + std::to_string(i), less));
  EXPECT_THAT(problem(write_raw_zip(many)),
              AllOf(HasSubstr("invalid_package"), HasSubstr("expands from")));
  // A declared size alone isn't worth its memory.
  RawZipEntry declared = deflated("declared", "x");
  declared.size = 4000000000u;
  EXPECT_THAT(problem(write_raw_zip({declared})), HasSubstr("invalid_package"));
  // What models really do: a large embedding that is mostly zero.
  std::string mostly_zero(65 << 20, '\0');
  for (size_t i = 0; i < mostly_zero.size(); i += 4096) mostly_zero[i] = static_cast<char>(i >> 12);
  EXPECT_EQ(problem(write_raw_zip({deflated("embedding", mostly_zero)})), "opened");
}

TEST_F(ZipLoaderTest, RefusesEntriesThatShareBytes) {
  RawZipEntry second = entry("a", "2");
  second.offset = 0;
  EXPECT_THAT(problem(write_raw_zip({entry("a", "2"), second})), HasSubstr("corrupt_package"));
  RawZipEntry outer = entry("outer", std::string(100, 'o'));
  outer.size = outer.compressed_size = 140;
  EXPECT_THAT(problem(write_raw_zip({outer, entry("inner")})), HasSubstr("share bytes"));
}

TEST_F(ZipLoaderTest, RefusesHeadersThatContradictEachOther) {
  RawZipEntry renamed = entry("honest");
  renamed.local_name = "secret";
  EXPECT_THAT(problem(write_raw_zip({renamed})),
              AllOf(HasSubstr("corrupt_package"), HasSubstr("called otherwise")));
  RawZipEntry beyond = entry("beyond");
  beyond.offset = 100000;
  EXPECT_THAT(problem(write_raw_zip({beyond})), HasSubstr("corrupt_package"));
  RawZipEntry huge = entry("huge");
  huge.size = huge.compressed_size = 100000;
  EXPECT_THAT(problem(write_raw_zip({huge})),
              AllOf(HasSubstr("corrupt_package"), HasSubstr("isn't all there")));
  RawZipEntry odd = entry("odd");
  odd.size = 3;
  EXPECT_THAT(problem(write_raw_zip({odd})), HasSubstr("contradict each other"));
}

// What reading an entry says, by all ways to read it.
std::string reading_problem(NeuropodLoader& loader, const std::string& name, bool hash_too) {
  const auto stream = loader.get_istream_for_file(name);
  std::string chunk(1000, '\0');
  while (stream->read(chunk.data(), 1000)) {
  }
  EXPECT_TRUE(stream->bad());
  EXPECT_THROW(loader.get_file_path(name), Error);
  EXPECT_THROW(loader.ensure_local(), Error);
  if (hash_too) {
    EXPECT_THROW(loader.get_hash_for_file(name), Error);
  }
  try {
    loader.read_file(name);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorruptPackage);
    EXPECT_THAT(error.message(), HasSubstr("'" + name + "'"));
    return error.message();
  }
  return "read";
}

TEST_F(ZipLoaderTest, ReadingNoticesDamage) {
  const std::string content(5000, 'c');
  RawZipEntry stored = entry("stored", content);
  stored.crc = 1;
  RawZipEntry packed = deflated("packed", content);
  packed.crc = 1;
  RawZipEntry shorter = deflated("shorter", content);
  shorter.size = 5001;
  RawZipEntry longer = deflated("longer", content);
  longer.size = 4999;
  RawZipEntry damaged = entry("damaged", raw_deflate(content));
  damaged.method = 8;
  damaged.size = 5000;
  damaged.content[0] = '\x07';
  RawZipEntry cut = entry("cut", raw_deflate(content).substr(0, 8));
  cut.method = 8;
  cut.size = 5000;
  const auto loader = open(write_raw_zip({stored, packed, shorter, longer, damaged, cut}));
  EXPECT_THAT(reading_problem(*loader, "stored", false), HasSubstr("checksum"));
  EXPECT_THAT(reading_problem(*loader, "packed", false), HasSubstr("checksum"));
  EXPECT_THAT(reading_problem(*loader, "shorter", true),
              HasSubstr("ends before its declared size"));
  EXPECT_THAT(reading_problem(*loader, "longer", true), HasSubstr("longer than its declared size"));
  EXPECT_THAT(reading_problem(*loader, "damaged", true), HasSubstr("damaged"));
  EXPECT_THAT(reading_problem(*loader, "cut", true), HasSubstr("cut off"));
}

TEST_F(ZipLoaderTest, InflatingForASeekNoticesDamage) {
  RawZipEntry packed = deflated("packed", std::string(1000000, 'c'));
  packed.crc = 1;
  const auto loader = open(write_raw_zip({packed}));
  const auto stream = loader->get_istream_for_file("packed");
  stream->seekg(500000);
  EXPECT_TRUE(stream->good());
  EXPECT_EQ(stream->get(), EOF);
  EXPECT_TRUE(stream->bad());
}

TEST_F(ZipLoaderTest, ADamagedEntryLeavesTheOthersReadable) {
  RawZipEntry bad = deflated("bad", "content");
  bad.crc = 1;
  const auto loader = open(write_raw_zip({bad, deflated("good", "content")}));
  EXPECT_THROW(loader->ensure_local(), Error);
  EXPECT_EQ(loader->read_file("good"), "content");
  std::ifstream file(loader->get_file_path("good"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "content");
}

TEST_F(ZipLoaderTest, UnpacksIntoAPrivateFolderThatGoesWithTheLoader) {
  RawZipEntry script = deflated("0/run.sh", "#!/bin/sh\n");
  script.external_attributes = 0100755u << 16;
  auto loader = open(write_raw_zip({script, deflated("0/data", "x")}));
  const std::string local = loader->ensure_local();
  struct stat status{};
  ASSERT_EQ(::stat(local.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(::stat((local + "/0/run.sh").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(::stat((local + "/0/data").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  loader.reset();
  EXPECT_FALSE(fs::exists(local));
}

TEST_F(ZipLoaderTest, UnpacksOnlyTheFileThatIsAskedFor) {
  const auto loader = open(write_raw_zip({deflated("0/a", "a"), deflated("0/b", "b")}));
  const std::string path = loader->get_file_path("0/a");
  EXPECT_EQ(loader->get_file_path("0/a"), path);
  EXPECT_FALSE(fs::exists(fs::path(path).parent_path() / "b"));
}

TEST_F(ZipLoaderTest, KeepsReadingAPackageThatIsReplaced) {
  const auto loader = open(write_raw_zip({deflated("a", "old")}));
  write_file(path_ + ".new", write_raw_zip({deflated("a", "new, and longer")}));
  fs::rename(path_ + ".new", path_);
  EXPECT_EQ(loader->read_file("a"), "old");
}

TEST_F(ZipLoaderTest, APackageThatShrinksWhileItIsReadIsAnError) {
  const std::string bytes = write_raw_zip(
      {entry("stored", std::string(100000, 's')), deflated("packed", std::string(100000, 'p'))});
  const auto loader = open(bytes);
  fs::resize_file(path_, 100);
  EXPECT_THROW(loader->read_file("stored"), Error);
  EXPECT_THROW(loader->read_file("packed"), Error);
  EXPECT_THROW(loader->get_hash_for_file("stored"), Error);
}

TEST_F(ZipLoaderTest, FailsWithoutATemporaryFolderAndWorksOnceThereIsOne) {
  // A folder below which nothing can be made: its name is a file's.
  write_file(folder_.path() + "/file", "");
  const auto other = open(write_raw_zip({deflated("0/a", "x")}));
  ::setenv("TMPDIR", (folder_.path() + "/file").c_str(), 1);
  EXPECT_THROW(other->get_file_path("0/a"), Error);
  ::unsetenv("TMPDIR");
  EXPECT_TRUE(fs::exists(other->get_file_path("0/a")));
}

}  // namespace
}  // namespace neuropod
