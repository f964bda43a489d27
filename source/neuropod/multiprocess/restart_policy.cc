#include "neuropod/multiprocess/restart_policy.hh"

#include <algorithm>

namespace neuropod::multiprocess {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kWindow(30);
constexpr size_t kDeathsBeforeBackOff = 3;
constexpr milliseconds kFirstBackOff(100);
constexpr milliseconds kLongestBackOff(10'000);
constexpr seconds kForgiven(60);
constexpr int kDeathsBeforeReady = 5;

}  // namespace

std::optional<milliseconds> RestartPolicy::died(Clock::time_point now) {
  if (!was_ready_) {
    if (++deaths_before_ready_ >= kDeathsBeforeReady) return std::nullopt;
    return milliseconds(0);
  }
  if (last_death_ && now - *last_death_ >= kForgiven) {
    deaths_.clear();
    back_off_ = kFirstBackOff;
  }
  last_death_ = now;
  deaths_.push_back(now);
  while (now - deaths_.front() > kWindow) deaths_.pop_front();
  if (deaths_.size() < kDeathsBeforeBackOff) return milliseconds(0);
  const milliseconds wait = back_off_;
  back_off_ = std::min(back_off_ * 2, kLongestBackOff);
  return wait;
}

}  // namespace neuropod::multiprocess
