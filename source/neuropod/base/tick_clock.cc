#include "neuropod/base/tick_clock.hh"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <mutex>
#include <string>
#include <thread>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace neuropod {
namespace {

constexpr auto kCalibration = std::chrono::milliseconds(2);
constexpr uint64_t kRoughNanoseconds = 20'000;

// One moment by both clocks.
struct Moment {
  uint64_t ticks = 0;
  uint64_t nanoseconds = 0;
};

// Whether the processor promises a counter of constant rate.
bool processor_counts_evenly() {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned kInvariantTsc = 1u << 8;
  return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) != 0 && (edx & kInvariantTsc) != 0;
#elif defined(__aarch64__)
  return true;  // the architecture says so
#else
  return false;
#endif
}

// The kernel watches the counter and leaves it when cores disagree. Where nobody says, the
// processor's promise counts.
bool kernel_trusts_counter() {
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string source;
  if (!(file >> source)) return true;
  for (const char* based_on_counter :
       {"tsc", "tsc-early", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"}) {
    if (source == based_on_counter) return true;
  }
  return false;
}

// Nanoseconds that one reading takes, the best of several rounds.
template <typename Read>
uint64_t cost_of_reading(Read&& read) {
  constexpr int kReadings = 64;
  uint64_t best = std::numeric_limits<uint64_t>::max();
  for (int round = 0; round < 4; ++round) {
    const uint64_t begin = TickClock::monotonic_nanoseconds();
    volatile uint64_t kept = 0;
    for (int i = 0; i < kReadings; ++i) kept = read();
    static_cast<void>(kept);
    best = std::min(best, TickClock::monotonic_nanoseconds() - begin);
  }
  return best / kReadings;
}

// Both clocks at the same time: of several tries the one that took least, so that an interruption
// between the readings doesn't count.
Moment moment() {
  Moment best;
  uint64_t shortest = std::numeric_limits<uint64_t>::max();
  for (int i = 0; i < 8; ++i) {
    const uint64_t before = TickClock::now();
    const uint64_t nanoseconds = TickClock::monotonic_nanoseconds();
    const uint64_t took = TickClock::between(before, TickClock::now());
    if (took < shortest) {
      shortest = took;
      best = {before + took / 2, nanoseconds};
    }
  }
  return best;
}

// Seconds per tick over what has passed since `begin`. The span is short, because the two clocks
// don't both go on while the machine sleeps.
double measure_rate(const Moment& begin) {
  const Moment end = moment();
  const uint64_t ticks = std::max<uint64_t>(TickClock::between(begin.ticks, end.ticks), 1);
  return 1e-9 * static_cast<double>(end.nanoseconds - begin.nanoseconds) /
         static_cast<double>(ticks);
}

// Process-wide, as the processor's counter is. Each part is written once.
std::once_flag started;
std::once_flag calibrated;
double rate = 1e-9;

}  // namespace

bool TickClock::uses_counter_ = false;

uint64_t TickClock::monotonic_nanoseconds() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

void TickClock::start() {
  std::call_once(started, [] {
    if (processor_counts_evenly() && kernel_trusts_counter()) {
      // Some hypervisors trap the instruction, which takes longer than the system's clock.
      const uint64_t system = cost_of_reading(&TickClock::monotonic_nanoseconds);
      uses_counter_ = true;
      uses_counter_ = cost_of_reading(&TickClock::now) < system;
    }
  });
}

double TickClock::seconds_per_tick() {
  start();
  std::call_once(calibrated, [] {
    if (!uses_counter_) return;
    const Moment begin = moment();
    std::this_thread::sleep_for(kCalibration);
    rate = measure_rate(begin);
  });
  return rate;
}

uint64_t TickClock::rough_ticks(std::chrono::nanoseconds span) {
  start();
  if (!uses_counter_) return static_cast<uint64_t>(span.count());
  const Moment begin = moment();
  while (monotonic_nanoseconds() - begin.nanoseconds < kRoughNanoseconds) {
  }
  return static_cast<uint64_t>(1e-9 * static_cast<double>(span.count()) / measure_rate(begin));
}

}  // namespace neuropod
