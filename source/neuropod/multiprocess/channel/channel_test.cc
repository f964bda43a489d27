#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "neuropod/multiprocess/channel/futex.hh"
#include "neuropod/multiprocess/channel/host_channel.hh"
#include "neuropod/multiprocess/channel/worker_channel.hh"

namespace neuropod::multiprocess {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Outcome = HostChannel::Outcome;
using Spin = RuntimeOptions::Spin;

// Both ends of a channel in one process, and executors that answer each call with its number + 1.
class Pair {
 public:
  explicit Pair(Spin spin = Spin::kAuto)
      : arena_(Arena::create("test", HostChannel::arena_bytes())),
        host(arena_, spin),
        worker(arena_) {}
  ~Pair() {
    worker.stop();
    for (std::thread& thread : threads_) thread.join();
  }

  void serve(int executors) {
    for (int i = 0; i < executors; ++i) {
      threads_.emplace_back([this] {
        SpinPolicy policy(SpinPolicy::Side::kWorker, Spin::kAuto);
        while (const auto index = worker.take(&policy)) {
          CallSlot& slot = worker.slot(*index);
          uint64_t value = 0;
          std::memcpy(&value, slot.body.data(), sizeof value);
          ++value;
          std::memcpy(slot.body.data(), &value, sizeof value);
          if (!worker.finish(*index, &policy)) worker.retire(*index);
        }
      });
    }
  }

  uint64_t call(uint64_t value) {
    std::optional<uint32_t> index;
    while (!(index = host.acquire()))
      host.wait_for_slot(HostChannel::Clock::now() + milliseconds(10));
    std::memcpy(host.slot(*index).body.data(), &value, sizeof value);
    host.submit(*index, CallKind::kInfer);
    EXPECT_EQ(host.wait(*index, std::nullopt), Outcome::kDone);
    std::memcpy(&value, host.slot(*index).body.data(), sizeof value);
    host.release(*index);
    return value;
  }

 private:
  const std::shared_ptr<Arena> arena_;
  std::vector<std::thread> threads_;

 public:
  HostChannel host;
  WorkerChannel worker;
};

class ChannelTest : public ::testing::TestWithParam<Spin> {};

TEST_P(ChannelTest, EightThreadsGetTheirOwnAnswersFromTwoExecutors) {
  Pair pair(GetParam());
  pair.serve(2);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint64_t thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t i = 0; i < 50'000; ++i) {
        const uint64_t value = thread << 32 | i;
        wrong += pair.call(value) != value + 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_FALSE(pair.host.lost()) << "a queue that seemed full";
  EXPECT_EQ(pair.host.calls_in_flight(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Spins, ChannelTest, ::testing::Values(Spin::kAuto, Spin::kNever));

TEST(ChannelStateTest, ACallThatHasNotBegunIsWithdrawnAndItsSlotComesBack) {
  Pair pair;
  std::vector<std::pair<uint32_t, uint64_t>> withdrawn;  // slots and their uses
  for (uint32_t i = 0; i < kNumSlots; ++i) {
    const uint32_t slot = *pair.host.acquire();
    withdrawn.emplace_back(slot, pair.host.use_of(slot));
    pair.host.submit(slot, CallKind::kInfer);
    ASSERT_TRUE(pair.host.withdraw(slot));
    EXPECT_FALSE(pair.host.is_finished(slot, withdrawn.back().second));
  }
  EXPECT_FALSE(pair.host.acquire());
  pair.serve(1);  // retires what was withdrawn
  for (const auto& [slot, use] : withdrawn) {
    while (!pair.host.is_finished(slot, use)) std::this_thread::yield();
    pair.host.release(slot);
  }
  EXPECT_EQ(pair.call(4), 5u);
}

TEST(ChannelStateTest, ARunningCallIsAbandonedAndItsSlotIsBusyUntilItEnds) {
  Pair pair;
  SpinPolicy policy(SpinPolicy::Side::kWorker, Spin::kAuto);
  const uint32_t slot = *pair.host.acquire();
  const uint64_t use = pair.host.use_of(slot);
  pair.host.submit(slot, CallKind::kInfer);
  ASSERT_EQ(pair.worker.take(&policy), slot);
  EXPECT_EQ(pair.host.wait(slot, HostChannel::Clock::now() + milliseconds(20)), Outcome::kLate);
  EXPECT_FALSE(pair.host.withdraw(slot));
  EXPECT_TRUE(pair.host.abandon(slot));
  EXPECT_FALSE(pair.host.is_finished(slot, use));
  EXPECT_FALSE(pair.worker.finish(slot, &policy)) << "nobody reads the reply";
  EXPECT_FALSE(pair.host.is_finished(slot, use)) << "it says what it has kept";
  pair.worker.retire(slot);
  EXPECT_TRUE(pair.host.is_finished(slot, use));
  pair.host.release(slot);
  for (uint32_t i = 0; i < kNumSlots; ++i) EXPECT_TRUE(pair.host.acquire());
  EXPECT_FALSE(pair.host.acquire());
}

TEST(ChannelStateTest, AnotherThreadCancelsACallThatHasNotBegun) {
  Pair pair;
  const uint32_t slot = *pair.host.acquire();
  pair.host.submit(slot, CallKind::kInfer);
  std::thread waiting([&] { EXPECT_EQ(pair.host.wait(slot, std::nullopt), Outcome::kWithdrawn); });
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_TRUE(pair.host.cancel(slot));
  waiting.join();
  EXPECT_FALSE(pair.host.cancel(slot));
}

TEST(ChannelStateTest, ACallThatIsCancelledWhileItIsDescribedNeverReachesTheWorker) {
  Pair pair;
  const uint32_t slot = *pair.host.acquire();
  const uint64_t use = pair.host.use_of(slot);
  EXPECT_TRUE(pair.host.cancel(slot));
  EXPECT_TRUE(pair.host.submit(slot, CallKind::kInfer));
  EXPECT_EQ(pair.host.wait(slot, std::nullopt), Outcome::kWithdrawn);
  EXPECT_TRUE(pair.host.is_finished(slot, use));
  pair.host.release(slot);
  EXPECT_TRUE(pair.host.layout().submitted.looks_empty());
}

TEST(ChannelStateTest, AWaitIsInterrupted) {
  Pair pair;
  const uint32_t slot = *pair.host.acquire();
  pair.host.submit(slot, CallKind::kInfer);
  int asked = 0;
  EXPECT_EQ(
      pair.host.wait(
          slot, std::nullopt, [](void* count) { return ++*static_cast<int*>(count) == 3; }, &asked),
      Outcome::kInterrupted);
}

TEST(ChannelStateTest, ALostChannelEndsEveryWaitNowAndLater) {
  Pair pair;
  SpinPolicy policy(SpinPolicy::Side::kWorker, Spin::kAuto);
  const uint32_t started = *pair.host.acquire();
  pair.host.submit(started, CallKind::kInfer);
  ASSERT_EQ(pair.worker.take(&policy), started);
  const uint32_t done = *pair.host.acquire();
  pair.host.submit(done, CallKind::kInfer);
  ASSERT_EQ(pair.worker.take(&policy), done);
  pair.worker.finish(done, &policy);
  const uint32_t waiting = *pair.host.acquire();
  pair.host.submit(waiting, CallKind::kInfer);
  const uint32_t filling = *pair.host.acquire();

  std::vector<std::thread> threads;
  threads.emplace_back(
      [&] { EXPECT_EQ(pair.host.wait(started, std::nullopt), Outcome::kLostStarted); });
  threads.emplace_back(
      [&] { EXPECT_EQ(pair.host.wait(waiting, std::nullopt), Outcome::kLostWaiting); });
  std::this_thread::sleep_for(milliseconds(20));
  pair.host.lose();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pair.host.wait(done, std::nullopt), Outcome::kDone) << "its reply is whole";
  pair.host.submit(filling, CallKind::kInfer);
  EXPECT_EQ(pair.host.wait(filling, std::nullopt), Outcome::kLostWaiting);
  EXPECT_FALSE(pair.host.acquire());
}

// A thread that waits without a deadline for a call that the worker has begun,
// asleep by now.
class Sleeper {
 public:
  explicit Sleeper(Pair* pair) : slot(*pair->host.acquire()) {
    SpinPolicy policy(SpinPolicy::Side::kWorker, Spin::kNever);
    pair->host.submit(slot, CallKind::kInfer);
    EXPECT_EQ(pair->worker.take(&policy), slot);
    outcome = std::async(std::launch::async,
                         [pair, this] { return pair->host.wait(slot, std::nullopt); });
    while (pair->host.slot(slot).sleeping.load() == 0) std::this_thread::yield();
    std::this_thread::sleep_for(milliseconds(50));
  }
  const uint32_t slot;
  std::future<Outcome> outcome;
};

TEST(ChannelStateTest, AWorkerThatDiesBetweenItsReplyAndWakingTheCallerLosesNoReply) {
  Pair pair(Spin::kNever);
  Sleeper sleeper(&pair);
  pair.host.slot(sleeper.slot).state.store(CallState::kDone);  // finish(), up to its wake
  pair.host.lose();
  ASSERT_EQ(sleeper.outcome.wait_for(seconds(10)), std::future_status::ready);
  EXPECT_EQ(sleeper.outcome.get(), Outcome::kDone);
}

TEST(ChannelStateTest, AWorkerThatDiesWithNonsenseInAStateEndsTheWait) {
  for (const uint32_t nonsense : {0U, 1U, 10U, ~0U}) {
    Pair pair(Spin::kNever);
    Sleeper sleeper(&pair);
    pair.host.slot(sleeper.slot).state.store(static_cast<CallState>(nonsense));
    pair.host.lose();
    ASSERT_EQ(sleeper.outcome.wait_for(seconds(10)), std::future_status::ready) << nonsense;
    EXPECT_EQ(sleeper.outcome.get(), Outcome::kLostStarted);
  }
}

TEST(ChannelStateTest, AStateThatALivingWorkerMustNotWriteEndsTheWait) {
  for (const CallState nonsense :
       {CallState::kFree, CallState::kFilling, CallState::kWithdrawn, CallState::kRetired,
        CallState::kLostWaiting, CallState::kLostStarted, static_cast<CallState>(11)}) {
    Pair pair(Spin::kNever);
    Sleeper sleeper(&pair);
    pair.host.slot(sleeper.slot).state.store(nonsense);
    futex_wake(&pair.host.slot(sleeper.slot).state, 1);
    ASSERT_EQ(sleeper.outcome.wait_for(seconds(10)), std::future_status::ready);
    EXPECT_EQ(sleeper.outcome.get(), Outcome::kBroken) << static_cast<uint32_t>(nonsense);
  }
}

TEST(ChannelStateTest, AQueueThatTheWorkerHasFilledLosesTheChannel) {
  Pair pair;
  const uint32_t waiting = *pair.host.acquire();
  EXPECT_TRUE(pair.host.submit(waiting, CallKind::kInfer));
  while (pair.host.layout().submitted.push(0)) {
  }
  const uint32_t slot = *pair.host.acquire();
  EXPECT_FALSE(pair.host.submit(slot, CallKind::kInfer));
  EXPECT_TRUE(pair.host.lost());
  EXPECT_EQ(pair.host.wait(slot, std::nullopt), Outcome::kLostWaiting);
  EXPECT_EQ(pair.host.wait(waiting, std::nullopt), Outcome::kLostWaiting);
}

TEST(ChannelStateTest, WhatTheQueuesHaveNoRoomForComesWithALaterCall) {
  Pair pair;
  constexpr uint64_t kMany = 5000;
  for (uint64_t i = 0; i < kMany; ++i) {
    pair.host.release_output(i);
    pair.worker.release_input(i);
  }
  pair.serve(1);
  uint64_t value = 0, outputs = 0, inputs = 0;
  for (int round = 0; round < 8; ++round) {
    while (pair.worker.next_released_output(&value)) outputs += value + 1;
    while (pair.host.next_released_input(&value)) inputs += value + 1;
    pair.call(1);
  }
  EXPECT_EQ(outputs, kMany * (kMany + 1) / 2);
  EXPECT_EQ(inputs, kMany * (kMany + 1) / 2);
}

TEST(ChannelStateTest, StopEndsAnExecutorHoweverItSpins) {
  for (const Spin spin : {Spin::kNever, Spin::kAuto, Spin::kAlways}) {
    Pair pair(spin);
    auto taken = std::async(std::launch::async, [&] {
      SpinPolicy policy(SpinPolicy::Side::kWorker, spin);
      return pair.worker.take(&policy);
    });
    std::this_thread::sleep_for(milliseconds(50));
    pair.worker.stop();
    ASSERT_EQ(taken.wait_for(seconds(10)), std::future_status::ready);
    EXPECT_FALSE(taken.get());
  }
}

TEST(ChannelStateTest, AWorkerThatScribblesOverTheChannelNeitherCrashesNorHangsTheHost) {
  std::mt19937 random(11);
  for (int round = 0; round < 30; ++round) {
    Pair pair;
    std::atomic<bool> stop{false};
    std::thread scribbler([&, seed = random()] {
      std::mt19937 words(seed);
      auto* memory = reinterpret_cast<std::atomic<uint32_t>*>(&pair.host.layout());
      while (!stop) {
        memory[words() % (sizeof(ChannelLayout) / 4)].store(words() % 16,
                                                            std::memory_order_relaxed);
        pair.host.slot(words() % kNumSlots).state.store(static_cast<CallState>(words() % 12));
      }
    });
    for (int call = 0; call < 40; ++call) {
      const auto slot = pair.host.acquire();
      if (!slot) break;
      pair.host.submit(*slot, CallKind::kInfer);
      const auto outcome = pair.host.wait(*slot, HostChannel::Clock::now() + milliseconds(1));
      if (outcome != Outcome::kLate) continue;
      if (!pair.host.withdraw(*slot)) pair.host.abandon(*slot);
    }
    stop = true;
    scribbler.join();
  }
}

}  // namespace
}  // namespace neuropod::multiprocess
