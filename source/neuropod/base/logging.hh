#pragma once

#include <chrono>
#include <functional>
#include <string_view>

#include "neuropod/base/visibility.hh"

namespace neuropod {

/// How much a line matters. The names are those of NEUROPOD_LOG_LEVEL.
enum class LogLevel { kTrace, kDebug, kInfo, kWarn, kError };

/// "TRACE", "DEBUG", "INFO", "WARN" or "ERROR".
NEUROPOD_EXPORT const char* to_string(LogLevel level) noexcept;

/// True if a line of `level` would be written; ask before composing an expensive one.
///
/// NEUROPOD_LOG_LEVEL (TRACE, DEBUG, INFO, WARN or ERROR, in any case; default INFO) is read at the
/// first use. A value that is none of these counts as INFO and is warned of once.
NEUROPOD_EXPORT bool log_enabled(LogLevel level) noexcept;

/// Changes the level that NEUROPOD_LOG_LEVEL set, for the whole process.
NEUROPOD_EXPORT void set_log_level(LogLevel level) noexcept;

/// What a line on stderr looks like.
enum class LogFormat {
  kText,  ///< for people: time, level, place, thread, process, message
  kJson,  ///< for collectors: a JSON object per line, docs/logging.md names its keys
};

/// Changes the format that NEUROPOD_LOG_FORMAT (text or json, in any case; default text) set, for
/// the whole process. A value of the variable that is neither counts as text and is warned of once.
NEUROPOD_EXPORT void set_log_format(LogFormat format) noexcept;

/// Writes one line to the sink or, if there is none, to stderr; never to stdout. The logger is the
/// library's own; one that the host program has set up isn't touched.
///
/// **Thread safety**: thread-safe; lines don't mix. **Errors**: none leaves; a line that can't be
/// written is lost. `file` and `line` are the caller's place and need not be given.
NEUROPOD_EXPORT void log(LogLevel level, std::string_view message,
                         const char* file = __builtin_FILE(), int line = __builtin_LINE()) noexcept;

/// One line, as the sink sees it. Valid during the sink's call.
struct LogLine {
  LogLevel level;
  std::string_view message;  ///< UTF-8, unless it quotes a path that isn't
  const char* file;
  int line;
  std::chrono::system_clock::time_point time;
};

/// Sends lines that the level lets through to `sink` instead of stderr, for the whole process; an
/// empty one restores stderr.
///
/// The sink runs on the thread that logs, possibly on several at once, and must not block for long.
/// What is logged on a thread that is inside the sink goes to stderr. So does a line whose sink
/// threw, and that it threw is said there once. Lines under way may still reach a sink after it was
/// replaced. Thread-safe.
using LogSink = std::function<void(const LogLine& line)>;
NEUROPOD_EXPORT void set_log_sink(LogSink sink);

}  // namespace neuropod
