#include "neuropod/base/logging.hh"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>

#include <fmt/format.h>

namespace neuropod {
namespace {

struct NamedLevel {
  std::string_view name;
  spdlog::level::level_enum level;
};

constexpr std::array<NamedLevel, 5> kLevels{{{"TRACE", spdlog::level::trace},
                                             {"DEBUG", spdlog::level::debug},
                                             {"INFO", spdlog::level::info},
                                             {"WARN", spdlog::level::warn},
                                             {"ERROR", spdlog::level::err}}};

spdlog::level::level_enum spdlog_level(LogLevel level) { return kLevels[size_t(level)].level; }

std::unique_ptr<spdlog::logger> make_logger() {
  auto logger = std::make_unique<spdlog::logger>("neuropod",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%F: %L %s:%#] [thread %t, process %P] %v");
  logger->set_error_handler([](const std::string&) {});
  logger->set_level(spdlog::level::info);
  const char* wanted = std::getenv("NEUROPOD_LOG_LEVEL");
  if (wanted == nullptr) return logger;
  for (const NamedLevel& known : kLevels) {
    if (known.name == wanted) {
      logger->set_level(known.level);
      return logger;
    }
  }
  logger->warn(
      "NEUROPOD_LOG_LEVEL is '{}', which is no level; INFO is used. Levels: TRACE, DEBUG, INFO, "
      "WARN, "
      "ERROR",
      wanted);
  return logger;
}

// Process-wide, so that every model and every thread writes whole lines to one place. Never
// destroyed: threads of frameworks may log while the process ends.
spdlog::logger& logger() {
  static spdlog::logger* const instance = make_logger().release();
  return *instance;
}

}  // namespace

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

void log(LogLevel level, std::string_view message, const char* file, int line) noexcept {
  try {
    logger().log(spdlog::source_loc{file, line, ""}, spdlog_level(level),
                 spdlog::string_view_t(message.data(), message.size()));
  } catch (...) {
  }
}

}  // namespace neuropod
