#include "neuropod/base/log/json_formatter.hh"

#include <time.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "neuropod/base/logging.hh"

namespace neuropod {
namespace {

std::string utc(std::chrono::system_clock::time_point time) {
  const auto microseconds =
      std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
  const time_t seconds = microseconds / 1'000'000;
  tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     microseconds % 1'000'000);
}

const char* level_name(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
      return to_string(LogLevel::kTrace);
    case spdlog::level::debug:
      return to_string(LogLevel::kDebug);
    case spdlog::level::info:
      return to_string(LogLevel::kInfo);
    case spdlog::level::warn:
      return to_string(LogLevel::kWarn);
    default:
      return to_string(LogLevel::kError);
  }
}

}  // namespace

void JsonLogFormatter::format(const spdlog::details::log_msg& line, spdlog::memory_buf_t& text) {
  nlohmann::ordered_json json;
  json["time"] = utc(line.time);
  json["level"] = level_name(line.level);
  json["message"] = std::string(line.payload.data(), line.payload.size());
  if (!line.source.empty()) {
    json["file"] = line.source.filename;
    json["line"] = line.source.line;
  }
  json["thread"] = line.thread_id;
  json["process"] = getpid();
  const std::string dumped =
      json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  text.append(dumped.data(), dumped.data() + dumped.size());
}

std::unique_ptr<spdlog::formatter> JsonLogFormatter::clone() const {
  return std::make_unique<JsonLogFormatter>();
}

}  // namespace neuropod
