#include "neuropod/base/logging.hh"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <strings.h>

#include <chrono>
#include <string>

#include <fmt/format.h>

#include "neuropod/base/error.hh"
#include "neuropod/bindings/python/callbacks.hh"
#include "neuropod/bindings/python/module.hh"

namespace neuropod::python {
namespace {

constexpr LogLevel kLevels[] = {LogLevel::kTrace, LogLevel::kDebug, LogLevel::kInfo,
                                LogLevel::kWarn, LogLevel::kError};

LogLevel level_named(const std::string& name) {
  for (const LogLevel level : kLevels) {
    if (strcasecmp(to_string(level), name.c_str()) == 0) return level;
  }
  throw_error(
      ErrorCode::kInvalidArgument,
      fmt::format("'{}' is no log level; there are: TRACE, DEBUG, INFO, WARN, ERROR", name));
}

LogFormat format_named(const std::string& name) {
  if (strcasecmp("text", name.c_str()) == 0) return LogFormat::kText;
  if (strcasecmp("json", name.c_str()) == 0) return LogFormat::kJson;
  throw_error(ErrorCode::kInvalidArgument,
              fmt::format("'{}' is no log format; there are: text, json", name));
}

nb::tuple arguments_of(const LogLine& line) {
  const std::chrono::duration<double> since_epoch = line.time.time_since_epoch();
  return nb::make_tuple(to_string(line.level),
                        lenient_str(line.message.data(), line.message.size()), line.file, line.line,
                        since_epoch.count());
}

void set_sink(nb::handle callable) {
  if (callable.is_none()) {
    set_log_sink(nullptr);
    return;
  }
  const Callback callback(callable, "log sink");
  set_log_sink([callback](const LogLine& line) { callback([&] { return arguments_of(line); }); });
}

}  // namespace

void bind_logging(nb::module_& module) {
  module.def("set_log_sink", &set_sink, nb::arg("sink").none(),
             nb::sig("def set_log_sink(sink: collections.abc.Callable[[str, str, str, int, float], "
                     "object] | None) -> None"),
             "`neuropod.set_log_sink` documents it.");
  module.def(
      "set_log_level", [](const std::string& level) { set_log_level(level_named(level)); },
      nb::arg("level"), "`neuropod.set_log_level` documents it.");
  module.def(
      "set_log_format", [](const std::string& format) { set_log_format(format_named(format)); },
      nb::arg("format"), "`neuropod.set_log_format` documents it.");
}

}  // namespace neuropod::python
