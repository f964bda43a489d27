#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace neuropod::multiprocess {

/// Sleeps while the 32-bit `word`, which may be shared between processes, is `expected`: until
/// woken, `until` (none: for ever) or a signal. May return early.
void futex_wait(const void* word, uint32_t expected,
                std::optional<std::chrono::steady_clock::time_point> until) noexcept;

void futex_wake(const void* word, int threads) noexcept;

}  // namespace neuropod::multiprocess
