#include "neuropod/multiprocess/channel/futex.hh"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace neuropod::multiprocess {

void futex_wait(const void* word, uint32_t expected,
                std::optional<std::chrono::steady_clock::time_point> until) noexcept {
  timespec absolute{};
  if (until) {
    // steady_clock is CLOCK_MONOTONIC, which this operation's absolute times are of.
    const auto since =
        std::chrono::duration_cast<std::chrono::nanoseconds>(until->time_since_epoch());
    absolute.tv_sec = static_cast<time_t>(since.count() / 1'000'000'000);
    absolute.tv_nsec = static_cast<long>(since.count() % 1'000'000'000);
  }
  ::syscall(SYS_futex, word, FUTEX_WAIT_BITSET, expected, until ? &absolute : nullptr, nullptr,
            FUTEX_BITSET_MATCH_ANY);
}

void futex_wake(const void* word, int threads) noexcept {
  ::syscall(SYS_futex, word, FUTEX_WAKE, threads, nullptr, nullptr, 0);
}

}  // namespace neuropod::multiprocess
