#include "neuropod/multiprocess/channel/spin_policy.hh"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "neuropod/base/tick_clock.hh"

namespace neuropod::multiprocess {
namespace {

constexpr auto kMostOfHost = std::chrono::microseconds(500);
constexpr auto kMostOfWorker = std::chrono::microseconds(20);
constexpr auto kFirstMean = std::chrono::microseconds(300);
constexpr uint32_t kFailuresBeforeStop = 3;
constexpr uint32_t kTryOnceIn = 64;
constexpr uint32_t kTryAsleepOnceIn = 8;
constexpr uint32_t kTryRarelyOnceIn = 32;
constexpr uint32_t kTriesBeforeRare = 8;
constexpr uint32_t kCredit = 3;
constexpr auto kLongCall = std::chrono::microseconds(50);
constexpr uint32_t kPausesBetweenLooks = 16;

// Process-wide, as CPUs are: threads of all models that spin now.
std::atomic<uint32_t> spinning{0};
std::atomic<uint32_t> waiting{0};  // and callers that wait, whether they spin or not

inline void pause_cpu() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// CPUs that cgroups grant, or 0 for no limit.
double cgroup_cpus() {
  std::string quota;
  double period = 0;
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  if (v2 >> quota >> period && quota != "max" && period > 0) return std::stod(quota) / period;
  std::ifstream v1_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double granted = 0;
  if (v1_quota >> granted && v1_period >> period && granted > 0 && period > 0)
    return granted / period;
  return 0;
}

uint32_t count_cpus() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  uint32_t cpus = ::sched_getaffinity(0, sizeof set, &set) == 0
                      ? static_cast<uint32_t>(CPU_COUNT(&set))
                      : std::thread::hardware_concurrency();
  try {
    const double granted = cgroup_cpus();
    if (granted > 0) cpus = std::min(cpus, static_cast<uint32_t>(std::max(granted, 1.0)));
  } catch (...) {  // the files say something else than numbers
  }
  return std::max(cpus, uint32_t{1});
}

}  // namespace

uint32_t publish_cpu(Presence& presence) noexcept {
  const auto cpu = static_cast<uint32_t>(::sched_getcpu());
  presence.cpu.store(cpu, std::memory_order_relaxed);
  return cpu;
}

uint32_t usable_cpus() noexcept {
  static std::atomic<uint64_t> known{0};  // seconds << 32 | CPUs
  const auto now = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(
                                             std::chrono::steady_clock::now().time_since_epoch())
                                             .count()) +
                   1;
  const uint64_t seen = known.load(std::memory_order_relaxed);
  if (seen >> 32 == (now & 0xffffffffU)) return static_cast<uint32_t>(seen);
  const uint32_t cpus = count_cpus();
  known.store((now & 0xffffffffU) << 32 | cpus, std::memory_order_relaxed);
  return cpus;
}

SpinPolicy::SpinPolicy(Side side, RuntimeOptions::Spin spin)
    : side_(side),
      spin_(spin),
      most_ticks_((TickClock::start(),
                   TickClock::rough_ticks(side == Side::kHost ? kMostOfHost : kMostOfWorker))),
      long_ticks_(TickClock::rough_ticks(kLongCall)),
      mean_ticks_(TickClock::rough_ticks(kFirstMean)) {}

bool SpinPolicy::takes_a_workers_cpu() const noexcept {
  return mean_ticks_.load(std::memory_order_relaxed) > long_ticks_ &&
         waiting.load(std::memory_order_relaxed) >= usable_cpus();
}

bool SpinPolicy::spins_though_asleep() noexcept {
  // A try after which the worker is asleep again was for nothing.
  uint32_t credit = credit_.load(std::memory_order_relaxed);
  if (tried_.exchange(false, std::memory_order_relaxed)) {
    if (credit > 0) credit_.store(--credit, std::memory_order_relaxed);
    vain_.fetch_add(1, std::memory_order_relaxed);
  }
  const uint32_t once_in = vain_.load(std::memory_order_relaxed) < kTriesBeforeRare
                               ? kTryAsleepOnceIn
                               : kTryRarelyOnceIn;
  const bool now = credit > 0 || asleep_.fetch_add(1, std::memory_order_relaxed) % once_in == 0;
  tried_.store(now, std::memory_order_relaxed);
  return now;
}

void SpinPolicy::took(uint64_t ticks) noexcept {
  const uint64_t mean = mean_ticks_.load(std::memory_order_relaxed);
  mean_ticks_.store(mean - mean / 8 + ticks / 8, std::memory_order_relaxed);
}

SpinPolicy::Wait::Wait(SpinPolicy& policy, Presence& own, const Presence& peer,
                       bool peer_was_asleep) noexcept
    : policy_(policy), own_(own), peer_(peer) {
  const bool always = policy.spin_ == RuntimeOptions::Spin::kAlways;
  if (policy.side_ == Side::kHost) {
    waits_ = true;
    waiting.fetch_add(1, std::memory_order_relaxed);
  }
  if (policy.spin_ == RuntimeOptions::Spin::kNever) return;
  // An expected answer, or call, is waited for whatever failed before.
  expected_ = policy.expects_soon_.exchange(false, std::memory_order_relaxed);
  if (policy.side_ == Side::kHost && !always) {
    if (peer_was_asleep) {
      if (!policy.spins_though_asleep()) return;
      expected_ = true;
    } else if (policy.tried_.exchange(false, std::memory_order_relaxed)) {
      policy.credit_.store(kCredit, std::memory_order_relaxed);
      policy.vain_.store(0, std::memory_order_relaxed);
    }
    if (policy.takes_a_workers_cpu()) return;
  }
  uint64_t ticks = policy.most_ticks_;
  if (policy.side_ == Side::kHost) {
    const uint64_t mean = policy.mean_ticks_.load(std::memory_order_relaxed);
    ticks = std::min(ticks, mean + mean / 2);
  }
  if (!always) {
    if (!expected_ && policy.failures_.load(std::memory_order_relaxed) >= kFailuresBeforeStop &&
        policy.skipped_.fetch_add(1, std::memory_order_relaxed) % kTryOnceIn != kTryOnceIn - 1) {
      return;
    }
    if (spinning.fetch_add(1, std::memory_order_relaxed) + 1 >= usable_cpus()) {
      spinning.fetch_sub(1, std::memory_order_relaxed);
      return;
    }
    counted_ = true;
  }
  publish_cpu(own_);
  until_ = always ? ~uint64_t{0} : TickClock::now() + ticks;
}

SpinPolicy::Wait::~Wait() {
  stop();
  if (waits_) waiting.fetch_sub(1, std::memory_order_relaxed);
}

void SpinPolicy::Wait::stop() noexcept {
  until_ = 0;
  if (std::exchange(counted_, false)) spinning.fetch_sub(1, std::memory_order_relaxed);
  if (!std::exchange(spun_, false)) return;
  if (succeeded_) {
    policy_.failures_.store(0, std::memory_order_relaxed);
  } else if (!expected_) {
    policy_.failures_.fetch_add(1, std::memory_order_relaxed);
  }
}

bool SpinPolicy::Wait::spin() noexcept {
  if (until_ == 0) return false;
  spun_ = true;
  pause_cpu();
  if (++pauses_ % kPausesBetweenLooks != 0) return true;
  if (until_ == ~uint64_t{0}) return true;
  const uint32_t cpu = publish_cpu(own_);
  const bool shares_cpu = peer_.cpu.load(std::memory_order_relaxed) == cpu;
  const bool crowded = policy_.side_ == Side::kHost && policy_.takes_a_workers_cpu();
  if (!shares_cpu && !crowded && TickClock::now() < until_) return true;
  if (shares_cpu || crowded) spun_ = false;  // which says nothing about the next time
  stop();
  return false;
}

}  // namespace neuropod::multiprocess
