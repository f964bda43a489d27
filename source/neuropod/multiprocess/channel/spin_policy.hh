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
/// 2. the caller doesn't spin if the worker was asleep when it submitted, except in one of 8 such
///    calls (32, after eight tries in vain); if the next call then finds the worker awake, calls
///    come one after the other, and spinning from the first on keeps both awake, until three such
///    tries were in vain;
/// 3. at most 1.5 × the mean call time of this model, and 500 µs (caller) or 20 µs (worker);
/// 4. after three spins in vain only once in 64 calls, until one succeeds; but the worker always
///    after a call whose caller spun: otherwise each side would sleep because the other does;
/// 5. threads of this process that spin stay below the CPUs that affinity and cgroup quota allow,
///    and where calls take long none spins while as many calls run as there are CPUs: it would take
///    a worker's.
///
/// One object per channel (host; shared by its threads) or per executor thread (worker).
/// **Thread safety**: thread-safe, by relaxed counters: it is advice.
class SpinPolicy {
 public:
  enum class Side { kHost, kWorker };
  SpinPolicy(Side side, RuntimeOptions::Spin spin);

  /// One wait, on the waiting thread's stack: first spinning, then, while this object lives,
  /// sleeping.
  class Wait {
   public:
    /// `own`: where to publish this thread's CPU; `peer`: where the other side does.
    /// `peer_was_asleep`: for rule 2.
    Wait(SpinPolicy& policy, Presence& own, const Presence& peer, bool peer_was_asleep) noexcept;
    ~Wait();
    Wait(const Wait&) = delete;

    /// Pauses for some tens of nanoseconds, up to about a microsecond of them between looks at
    /// clock and CPU. False: stop spinning and sleep; the policy knows how it went.
    bool spin() noexcept;

    /// What was waited for has come; without it the wait counts as in vain.
    void succeeded() noexcept { succeeded_ = true; }

   private:
    friend class SpinPolicy;
    void stop() noexcept;
    SpinPolicy& policy_;
    Presence& own_;
    const Presence& peer_;
    uint64_t until_ = 0;  // ticks; 0: don't spin
    uint32_t pauses_ = 0;
    bool spun_ = false;
    bool succeeded_ = false;
    bool counted_ = false;  // among the process's spinning threads
    bool waits_ = false;    // among its waiting callers
    bool expected_ = false;
  };

  /// A call took `ticks`, for rule 3.
  void took(uint64_t ticks) noexcept;

  /// The caller of the call that has just ended was awake: its next one may come at once, for
  /// rule 4.
  void expect_soon() noexcept { expects_soon_.store(true, std::memory_order_relaxed); }

 private:
  bool spins_though_asleep() noexcept;
  bool takes_a_workers_cpu() const noexcept;

  const Side side_;
  const RuntimeOptions::Spin spin_;
  const uint64_t most_ticks_;
  const uint64_t long_ticks_;
  std::atomic<uint64_t> mean_ticks_;
  std::atomic<uint32_t> failures_{0};
  std::atomic<uint32_t> skipped_{0};
  std::atomic<bool> expects_soon_{false};
  std::atomic<uint32_t> asleep_{0};  // calls that found the worker asleep
  std::atomic<uint32_t> vain_{0};    // tries, since one paid off
  std::atomic<bool> tried_{false};   // the last of them spun all the same
  std::atomic<uint32_t> credit_{0};  // tries that may fail: one has paid off not long ago
};

/// Says where this thread runs now. Returns it.
uint32_t publish_cpu(Presence& presence) noexcept;

/// CPUs that this process may use by its affinity and its cgroups' quota, at least 1. Read again at
/// most once a second.
uint32_t usable_cpus() noexcept;

}  // namespace neuropod::multiprocess
