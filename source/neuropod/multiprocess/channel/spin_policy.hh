#pragma once

#include <atomic>
#include <cstdint>

#include "neuropod/multiprocess/channel/channel_layout.hh"
#include "neuropod/options.hh"

namespace neuropod::multiprocess {

/// Decides how long a thread looks for the other side's answer before it sleeps. The rules, each of
/// which was tried (docs/out_of_process.md, "Spinning"):
///
/// 1. a waiter spins only while the peer runs on another CPU than its own;
/// 2. the caller doesn't spin if the worker was asleep when it submitted;
/// 3. at most 1.5 × the mean call time of this model, and 500 µs (caller) or 20 µs (worker);
/// 4. after three spins in vain only once in 64 calls, until one succeeds;
/// 5. threads of this process that spin stay below the CPUs that affinity and cgroup quota allow.
///
/// One object per channel (host; shared by its threads) or per executor thread (worker).
/// **Thread safety**: thread-safe, by relaxed counters: it is advice.
class SpinPolicy {
 public:
  enum class Side { kHost, kWorker };
  SpinPolicy(Side side, RuntimeOptions::Spin spin);

  /// One wait, on the waiting thread's stack.
  class Wait {
   public:
    /// `own`: where to publish this thread's CPU; `peer`: where the other side does.
    /// `peer_was_asleep`: for rule 2.
    Wait(SpinPolicy& policy, Presence& own, const Presence& peer, bool peer_was_asleep) noexcept;
    /// Tells the policy how it went.
    ~Wait();
    Wait(const Wait&) = delete;

    /// Pauses for some tens of nanoseconds, up to about a microsecond of them between looks at
    /// clock and CPU. False: stop spinning and sleep.
    bool spin() noexcept;

    /// What was waited for has come; without it the wait counts as in vain.
    void succeeded() noexcept { succeeded_ = true; }

   private:
    friend class SpinPolicy;
    SpinPolicy& policy_;
    Presence& own_;
    const Presence& peer_;
    uint64_t until_ = 0;  // ticks; 0: don't spin
    uint32_t pauses_ = 0;
    bool spun_ = false;
    bool succeeded_ = false;
    bool counted_ = false;  // among the process's spinning threads
  };

  /// A call took `ticks`, for rule 3.
  void took(uint64_t ticks) noexcept;

 private:
  const Side side_;
  const RuntimeOptions::Spin spin_;
  const uint64_t most_ticks_;
  std::atomic<uint64_t> mean_ticks_;
  std::atomic<uint32_t> failures_{0};
  std::atomic<uint32_t> skipped_{0};
};

/// CPUs that this process may use by its affinity and its cgroups' quota, at least 1. Read again at
/// most once a second.
uint32_t usable_cpus() noexcept;

}  // namespace neuropod::multiprocess
