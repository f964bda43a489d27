#include "neuropod/core/latency_histogram.hh"

#include <algorithm>

namespace neuropod {

void LatencyHistogram::add(const LatencyHistogram& other) noexcept {
  for (size_t i = 0; i < kNumBuckets; ++i) buckets_[i] += other.buckets_[i];
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
}

uint64_t LatencyHistogram::count() const noexcept {
  uint64_t count = 0;
  for (const uint64_t bucket : buckets_) count += bucket;
  return count;
}

uint64_t LatencyHistogram::lower_edge(size_t index) noexcept {
  if (index == 0) return 0;
  const size_t steps = size_t(1) << kStepBits;
  const unsigned exponent = kFirstExponent + unsigned((index - 1) >> kStepBits);
  const uint64_t step = (index - 1) & (steps - 1);
  return (steps + step) << (exponent - kStepBits);
}

double LatencyHistogram::quantile(double quantile) const noexcept {
  const uint64_t total = count();
  if (total == 0) return 0;
  const double rank = std::clamp(quantile, 0.0, 1.0) * static_cast<double>(total);
  double below = 0;
  for (size_t i = 0; i < kNumBuckets; ++i) {
    const double inside = static_cast<double>(buckets_[i]);
    if (inside > 0 && below + inside >= rank) {
      const double begin = static_cast<double>(lower_edge(i));
      const double end = static_cast<double>(std::min(lower_edge(i + 1), max_));
      return std::min(begin + (end - begin) * (rank - below) / inside, static_cast<double>(max_));
    }
    below += inside;
  }
  return static_cast<double>(max_);
}

uint64_t LatencyHistogram::count_up_to(double ticks) const noexcept {
  uint64_t count = 0;
  for (size_t i = 0; i < kNumBuckets; ++i) {
    const double middle =
        0.5 * (static_cast<double>(lower_edge(i)) + static_cast<double>(lower_edge(i + 1)));
    if (middle > ticks) break;
    count += buckets_[i];
  }
  return count;
}

}  // namespace neuropod
