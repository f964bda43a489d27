#pragma once

#include <chrono>
#include <deque>
#include <optional>

namespace neuropod::multiprocess {

/// When a worker that died is started again. Before it has been ready once: at once, and never
/// after the fifth death, which fails the load. Later: at once; from the third death in 30 s on
/// with a back-off of 0.1 to 10 s, doubling; from the beginning after a minute without a death.
/// Pure logic over the times it is given.
class RestartPolicy {
 public:
  using Clock = std::chrono::steady_clock;

  /// How long to wait before the next start; nothing: give up.
  std::optional<std::chrono::milliseconds> died(Clock::time_point now);
  void became_ready() { was_ready_ = true; }

 private:
  std::deque<Clock::time_point> deaths_;  // of the last 30 s
  std::optional<Clock::time_point> last_death_;
  std::chrono::milliseconds back_off_{100};
  int deaths_before_ready_ = 0;
  bool was_ready_ = false;
};

}  // namespace neuropod::multiprocess
