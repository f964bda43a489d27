#include "neuropod/base/logging.hh"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <strings.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "neuropod/base/fork_safe_mutex.hh"
#include "neuropod/base/log/json_formatter.hh"

namespace neuropod {
namespace {

struct NamedLevel {
  const char* name;
  spdlog::level::level_enum level;
};

constexpr std::array<NamedLevel, 5> kLevels{{{"TRACE", spdlog::level::trace},
                                             {"DEBUG", spdlog::level::debug},
                                             {"INFO", spdlog::level::info},
                                             {"WARN", spdlog::level::warn},
                                             {"ERROR", spdlog::level::err}}};

spdlog::level::level_enum spdlog_level(LogLevel level) { return kLevels[size_t(level)].level; }

std::unique_ptr<spdlog::formatter> make_formatter(LogFormat format) {
  if (format == LogFormat::kJson) return std::make_unique<JsonLogFormatter>();
  return std::make_unique<spdlog::pattern_formatter>(
      "%Y-%m-%d %H:%M:%S.%F: %L %s:%#] [thread %t, process %P] %v");
}

// Sets what the variable says. Returns what is wrong with it, or an empty string.
std::string take_format(spdlog::logger* logger) {
  const char* wanted = std::getenv("NEUROPOD_LOG_FORMAT");
  const bool json = wanted != nullptr && strcasecmp(wanted, "json") == 0;
  logger->set_formatter(make_formatter(json ? LogFormat::kJson : LogFormat::kText));
  if (wanted == nullptr || json || strcasecmp(wanted, "text") == 0) return "";
  return fmt::format(
      "NEUROPOD_LOG_FORMAT is '{}', which is no format; text is used. Formats: "
      "text, json",
      wanted);
}

std::string take_level(spdlog::logger* logger) {
  logger->set_level(spdlog::level::info);
  const char* wanted = std::getenv("NEUROPOD_LOG_LEVEL");
  if (wanted == nullptr) return "";
  for (const NamedLevel& known : kLevels) {
    if (strcasecmp(known.name, wanted) == 0) {
      logger->set_level(known.level);
      return "";
    }
  }
  return fmt::format(
      "NEUROPOD_LOG_LEVEL is '{}', which is no level; INFO is used. Levels: TRACE, "
      "DEBUG, INFO, WARN, ERROR",
      wanted);
}

std::unique_ptr<spdlog::logger> make_logger() {
  auto logger = std::make_unique<spdlog::logger>("neuropod",
                                                 std::make_shared<spdlog::sinks::stderr_sink_st>());
  logger->set_error_handler([](const std::string&) {});
  for (const std::string& problem : {take_format(logger.get()), take_level(logger.get())}) {
    if (!problem.empty()) {
      logger->log(spdlog::source_loc{__FILE__, __LINE__, ""}, spdlog::level::warn, problem);
    }
  }
  return logger;
}

// Process-wide, so that every model and every thread writes whole lines to one place. Never
// destroyed: threads of frameworks may log while the process ends.
struct Stderr {
  const std::unique_ptr<spdlog::logger> logger = make_logger();
  ForkSafeMutex mutex;  // guards what writes: the logger's sink with its formatter, not its level
};

Stderr& standard_error() {
  static auto* const instance = new Stderr;
  return *instance;
}

spdlog::logger& logger() { return *standard_error().logger; }

struct Sink {
  LogSink function;
  std::atomic<bool> told_of_exception{false};
};

// Process-wide and never destroyed, as the logger.
struct CurrentSink {
  std::atomic<bool> present{false};
  ForkSafeMutex mutex;  // guards `sink`
  std::shared_ptr<Sink> sink;
};

CurrentSink& current_sink() {
  static auto* const instance = new CurrentSink;
  return *instance;
}

thread_local bool inside_sink = false;

void write(LogLevel level, std::string_view message, const char* file, int line) {
  std::lock_guard lock(standard_error().mutex);
  logger().log(spdlog::source_loc{file, line, ""}, spdlog_level(level),
               spdlog::string_view_t(message.data(), message.size()));
}

void say_that_it_threw(Sink& sink, const char* what) {
  if (sink.told_of_exception.exchange(true)) return;
  write(LogLevel::kError,
        fmt::format("the log sink threw: {}; lines that it refuses come here, and this is said "
                    "once",
                    what),
        __FILE__, __LINE__);
}

// False if the line wasn't taken.
bool send(const LogLine& line) {
  std::shared_ptr<Sink> sink;
  {
    std::lock_guard lock(current_sink().mutex);
    sink = current_sink().sink;
  }
  if (sink == nullptr) return false;
  inside_sink = true;
  bool taken = false;
  try {
    sink->function(line);
    taken = true;
  } catch (const std::exception& exception) {
    say_that_it_threw(*sink, exception.what());
  } catch (...) {
    say_that_it_threw(*sink, "something that is no std::exception");
  }
  inside_sink = false;
  return taken;
}

}  // namespace

const char* to_string(LogLevel level) noexcept { return kLevels[size_t(level)].name; }

bool log_enabled(LogLevel level) noexcept {
  try {
    return logger().should_log(spdlog_level(level));
  } catch (...) {
    return false;
  }
}

void set_log_level(LogLevel level) noexcept {
  try {
    logger().set_level(spdlog_level(level));
  } catch (...) {
  }
}

void set_log_format(LogFormat format) noexcept {
  try {
    std::unique_ptr<spdlog::formatter> formatter = make_formatter(format);
    std::lock_guard lock(standard_error().mutex);
    logger().set_formatter(std::move(formatter));
  } catch (...) {
  }
}

void log(LogLevel level, std::string_view message, const char* file, int line) noexcept {
  if (!log_enabled(level)) return;
  try {
    if (current_sink().present && !inside_sink &&
        send({level, message, file, line, std::chrono::system_clock::now()})) {
      return;
    }
    write(level, message, file, line);
  } catch (...) {
  }
}

void set_log_sink(LogSink sink) {
  std::shared_ptr<Sink> next;
  if (sink) {
    next = std::make_shared<Sink>();
    next->function = std::move(sink);
  }
  const bool present = next != nullptr;
  {
    std::lock_guard lock(current_sink().mutex);
    current_sink().sink.swap(next);
    current_sink().present = present;
  }
  // The old one is freed here, without the lock: its destructor is the host's code.
}

}  // namespace neuropod
