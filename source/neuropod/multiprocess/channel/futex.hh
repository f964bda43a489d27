#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace neuropod::multiprocess {

/// The kernel's wait queue on a word of memory, which may be shared between processes.
using FutexWord = std::atomic<uint32_t>;

/// Sleeps while `word` is `expected`, until woken, `until` (none: for ever) or a signal. May return
/// early. False: it was a signal.
bool futex_wait(const void* word, uint32_t expected,
                std::optional<std::chrono::steady_clock::time_point> until) noexcept;

void futex_wake(const void* word, int threads) noexcept;

}  // namespace neuropod::multiprocess
