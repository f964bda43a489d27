#include "neuropod/base/tick_clock.hh"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace neuropod {
namespace {

TEST(TickClockTest, TicksAreAsLongAsTheyAreSaidToBe) {
  TickClock::start();
  // The reading of the two clocks isn't one moment: each pair is bracketed.
  const uint64_t ticks_before = TickClock::now();
  const uint64_t nanoseconds_before = TickClock::monotonic_nanoseconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const uint64_t nanoseconds = TickClock::monotonic_nanoseconds() - nanoseconds_before;
  const uint64_t ticks = TickClock::between(ticks_before, TickClock::now());
  const double seconds = double(ticks) * TickClock::seconds_per_tick();
  EXPECT_GE(seconds, 0.999e-9 * double(nanoseconds));
  EXPECT_GE(seconds, 0.0299);
}

TEST(TickClockTest, TheRateNeverChanges) {
  const double rate = TickClock::seconds_per_tick();
  EXPECT_GT(rate, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  EXPECT_EQ(TickClock::seconds_per_tick(), rate);
}

TEST(TickClockTest, ARoughCountOfTicksIsWithinAPercent) {
  const double ticks = double(TickClock::rough_ticks(std::chrono::milliseconds(1)));
  EXPECT_NEAR(ticks * TickClock::seconds_per_tick(), 1e-3, 1e-5);
}

TEST(TickClockTest, AllThreadsSeeOneRate) {
  std::vector<double> rates(8);
  std::vector<std::thread> threads;
  for (double& rate : rates) {
    threads.emplace_back([&rate] {
      TickClock::start();
      rate = TickClock::seconds_per_tick();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(rates, std::vector<double>(8, rates[0]));
}

TEST(TickClockTest, ACounterThatGoesBackIsNoTime) {
  EXPECT_EQ(TickClock::between(10, 7), 0u);
  EXPECT_EQ(TickClock::between(7, 10), 3u);
}

}  // namespace
}  // namespace neuropod
