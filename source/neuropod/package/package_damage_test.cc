// Packages cut off at each byte, and with bytes changed at random: each must give an Error or what
// was packed, never a crash, a hang or other content.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>

#include "neuropod/base/error.hh"
#include "neuropod/base/sha256.hh"
#include "neuropod/base/temporary_folder.hh"
#include "neuropod/internal/config_utils.hh"
#include "neuropod/internal/neuropod_loader.hh"
#include "neuropod/package/testing/raw_zip_writer.hh"

namespace neuropod {
namespace {

using Files = std::map<std::string, std::string>;

Files packaged_files() {
  Files files = {
      {"config.json", R"({"name": "m", "platform": "p", "platform_version_semver": "^1.2",
                                     "input_spec": [{"name": "x", "dtype": "int8", "shape": [1, null, "n"]}],
                                     "input_tensor_device": {"x": "CPU"}, "format_version": 1})"},
      {"0/data/model.pt", "weights " + std::string(300, 'w') + " end"},
      {"0/data/empty", ""}};
  std::string manifest = "{\"manifest_version\": 1, \"files\": {";
  for (const auto& [name, content] : files) {
    manifest += (name == files.begin()->first ? "\"" : ", \"") + name + "\": \"" +
                sha256_of(content) + "\"";
  }
  files["manifest.json"] = manifest + "}}";
  return files;
}

// One archive that holds every kind of entry that we read.
std::string archive_of(const Files& files) {
  std::vector<RawZipEntry> entries;
  for (const auto& [name, content] : files) {
    RawZipEntry entry;
    entry.name = name;
    entry.content = content;
    entry.deflate = name != "0/data/empty";
    entry.data_descriptor = name == "manifest.json";
    entry.zip64 = name == "config.json";
    entries.push_back(entry);
  }
  return write_raw_zip(entries);
}

class PackageDamageTest : public testing::Test {
 protected:
  // Opens and reads all of it, as loading does. True if nothing was found to be wrong.
  bool opens(const std::string& bytes) {
    write_file(path_, bytes);
    try {
      const auto loader = get_loader(path_);
      read_everything(*loader);
      verify_manifest(*loader);
      load_model_config(*loader);
      for (const auto& [name, content] : files_) EXPECT_EQ(loader->read_file(name), content);
      return true;
    } catch (const Error& error) {
      EXPECT_FALSE(error.message().empty());
      EXPECT_EQ(error.origin(), ErrorOrigin::kPackage) << error.message();
      return false;
    }
  }

  // Whatever the archive says that it holds; each file's own damage mustn't stop the others.
  static void read_everything(NeuropodLoader& loader) {
    for (const std::string& name : loader.list_files()) {
      try {
        const auto stream = loader.get_istream_for_file(name);
        stream->seekg(-1, std::ios::end);
        stream->get();
        loader.read_file(name);
        loader.get_hash_for_file(name);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kCorruptPackage) << error.message();
      }
    }
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/package";
  const Files files_ = packaged_files();
  const std::string whole_ = archive_of(files_);
};

TEST_F(PackageDamageTest, TheWholePackageOpens) { EXPECT_TRUE(opens(whole_)); }

TEST_F(PackageDamageTest, EveryTruncationIsAnError) {
  for (size_t size = 0; size < whole_.size(); ++size) {
    EXPECT_FALSE(opens(whole_.substr(0, size))) << size << " of " << whole_.size() << " bytes";
  }
}

TEST_F(PackageDamageTest, EveryMissingStartIsAnErrorOrWhole) {
  for (size_t size = 1; size < whole_.size(); size += 7) opens(whole_.substr(size));
}

TEST_F(PackageDamageTest, EveryChangedByteIsAnErrorOrHarmless) {
  std::mt19937 random(20240229);
  for (size_t i = 0; i < whole_.size(); ++i) {
    std::string bytes = whole_;
    bytes[i] = static_cast<char>(bytes[i] ^ static_cast<char>(1 + random() % 255));
    opens(bytes);
  }
}

TEST_F(PackageDamageTest, ManyChangedBytesAreAnErrorOrHarmless) {
  std::mt19937 random(7);
  for (int round = 0; round < 1000; ++round) {
    std::string bytes = whole_;
    for (size_t changes = 1 + random() % 8; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    opens(bytes);
  }
}

TEST_F(PackageDamageTest, NumbersAtTheirLimitsAreAnErrorOrHarmless) {
  // Sizes, offsets and counts stand at even and odd places: every place gets the values that
  // overflow.
  for (const uint64_t value : {uint64_t{0}, uint64_t{0x7fffffffffffffff}, ~uint64_t{0}}) {
    for (size_t i = 0; i + 8 <= whole_.size(); ++i) {
      for (const size_t width : {2, 4, 8}) {
        std::string bytes = whole_;
        bytes.replace(i, width, reinterpret_cast<const char*>(&value), width);
        opens(bytes);
      }
    }
  }
}

TEST_F(PackageDamageTest, RandomConfigsAreAnErrorOrLoad) {
  const std::string config = files_.at("config.json");
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    std::string text = config;
    for (size_t changes = 1 + random() % 4; changes > 0; --changes) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text[at] = "{}[],:\"0-1.etfn"[random() % 15];
      } else {
        text.erase(at, random() % 10);
      }
    }
    std::istringstream stream(text);
    try {
      load_model_config(stream);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidPackage) << error.message();
    }
  }
}

}  // namespace
}  // namespace neuropod
