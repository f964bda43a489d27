#include "neuropod/multiprocess/channel/spin_policy.hh"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "neuropod/base/tick_clock.hh"

namespace neuropod::multiprocess {
namespace {

using Side = SpinPolicy::Side;
using Spin = RuntimeOptions::Spin;

constexpr uint32_t kElsewhere = 12345;  // no CPU of ours

class SpinPolicyTest : public ::testing::Test {
 protected:
  SpinPolicyTest() { peer_.cpu = kElsewhere; }

  // Whether a wait with an answer at once spins at all.
  bool spins(SpinPolicy& policy, bool asleep = false, bool succeeds = true) {
    SpinPolicy::Wait wait(policy, own_, peer_, asleep);
    const bool began = wait.spin();
    if (succeeds) {
      wait.succeeded();
    } else {
      while (wait.spin()) {
      }
    }
    return began;
  }

  Presence own_{}, peer_{};
};

#define REQUIRE_TWO_CPUS() \
  if (usable_cpus() < 2) GTEST_SKIP() << "with one CPU nothing ever spins"

TEST_F(SpinPolicyTest, NeverNeverSpinsAndAlwaysAlwaysDoes) {
  SpinPolicy never(Side::kHost, Spin::kNever);
  SpinPolicy always(Side::kHost, Spin::kAlways);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(spins(never));
    EXPECT_TRUE(spins(always, i % 2 == 0));
  }
}

TEST_F(SpinPolicyTest, AWaiterWhosePeerRunsOnItsOwnCpuStops) {
  REQUIRE_TWO_CPUS();
  SpinPolicy policy(Side::kHost, Spin::kAuto);
  for (int i = 0; i < 200'000; ++i) policy.took(TickClock::rough_ticks(std::chrono::hours(1)));
  SpinPolicy fresh(Side::kWorker, Spin::kAuto);
  SpinPolicy::Wait wait(fresh, own_, peer_, false);
  ASSERT_TRUE(wait.spin());
  int spun = 0;
  do {
    peer_.cpu = own_.cpu.load();
    ++spun;
  } while (wait.spin());
  EXPECT_LT(spun, 100);
}

TEST_F(SpinPolicyTest, AfterThreeFailuresOnlyOnceIn64UntilOneSucceeds) {
  REQUIRE_TWO_CPUS();
  SpinPolicy policy(Side::kWorker, Spin::kAuto);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(spins(policy, false, false));
  int tries = 0;
  for (int i = 0; i < 640; ++i) tries += spins(policy, false, false);
  EXPECT_EQ(tries, 10);
  for (int i = 0; i < 64; ++i) spins(policy);  // one of them spins, with success
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(spins(policy));
}

TEST_F(SpinPolicyTest, AWorkerThatWasAsleepIsSeldomWaitedForUnlessThatPaysOff) {
  REQUIRE_TWO_CPUS();
  SpinPolicy policy(Side::kHost, Spin::kAuto);
  int tries = 0;
  for (int i = 0; i < 64; ++i) tries += spins(policy, true);
  EXPECT_EQ(tries, 8);
  tries = 0;
  for (int i = 0; i < 320; ++i) tries += spins(policy, true);
  EXPECT_NEAR(tries, 10, 1) << "which were all in vain";
  // A try that is followed by a call that finds it awake: calls come one after the other.
  while (!spins(policy, true)) {
  }
  EXPECT_TRUE(spins(policy, false));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(spins(policy, true)) << "at once, " << i;
  EXPECT_FALSE(spins(policy, true) && spins(policy, true)) << "three were in vain";
}

TEST_F(SpinPolicyTest, AfterACallWhoseCallerWasAwakeTheWorkerSpinsWhateverFailedBefore) {
  REQUIRE_TWO_CPUS();
  SpinPolicy policy(Side::kWorker, Spin::kAuto);
  for (int i = 0; i < 10; ++i) spins(policy, false, false);
  EXPECT_FALSE(spins(policy));
  policy.expect_soon();
  EXPECT_TRUE(spins(policy));
}

TEST_F(SpinPolicyTest, ThreadsThatSpinLeaveACpuToOthers) {
  SpinPolicy policy(Side::kWorker, Spin::kAuto);
  std::vector<std::unique_ptr<SpinPolicy::Wait>> waits;
  uint32_t spinning = 0;
  for (uint32_t i = 0; i < usable_cpus() + 3; ++i) {
    waits.push_back(std::make_unique<SpinPolicy::Wait>(policy, own_, peer_, false));
    spinning += waits.back()->spin();
    waits.back()->succeeded();
  }
  EXPECT_LT(spinning, usable_cpus());
}

}  // namespace
}  // namespace neuropod::multiprocess
