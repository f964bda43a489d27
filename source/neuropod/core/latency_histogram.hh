#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "neuropod/base/visibility.hh"

namespace neuropod {

/// Counts of durations, in buckets that widen with the duration: eight to each doubling, so that a
/// quantile is at most 7 % off, from 32 ticks to 2^40 (12 ns to 7 minutes at 2.6 GHz; beyond, the
/// outermost buckets count). Adding costs a few instructions and never allocates; two histograms
/// add up to the histogram of both.
///
/// A plain value. **Thread safety**: thread-compatible.
class NEUROPOD_EXPORT LatencyHistogram {
 public:
  static constexpr unsigned kFirstExponent = 5;
  static constexpr unsigned kLastExponent = 39;
  static constexpr unsigned kStepBits = 3;  // 2^3 buckets to a doubling
  static constexpr size_t kNumBuckets =
      1 + (size_t(kLastExponent - kFirstExponent + 1) << kStepBits);

  void add(uint64_t ticks) noexcept {
    ++buckets_[bucket_of(ticks)];
    sum_ += ticks;
    if (ticks > max_) max_ = ticks;
  }

  void add(const LatencyHistogram& other) noexcept;

  uint64_t count() const noexcept;
  uint64_t sum() const noexcept { return sum_; }
  uint64_t max() const noexcept { return max_; }

  /// The duration that a share `quantile` (0 to 1) of all doesn't exceed, interpolated within its
  /// bucket and never above max(); 0 if there are none.
  double quantile(double quantile) const noexcept;

  /// How many were at most `ticks`: whole buckets, by their middle.
  uint64_t count_up_to(double ticks) const noexcept;

  /// Where bucket `index` begins; index kNumBuckets is where the last one ends.
  static uint64_t lower_edge(size_t index) noexcept;

  static size_t bucket_of(uint64_t ticks) noexcept {
    if (ticks < (uint64_t(1) << kFirstExponent)) return 0;
    const unsigned exponent = 63u - unsigned(__builtin_clzll(ticks));
    if (exponent > kLastExponent) return kNumBuckets - 1;
    const size_t step = size_t(ticks >> (exponent - kStepBits)) & ((size_t(1) << kStepBits) - 1);
    return 1 + (size_t(exponent - kFirstExponent) << kStepBits) + step;
  }

 private:
  std::array<uint64_t, kNumBuckets> buckets_{};
  uint64_t sum_ = 0;
  uint64_t max_ = 0;
};

}  // namespace neuropod
