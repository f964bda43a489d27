#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

namespace neuropod::multiprocess {

/// The one thread of this process that starts workers, watches them and waits for times to come. It
/// begins with the first use and lives as long as the process, because a worker dies with the
/// thread that started it (PR_SET_PDEATHSIG). Nothing that runs on it may block.
///
/// A forked child gets one of its own, and leaves its parent's alone.
/// **Thread safety**: post() from any thread; the rest on the loop's own thread only.
class SupervisorLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using Id = uint64_t;  // never 0

  static SupervisorLoop& instance();

  /// Runs `task` on the loop's thread, soon, in the order of the posts.
  void post(std::function<void()> task);

  /// Calls `readable` whenever the descriptor can be read or has ended, until unwatch().
  Id watch(int descriptor, std::function<void()> readable);
  /// Before the descriptor is closed. 0 and unknown ones do nothing.
  void unwatch(Id watch);

  Id at(Clock::time_point time, std::function<void()> task);
  void cancel(Id timer);

 private:
  SupervisorLoop();
  void run();
  struct State;
  State* const state_;  // never destroyed: threads may come here while the process ends
};

}  // namespace neuropod::multiprocess
