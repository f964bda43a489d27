#include "neuropod/multiprocess/restart_policy.hh"

#include <gtest/gtest.h>

#include <vector>

namespace neuropod::multiprocess {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(RestartPolicyTest, BacksOffAfterThreeDeathsInHalfAMinute) {
  RestartPolicy policy;
  RestartPolicy::Clock::time_point now{};
  std::vector<int64_t> waits;
  for (int death = 0; death < 12; ++death) {
    policy.became_ready();
    now += seconds(2);
    waits.push_back(policy.died(now)->count());
  }
  EXPECT_EQ(waits, (std::vector<int64_t>{0, 0, 100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000,
                                         10000}));
}

TEST(RestartPolicyTest, RareDeathsAreRepairedAtOnce) {
  RestartPolicy policy;
  RestartPolicy::Clock::time_point now{};
  for (int death = 0; death < 20; ++death) {
    policy.became_ready();
    now += seconds(16);
    EXPECT_EQ(policy.died(now), milliseconds(0));
  }
}

TEST(RestartPolicyTest, AMinuteWithoutADeathForgivesAll) {
  RestartPolicy policy;
  RestartPolicy::Clock::time_point now{};
  for (int death = 0; death < 8; ++death) {
    policy.became_ready();
    policy.died(now);
  }
  policy.became_ready();
  now += seconds(60);
  EXPECT_EQ(policy.died(now), milliseconds(0));
}

TEST(RestartPolicyTest, GivesUpAfterFiveDeathsBeforeItWasReady) {
  RestartPolicy policy;
  for (int death = 0; death < 4; ++death) EXPECT_TRUE(policy.died({}));
  EXPECT_FALSE(policy.died({}));
}

}  // namespace
}  // namespace neuropod::multiprocess
