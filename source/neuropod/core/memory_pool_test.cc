#include "neuropod/core/memory_pool.hh"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "neuropod/base/error.hh"

namespace neuropod {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Counts what is asked of the system, on devices 0 to 3 and the CPU, up to a budget. Memory isn't
// touched, so sizes may be large.
class CountingMemory : public DeviceMemory {
 public:
  bool has_device(NeuropodDevice device) const noexcept override { return device < 4; }
  void* allocate(size_t bytes, NeuropodDevice device) noexcept override {
    if (in_use + bytes > budget) return nullptr;
    in_use += bytes;
    ++allocations;
    const std::lock_guard<std::mutex> lock(mutex);
    sizes[device].push_back(bytes);
    void* data = nullptr;
    return ::posix_memalign(&data, 64, 64) == 0 ? data : nullptr;
  }
  void free(void* data, size_t bytes, NeuropodDevice device) noexcept override {
    in_use -= bytes;
    ++frees;
    const std::lock_guard<std::mutex> lock(mutex);
    freed[device].push_back(bytes);
    std::free(data);
  }
  void copy(void* to, NeuropodDevice, const void* from, NeuropodDevice, size_t bytes) override {
    std::memcpy(to, from, bytes);
  }

  std::atomic<uint64_t> in_use{0};
  std::atomic<int> allocations{0};
  std::atomic<int> frees{0};
  uint64_t budget = uint64_t{1} << 61;
  std::mutex mutex;
  std::map<NeuropodDevice, std::vector<size_t>> sizes;
  std::map<NeuropodDevice, std::vector<size_t>> freed;
};

class MemoryPoolTest : public ::testing::Test {
 protected:
  // A second release does nothing while the pool lives, so tests needn't release what they don't
  // test.
  ~MemoryPoolTest() override {
    if (pool_) {
      for (const MemoryPool::Block& block : blocks_) release(block);
    }
  }

  MemoryPool::Block allocate(size_t bytes, NeuropodDevice device = Device::CPU) {
    blocks_.push_back(pool_->allocate(bytes, device));
    return blocks_.back();
  }
  static void release(const MemoryPool::Block& block) { block.release(block.data); }
  void allocate_and_release(size_t bytes, NeuropodDevice device = Device::CPU) {
    release(allocate(bytes, device));
  }
  AllocatorStats stats() const { return pool_->stats(); }

  std::vector<MemoryPool::Block> blocks_;
  milliseconds now_{1000};
  std::shared_ptr<CountingMemory> memory_ = std::make_shared<CountingMemory>();
  std::shared_ptr<MemoryPool> pool_ = MemoryPool::create(memory_, [this] { return now_; });
};

TEST_F(MemoryPoolTest, ReusesTheBlockThatWasReleasedLast) {
  const MemoryPool::Block first = allocate(1000);
  const MemoryPool::Block second = allocate(1000);
  release(first);
  release(second);
  EXPECT_EQ(allocate(1000).data, second.data);
  EXPECT_EQ(allocate(1000).data, first.data);
  EXPECT_EQ(stats().system_allocations, 2u);
  EXPECT_EQ(stats().reused, 2u);
}

TEST_F(MemoryPoolTest, SecondToThousandthCallAskTheSystemForNothing) {
  for (int i = 0; i < 1000; ++i) allocate_and_release(6912000);
  EXPECT_EQ(memory_->allocations, 1);
  EXPECT_EQ(stats().reused, 999u);
}

TEST_F(MemoryPoolTest, SizeClassesAreAtMostAQuarterApartAndNeverTooSmall) {
  size_t previous = 0;
  for (size_t bytes = 1; bytes < (size_t{1} << 50); bytes += bytes / 64 + 1) {
    allocate_and_release(bytes);
    pool_->trim();
    const size_t given = memory_->sizes[Device::CPU].back();
    ASSERT_GE(given, bytes);
    if (bytes > 64) {
      ASSERT_LE(given, bytes + bytes / 4) << bytes;
    }
    if (previous != 0 && given != previous) {
      ASSERT_LE(given, previous + previous / 4) << bytes;
    }
    previous = given;
  }
}

TEST_F(MemoryPoolTest, AClassEndsWhereTheNextBegins) {
  for (int power = 6; power < 40; ++power) {
    for (size_t part = 4; part < 8; ++part) {
      const size_t bytes = part << (power - 2);
      allocate_and_release(bytes);
      pool_->trim();
      EXPECT_EQ(memory_->sizes[Device::CPU].back(), bytes) << "an exact class isn't rounded up";
    }
  }
}

TEST_F(MemoryPoolTest, GivesAValidAlignedBlockForEverySizeOnTheHost) {
  auto pool = MemoryPool::create();
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{63}, size_t{65}, size_t{100000},
                             size_t{1} << 20, (size_t{1} << 20) + 1, size_t{9} << 20}) {
    const MemoryPool::Block block = pool->allocate(bytes, Device::CPU);
    ASSERT_NE(block.data, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data) % 64, 0u) << bytes;
    std::memset(block.data, 1, bytes);
    release(block);
  }
}

TEST_F(MemoryPoolTest, KeepsAListPerDevice) {
  const MemoryPool::Block on_cpu = allocate(1000);
  release(on_cpu);
  EXPECT_NE(allocate(1000, 2).data, on_cpu.data);
  EXPECT_EQ(allocate(1000).data, on_cpu.data);
  EXPECT_EQ(memory_->sizes[2].size(), 1u);
}

TEST_F(MemoryPoolTest, ADeviceThatTheMemoryLacksIsAnInvalidArgument) {
  for (auto& pool : {pool_, MemoryPool::create()}) {
    try {
      pool->allocate(1, 7);
      FAIL() << "allocated on device 7";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_NE(error.message().find("device 7"), std::string::npos);
    }
  }
  EXPECT_THROW(MemoryPool::create()->copy(nullptr, 0, nullptr, Device::CPU, 0), Error);
}

TEST_F(MemoryPoolTest, CountsLivePeakAndKeptBytesOfSizeClasses) {
  const MemoryPool::Block a = allocate(1024);
  const MemoryPool::Block b = allocate(2048);
  EXPECT_EQ(stats().live_bytes, 3072u);
  EXPECT_EQ(stats().kept_bytes, 0u);
  release(a);
  EXPECT_EQ(stats().live_bytes, 2048u);
  EXPECT_EQ(stats().kept_bytes, 1024u);
  EXPECT_EQ(stats().peak_live_bytes, 3072u);
  release(b);
  pool_->trim();
  EXPECT_EQ(stats().live_bytes, 0u);
  EXPECT_EQ(stats().kept_bytes, 0u);
  EXPECT_EQ(memory_->in_use, 0u);
}

TEST_F(MemoryPoolTest, CountsCopiesBetweenDevicesOnly) {
  char from[8] = "1234567";
  char to[8] = "";
  pool_->copy(to, 1, from, Device::CPU, 8);
  EXPECT_STREQ(to, "1234567");
  pool_->copy(to, Device::CPU, from, Device::CPU, 8);
  EXPECT_EQ(stats().transfers, 1u);
  EXPECT_EQ(stats().transferred_bytes, 8u);
}

TEST_F(MemoryPoolTest, KeepsAtMost64MiBWhileLittleIsLive) {
  // One at a time, so that the peak stays low; each of a class of its own.
  for (uint64_t mib = 1; mib <= 16; ++mib) allocate_and_release(mib * kMiB);
  EXPECT_LE(stats().kept_bytes, 64 * kMiB);
  EXPECT_GT(stats().kept_bytes, 40 * kMiB);
  EXPECT_EQ(memory_->in_use, stats().kept_bytes);
  // The oldest had to go.
  EXPECT_EQ(memory_->freed[Device::CPU].front(), kMiB);
}

TEST_F(MemoryPoolTest, KeepsUpToTwiceThePeakWhereThatIsMore) {
  const MemoryPool::Block big = allocate(100 * kMiB);
  const uint64_t peak = stats().live_bytes;
  release(big);
  allocate_and_release(90 * kMiB);
  EXPECT_EQ(stats().peak_live_bytes, peak);
  EXPECT_GT(stats().kept_bytes, peak);
  allocate_and_release(80 * kMiB);
  EXPECT_LE(stats().kept_bytes, 2 * peak);
}

TEST_F(MemoryPoolTest, GivesBackAfterAMinuteOfDisuse) {
  allocate_and_release(1000);
  now_ += seconds(30);
  allocate_and_release(5000);
  now_ += milliseconds(29'999);
  allocate_and_release(5000);
  EXPECT_EQ(memory_->frees, 0);
  now_ += milliseconds(1);
  allocate_and_release(5000);
  EXPECT_EQ(memory_->frees, 1) << "the block that lay for a minute goes, the one in use stays";
  EXPECT_EQ(memory_->freed[Device::CPU].front(), 1024u);
}

TEST_F(MemoryPoolTest, ABlockInUseEveryMinuteStays) {
  for (int i = 0; i < 10; ++i) {
    allocate_and_release(1000);
    now_ += seconds(59);
  }
  EXPECT_EQ(memory_->allocations, 1);
  EXPECT_EQ(memory_->frees, 0);
}

TEST_F(MemoryPoolTest, TrimsAndTriesAgainBeforeItFails) {
  memory_->budget = 100 * kMiB;
  allocate_and_release(50 * kMiB);
  const MemoryPool::Block block = allocate(90 * kMiB);
  EXPECT_NE(block.data, nullptr);
  try {
    allocate(80 * kMiB);
    FAIL() << "more than the budget was allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    EXPECT_NE(error.message().find(std::to_string(80 * kMiB) + " bytes"), std::string::npos);
    EXPECT_NE(error.message().find("device -1"), std::string::npos);
  }
  release(block);
  allocate_and_release(80 * kMiB);
}

TEST_F(MemoryPoolTest, AnAbsurdSizeIsOutOfMemory) {
  for (const size_t bytes : {(size_t{1} << 60) + 1, SIZE_MAX}) {
    try {
      allocate(bytes);
      FAIL() << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    }
  }
}

TEST_F(MemoryPoolTest, BlocksOutliveThePool) {
  const MemoryPool::Block block = allocate(1000);
  allocate_and_release(2000);
  pool_.reset();
  EXPECT_EQ(memory_->frees, 1) << "what was kept goes with the pool";
  std::memset(block.data, 7, 64);
  release(block);
  EXPECT_EQ(memory_->frees, 2);
  EXPECT_EQ(memory_.use_count(), 1);
}

TEST_F(MemoryPoolTest, ASecondReleaseDoesNothing) {
  const MemoryPool::Block block = allocate(1000);
  const Deleter copy = block.release;
  release(block);
  copy(block.data);
  const MemoryPool::Block again = allocate(1000);
  EXPECT_EQ(again.data, block.data);
  copy(block.data);
  EXPECT_NE(allocate(1000).data, again.data) << "a late release gave a live block away";
}

TEST_F(MemoryPoolTest, ManyThreadsNeverShareABlock) {
  auto pool = MemoryPool::create();
  std::vector<std::thread> threads;
  std::atomic<int> mixed_up{0};
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&pool, &mixed_up, thread] {
      std::mt19937 random(static_cast<unsigned>(thread));
      std::vector<std::pair<MemoryPool::Block, size_t>> held;
      for (int i = 0; i < 3000; ++i) {
        const size_t bytes = 1 + random() % 5000;
        held.emplace_back(pool->allocate(bytes, Device::CPU), bytes);
        std::memset(held.back().first.data, thread, bytes);
        if (held.size() > 8) {
          const auto& [block, size] = held.front();
          const auto* data = static_cast<const char*>(block.data);
          if (data[0] != thread || data[size - 1] != thread) ++mixed_up;
          release(block);
          held.erase(held.begin());
        }
        if (i % 500 == 0) pool->trim();
      }
      for (const auto& entry : held) release(entry.first);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(mixed_up, 0);
  EXPECT_EQ(pool->stats().live_bytes, 0u);
  EXPECT_EQ(pool->stats().system_allocations + pool->stats().reused, 8u * 3000u);
}

TEST_F(MemoryPoolTest, ThreadsMayReleaseAfterThePoolIsGone) {
  std::vector<MemoryPool::Block> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(allocate(100));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&blocks, thread] {
      for (int i = thread; i < 64; i += 4) release(blocks[static_cast<size_t>(i)]);
    });
  }
  pool_.reset();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory_->in_use, 0u);
  EXPECT_EQ(memory_.use_count(), 1);
}

}  // namespace
}  // namespace neuropod
