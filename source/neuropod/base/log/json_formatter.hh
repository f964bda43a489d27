#pragma once

#include <spdlog/formatter.h>

#include <memory>

namespace neuropod {

/// One JSON object per line: time (UTC, RFC 3339), level, message, file, line, thread, process.
/// Bytes of a message that aren't UTF-8 become U+FFFD.
class JsonLogFormatter : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& line, spdlog::memory_buf_t& text) override;
  std::unique_ptr<spdlog::formatter> clone() const override;
};

}  // namespace neuropod
