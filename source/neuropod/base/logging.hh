#pragma once

#include <string_view>

#include "neuropod/base/visibility.hh"

namespace neuropod {

/// How much a line matters. The names are those of NEUROPOD_LOG_LEVEL.
enum class LogLevel { kTrace, kDebug, kInfo, kWarn, kError };

/// True if a line of `level` would be written; ask before composing an expensive one.
///
/// NEUROPOD_LOG_LEVEL (TRACE, DEBUG, INFO, WARN or ERROR; default INFO) is read at the first use. A
/// value that is none of these counts as INFO and is warned of once.
NEUROPOD_EXPORT bool log_enabled(LogLevel level) noexcept;

/// Changes the level that NEUROPOD_LOG_LEVEL set, for the whole process.
NEUROPOD_EXPORT void set_log_level(LogLevel level) noexcept;

/// Writes one line to stderr, never to stdout: time, level, place, thread, process, `message`. The
/// logger is the library's own; one that the host program has set up isn't touched.
///
/// **Thread safety**: thread-safe; lines don't mix. **Errors**: none leaves; a line that can't be
/// written is lost. `file` and `line` are the caller's place and need not be given.
NEUROPOD_EXPORT void log(LogLevel level, std::string_view message,
                         const char* file = __builtin_FILE(), int line = __builtin_LINE()) noexcept;

}  // namespace neuropod
