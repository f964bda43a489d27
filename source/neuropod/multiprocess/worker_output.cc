#include "neuropod/multiprocess/worker_output.hh"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "neuropod/base/logging.hh"
#include "neuropod/base/utf8.hh"
#include "neuropod/multiprocess/process_local.hh"

namespace neuropod::multiprocess {
namespace {

constexpr size_t kMostDrained = 64 << 10;  // at once, a full pipe: others want the supervisor, too
constexpr size_t kLongestLine = 64 << 10;
constexpr size_t kLastLines = 12;
constexpr size_t kLongestLastLine = 300;
constexpr size_t kMostQueued = 10'000;
constexpr size_t kMostQueuedBytes = 16 << 20;

struct Line {
  LogLevel level;
  std::string text;
  std::string file;
  int number;
};

// Hands lines to the log on a thread of its own: the program's sink may block (Python's waits for
// the interpreter's lock), and the supervisor must not. Process-wide, as the log is; never
// destroyed.
class LogForwarder {
 public:
  static LogForwarder& instance();

  void add(Line line) {
    std::lock_guard lock(mutex_);
    if (lines_.size() >= kMostQueued || bytes_ + line.text.size() > kMostQueuedBytes) {
      ++dropped_;
      return;
    }
    bytes_ += line.text.size();
    lines_.push_back(std::move(line));
    wake_.notify_one();
  }

 private:
  LogForwarder() {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread thread([this] { run(); });
    ::pthread_setname_np(thread.native_handle(), "neuropod-log");
    thread.detach();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return !lines_.empty() || dropped_ > 0; });
      std::deque<Line> lines = std::move(lines_);
      lines_.clear();
      bytes_ = 0;
      const uint64_t dropped = std::exchange(dropped_, 0);
      lock.unlock();
      for (const Line& line : lines) log(line.level, line.text, line.file.c_str(), line.number);
      if (dropped > 0) {
        log(LogLevel::kWarn,
            fmt::format("{} lines that workers printed were dropped: they came faster "
                        "than they could be written",
                        dropped));
      }
      lines.clear();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Line> lines_;
  size_t bytes_ = 0;  // of their texts
  uint64_t dropped_ = 0;
};

LogForwarder& LogForwarder::instance() {
  static auto* const forwarders = new ProcessLocal<LogForwarder>(
      [] { return std::unique_ptr<LogForwarder>(new LogForwarder); });
  return forwarders->get();
}

// A line of the worker's own log: \x01LEVEL\x02FILE:LINE\x02TEXT.
bool parse_marked(const std::string& line, Line* parsed) {
  if (line.size() < 3 || line[0] != '\x01' || line[2] != '\x02') return false;
  constexpr std::string_view kLevels = "TDIWE";
  const size_t level = kLevels.find(line[1]);
  const size_t end = line.find('\x02', 3);
  const size_t colon = line.rfind(':', end);
  if (level == std::string_view::npos || end == std::string::npos || colon == std::string::npos ||
      colon < 3) {
    return false;
  }
  parsed->level = static_cast<LogLevel>(level);
  parsed->file = line.substr(3, colon - 3);
  parsed->number = std::atoi(line.c_str() + colon + 1);
  parsed->text = line.substr(end + 1);
  std::replace(parsed->text.begin(), parsed->text.end(), '\x03', '\n');
  return true;
}

}  // namespace

bool WorkerOutput::drain(int descriptor) {
  std::array<char, 16 << 10> buffer;
  for (size_t drained = 0; drained < kMostDrained;) {
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count > 0) {
      add({buffer.data(), static_cast<size_t>(count)});
      drained += static_cast<size_t>(count);
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    return count < 0 && errno == EAGAIN;
  }
  return true;
}

void WorkerOutput::add(std::string_view text) {
  for (const char character : text) {
    if (character == '\n') {
      end_line();
    } else {
      line_ += character == '\0' ? ' ' : character;
      if (line_.size() >= kLongestLine) end_line();
    }
  }
}

void WorkerOutput::finish() {
  if (!line_.empty()) end_line();
}

void WorkerOutput::end_line() {
  Line line{LogLevel::kInfo, "", __FILE__, __LINE__};
  if (!parse_marked(line_, &line)) line.text = line_;
  line.text = valid_utf8(line.text);
  if (!line.text.empty()) {
    last_.push_back(valid_utf8(line.text.substr(0, kLongestLastLine)));
    if (last_.size() > kLastLines) last_.pop_front();
  }
  line.text = fmt::format("[{}] {}", name_, line.text);
  line_.clear();
  if (log_enabled(line.level)) LogForwarder::instance().add(std::move(line));
}

std::string WorkerOutput::last_lines() const {
  if (last_.empty()) return "";
  return fmt::format("; it printed last: \"{}\"", fmt::join(last_, "\n"));
}

void log_later(LogLevel level, std::string text, const char* file, int line) {
  if (log_enabled(level)) LogForwarder::instance().add({level, std::move(text), file, line});
}

}  // namespace neuropod::multiprocess
