#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "neuropod/base/logging.hh"

namespace neuropod::multiprocess {

/// What one worker prints: goes to this process's log, line by line, with the model's name; the
/// last lines are kept for the message about its death. The supervisor thread's.
class WorkerOutput {
 public:
  /// `name`: e.g. "model 'digits', worker 4711".
  explicit WorkerOutput(std::string name) : name_(std::move(name)) {}

  /// Reads what there is, without waiting, up to a bound. False: the other end is closed.
  bool drain(int descriptor);
  /// The unfinished line is one, too.
  void finish();

  /// The last lines, e.g. `; it printed last: "…"`; empty if it printed nothing.
  std::string last_lines() const;

 private:
  void add(std::string_view text);
  void end_line();

  const std::string name_;
  std::string line_;
  std::deque<std::string> last_;
};

/// Logs a line without waiting for whoever writes it. For what the supervisor's thread has to say:
/// a program's sink may block (Python's waits for the interpreter's lock).
void log_later(LogLevel level, std::string text, const char* file = __builtin_FILE(),
               int line = __builtin_LINE());

}  // namespace neuropod::multiprocess
