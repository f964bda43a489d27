#include "neuropod/base/sha256.hh"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "neuropod/base/error.hh"
#include "neuropod/base/read_only_file.hh"
#include "neuropod/base/temporary_folder.hh"

namespace neuropod {
namespace {

constexpr char kOfNothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr char kOfAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

// A million times 'a', from FIPS 180-4's test vectors.
constexpr char kOfAMillionA[] = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

// Gives out some bytes and then fails.
class FailingBuffer : public std::streambuf {
 protected:
  int_type underflow() override {
    if (given_) throw std::runtime_error("the disk is gone");
    given_ = true;
    setg(data_, data_, data_ + 4);
    return traits_type::to_int_type(data_[0]);
  }

 private:
  char data_[4] = {'d', 'a', 't', 'a'};
  bool given_ = false;
};

TEST(Sha256Test, AgreesWithThePublishedVectors) {
  EXPECT_EQ(sha256_of(""), kOfNothing);
  EXPECT_EQ(sha256_of("abc"), kOfAbc);
  EXPECT_EQ(sha256_of(std::string(1000000, 'a')), kOfAMillionA);
}

TEST(Sha256Test, DoesNotDependOnThePieces) {
  const std::string data(1000000, 'a');
  for (const size_t piece : {1000001, 65536, 4097, 63}) {
    Sha256 hash;
    for (size_t i = 0; i < data.size(); i += piece) {
      hash.update(data.data() + i, std::min(piece, data.size() - i));
    }
    EXPECT_EQ(hash.finish(), kOfAMillionA) << piece;
  }
}

TEST(Sha256Test, HashesWhatAStreamStillHolds) {
  std::istringstream stream(">" + std::string(1000000, 'a'));
  stream.get();
  EXPECT_EQ(sha256_of_stream(stream), kOfAMillionA);
  EXPECT_EQ(sha256_of_stream(stream), kOfNothing);
}

TEST(Sha256Test, PassesOnWhatAStreamThrows) {
  FailingBuffer buffer;
  std::istream stream(&buffer);
  EXPECT_THROW(sha256_of_stream(stream), std::runtime_error);
  EXPECT_EQ(stream.exceptions(), std::ios::goodbit);
}

TEST(Sha256Test, RefusesAStreamThatFailed) {
  std::istringstream stream("abc");
  stream.setstate(std::ios::badbit);
  EXPECT_THROW(sha256_of_stream(stream), Error);
}

TEST(Sha256Test, HashesFilesAndPartsOfThem) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  std::ofstream(path, std::ios::binary) << "<<abc>>";
  const ReadOnlyFile file(path);
  EXPECT_EQ(sha256_of_file(path), sha256_of("<<abc>>"));
  EXPECT_EQ(sha256_of_file(file, 2, 3), kOfAbc);
  EXPECT_EQ(sha256_of_file(file, 7, 0), kOfNothing);
  EXPECT_THROW(sha256_of_file(file, 5, 3), Error);
  EXPECT_THROW(sha256_of_file(folder.path() + "/none"), Error);
}

TEST(Sha256Test, RunsInManyThreads) {
  std::vector<std::thread> threads;
  std::vector<std::string> hashes(8);
  for (std::string& hash : hashes) {
    threads.emplace_back([&hash] { hash = sha256_of(std::string(1000000, 'a')); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& hash : hashes) EXPECT_EQ(hash, kOfAMillionA);
}

}  // namespace
}  // namespace neuropod
