#include "neuropod/multiprocess/shm/arena.hh"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <random>

#include "neuropod/multiprocess/shm/arena_blocks.hh"
#include "neuropod/testing/error_of.hh"

namespace neuropod::multiprocess {
namespace {

using ::testing::HasSubstr;

constexpr size_t kMiB = 1 << 20;

TEST(ArenaTest, CanBeNeitherShrunkNorGrownByAPeer) {
  const auto arena = Arena::create("test", kMiB);
  EXPECT_NE(::ftruncate(arena->descriptor(), 0), 0);
  EXPECT_NE(::ftruncate(arena->descriptor(), 2 * kMiB), 0);
  arena->data()[kMiB - 1] = 1;
}

TEST(ArenaTest, AProcessThatAttachesSeesWhatTheOtherWrites) {
  const auto arena = Arena::create("test", kMiB);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const auto same = Arena::attach(OwnedDescriptor(::dup(arena->descriptor())));
    same->data()[5] = 42;
    ::_exit(0);
  }
  ::waitpid(pid, nullptr, 0);
  EXPECT_EQ(arena->data()[5], 42);
}

TEST(ArenaTest, RefusesWhatCouldBeShrunkUnderItIsShortOrNoMemory) {
  OwnedDescriptor open(::memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(open.get(), kMiB), 0);
  EXPECT_THAT(error_of([&] { Arena::attach(std::move(open)); }).message(), HasSubstr("sealed"));
  const auto arena = Arena::create("test", 4096);
  EXPECT_THAT(
      error_of([&] { Arena::attach(OwnedDescriptor(::dup(arena->descriptor())), kMiB); }).message(),
      HasSubstr("4096 bytes"));
  EXPECT_EQ(error_of([] { Arena::attach(OwnedDescriptor(::open("/dev/null", O_RDWR))); }).code(),
            ErrorCode::kInvalidArgument);
}

TEST(ArenaTest, SparseOnesOfManyGigabytesCostNothing) {
  const auto arena = Arena::create("test", size_t{64} << 30, kMiB);
  struct stat status{};
  ASSERT_EQ(::fstat(arena->descriptor(), &status), 0);
  EXPECT_LT(size_t(status.st_blocks) * 512, kMiB);
  arena->data()[arena->size() - 1] = 1;
}

TEST(ArenaTest, PagesThatAreGivenBackReadAsZeros) {
  const auto arena = Arena::create("test", kMiB);
  std::fill_n(arena->data(), kMiB, 'x');
  arena->close_descriptor();
  arena->give_back(100, 5 * 4096);
  EXPECT_EQ(arena->data()[4095], 'x');
  EXPECT_EQ(arena->data()[4096], 0);
  EXPECT_EQ(arena->data()[5 * 4096 + 100], 'x');
}

TEST(ArenaTest, ChecksAPeersNumbers) {
  const auto arena = Arena::create("test", 8192);
  EXPECT_EQ(arena->at(8192, 1), nullptr);
  EXPECT_EQ(arena->at(~uint64_t{0}, 2), nullptr);
  EXPECT_EQ(arena->at(1, ~uint64_t{0}), nullptr);
  EXPECT_EQ(arena->at(8192, 0), arena->data() + 8192);
  EXPECT_EQ(arena->at(0, 8192), arena->data());
  EXPECT_FALSE(arena->offset_of(arena->data() + 1, 8192));
  EXPECT_FALSE(arena->offset_of(arena->data() - 1, 1));
}

TEST(ArenaBlocksTest, BlocksNeverOverlapAndAllOfTheArenaComesBack) {
  const auto arena = Arena::create("test", kMiB);
  ArenaBlocks blocks(arena);
  std::mt19937 random(7);
  std::map<char*, size_t> live;
  for (int step = 0; step < 20'000; ++step) {
    if (random() % 2 == 0 || live.empty()) {
      const size_t bytes = random() % 5000 + 1;
      auto* data = static_cast<char*>(blocks.allocate(bytes, Device::CPU));
      if (data == nullptr) continue;
      ASSERT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
      const auto next = live.lower_bound(data);
      ASSERT_TRUE(next == live.end() || next->first >= data + bytes);
      ASSERT_TRUE(next == live.begin() || std::prev(next)->first + std::prev(next)->second <= data);
      live[data] = bytes;
    } else {
      const auto chosen = std::next(live.begin(), static_cast<long>(random() % live.size()));
      blocks.free(chosen->first, chosen->second, Device::CPU);
      live.erase(chosen);
    }
  }
  for (const auto& [data, bytes] : live) blocks.free(data, bytes, Device::CPU);
  EXPECT_EQ(blocks.used_bytes(), 0u);
  EXPECT_NE(blocks.allocate(kMiB, Device::CPU), nullptr) << "the free ranges weren't joined";
  EXPECT_EQ(blocks.allocate(1, Device::CPU), nullptr);
}

}  // namespace
}  // namespace neuropod::multiprocess
