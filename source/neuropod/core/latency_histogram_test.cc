#include "neuropod/core/latency_histogram.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace neuropod {
namespace {

TEST(LatencyHistogramTest, EveryDurationLiesWithinItsBucket) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const uint64_t ticks = random() >> (24 + random() % 40);
    const size_t bucket = LatencyHistogram::bucket_of(ticks);
    ASSERT_LT(bucket, LatencyHistogram::kNumBuckets);
    ASSERT_GE(ticks, LatencyHistogram::lower_edge(bucket)) << ticks;
    ASSERT_LT(ticks, LatencyHistogram::lower_edge(bucket + 1)) << ticks;
  }
}

TEST(LatencyHistogramTest, BucketsAreAtMostAnEighthWide) {
  for (size_t i = 1; i < LatencyHistogram::kNumBuckets; ++i) {
    const double begin = double(LatencyHistogram::lower_edge(i));
    const double end = double(LatencyHistogram::lower_edge(i + 1));
    ASSERT_GT(end, begin);
    ASSERT_LE(end, begin * 1.1251);
  }
}

TEST(LatencyHistogramTest, DurationsOutsideTheRangeAreCountedAtItsEnds) {
  LatencyHistogram histogram;
  histogram.add(uint64_t(0));
  histogram.add(std::numeric_limits<uint64_t>::max() / 2);
  EXPECT_EQ(histogram.count(), 2u);
  EXPECT_EQ(histogram.count_up_to(32), 1u);
  EXPECT_EQ(histogram.max(), std::numeric_limits<uint64_t>::max() / 2);
}

TEST(LatencyHistogramTest, QuantilesAreWithinSevenPercentOfTheSamples) {
  std::mt19937_64 random(2);
  std::lognormal_distribution<double> distribution(12, 1);
  LatencyHistogram histogram;
  std::vector<double> samples;
  for (int i = 0; i < 20000; ++i) {
    const auto ticks = uint64_t(distribution(random));
    samples.push_back(double(ticks));
    histogram.add(ticks);
  }
  std::sort(samples.begin(), samples.end());
  for (const double quantile : {0.1, 0.5, 0.95, 0.99, 0.999}) {
    const double exact = samples[size_t(quantile * double(samples.size() - 1))];
    EXPECT_NEAR(histogram.quantile(quantile), exact, 0.07 * exact) << quantile;
  }
  EXPECT_EQ(histogram.quantile(1), samples.back());
}

TEST(LatencyHistogramTest, NothingHasNoQuantile) {
  EXPECT_EQ(LatencyHistogram().quantile(0.5), 0);
  EXPECT_EQ(LatencyHistogram().count(), 0u);
}

TEST(LatencyHistogramTest, NoQuantileIsAboveTheLongest) {
  LatencyHistogram histogram;
  histogram.add(uint64_t(1000));
  for (const double quantile : {0.0, 0.5, 1.0}) EXPECT_LE(histogram.quantile(quantile), 1000);
  EXPECT_NEAR(histogram.quantile(0.5), 1000, 70);
}

TEST(LatencyHistogramTest, TwoAddUpToTheHistogramOfBoth) {
  LatencyHistogram one;
  LatencyHistogram other;
  LatencyHistogram both;
  for (uint64_t ticks = 1; ticks < 1000000; ticks = ticks * 3 + 1) {
    one.add(ticks);
    other.add(ticks * 7);
    both.add(ticks);
    both.add(ticks * 7);
  }
  one.add(other);
  EXPECT_EQ(one.count(), both.count());
  EXPECT_EQ(one.sum(), both.sum());
  EXPECT_EQ(one.max(), both.max());
  EXPECT_EQ(one.quantile(0.9), both.quantile(0.9));
}

TEST(LatencyHistogramTest, CountsUpToABoundOnlyGrowWithIt) {
  LatencyHistogram histogram;
  for (uint64_t ticks = 1; ticks < 100000; ++ticks) histogram.add(ticks);
  uint64_t before = 0;
  for (int step = 0; step < 44; ++step) {  // 10 to 800 000
    const double bound = 10 * std::pow(1.3, step);
    const uint64_t count = histogram.count_up_to(bound);
    EXPECT_GE(count, before);
    EXPECT_NEAR(double(count), std::min(bound, 99999.0), 0.07 * bound + 32);
    before = count;
  }
  EXPECT_EQ(histogram.count_up_to(1e6), histogram.count());
}

}  // namespace
}  // namespace neuropod
