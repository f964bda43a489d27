#include "neuropod/multiprocess/channel/bounded_queue.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

namespace neuropod::multiprocess {
namespace {

TEST(BoundedQueueTest, IsEmptyThenFullThenEmptyInOrder) {
  BoundedQueue<uint32_t, 8> queue;
  queue.clear();
  uint32_t value = 0;
  for (uint32_t round = 0; round < 5; ++round) {
    EXPECT_TRUE(queue.looks_empty());
    EXPECT_FALSE(queue.pop(&value));
    for (uint32_t i = 0; i < 8; ++i) EXPECT_TRUE(queue.push(100 * round + i));
    EXPECT_FALSE(queue.push(7));
    EXPECT_FALSE(queue.looks_empty());
    for (uint32_t i = 0; i < 8; ++i) {
      EXPECT_TRUE(queue.pop(&value));
      EXPECT_EQ(value, 100 * round + i);
    }
  }
}

TEST(BoundedQueueTest, WhatFourThreadsPushFourOthersPopOnceEach) {
  constexpr uint32_t kThreads = 4, kEach = 50'000;
  const auto queue = std::make_unique<BoundedQueue<uint32_t, 64>>();
  queue->clear();
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::vector<uint32_t> all;
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint32_t i = 0; i < kEach; ++i) {
        while (!queue->push(thread * kEach + i)) std::this_thread::yield();
      }
    });
    threads.emplace_back([&] {
      std::vector<uint32_t> mine;
      while (mine.size() < kEach) {
        uint32_t value = 0;
        if (queue->pop(&value)) {
          mine.push_back(value);
        } else {
          std::this_thread::yield();
        }
      }
      std::lock_guard lock(mutex);
      all.insert(all.end(), mine.begin(), mine.end());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<uint32_t> expected(kThreads * kEach);
  std::iota(expected.begin(), expected.end(), 0);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, expected);
}

TEST(BoundedQueueTest, WhateverAPeerWritesIntoItNothingLoopsForEver) {
  const auto queue = std::make_unique<BoundedQueue<uint32_t, 16>>();
  auto* words = reinterpret_cast<std::atomic<uint32_t>*>(queue.get());
  for (const uint32_t nonsense : {0U, 1U, 0x7fffffffU, 0x80000000U, ~0U}) {
    for (size_t i = 0; i < sizeof *queue / 4; ++i) words[i].store(nonsense);
    uint32_t value = 0;
    for (int i = 0; i < 40; ++i) {
      queue->push(1);
      queue->pop(&value);
    }
  }
}

}  // namespace
}  // namespace neuropod::multiprocess
