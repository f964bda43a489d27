#pragma once

#include <cstdint>

namespace neuropod::multiprocess {

/// A number that differs between this process and every process it was forked from or has forked:
/// what was made under another number belongs to another process. One load from a page that the
/// kernel wipes in children (MADV_WIPEONFORK); where it can't, from getpid().
uint64_t process_generation() noexcept;

}  // namespace neuropod::multiprocess
