#include "neuropod/multiprocess/worker/worker_log.hh"

#include <unistd.h>

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "neuropod/base/logging.hh"

namespace neuropod::multiprocess {

void log_for_host() {
  set_log_sink([](const LogLine& line) {
    std::string text(line.message);
    std::replace(text.begin(), text.end(), '\n', '\x03');
    const std::string marked = fmt::format("\x01{}\x02{}:{}\x02{}\n", to_string(line.level)[0],
                                           line.file, line.line, text);
    // One write, so that lines of several threads don't mix (up to the size of the pipe's buffer).
    size_t written = 0;
    while (written < marked.size()) {
      const ssize_t count =
          ::write(STDERR_FILENO, marked.data() + written, marked.size() - written);
      if (count <= 0) return;
      written += static_cast<size_t>(count);
    }
  });
}

}  // namespace neuropod::multiprocess
