#include "neuropod/backends/metrics_observer.hh"

#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "neuropod/base/fork_safe_mutex.hh"
#include "neuropod/base/logging.hh"

namespace neuropod {
namespace internal {

std::atomic<bool> has_metrics_observer{false};

}  // namespace internal

namespace {

struct Observer {
  MetricsObserver function;
  std::atomic<bool> told_of_exception{false};
};

// Process-wide, because a host feeds one system of its own with all its models. Never destroyed:
// calls may run while the process ends.
struct Current {
  ForkSafeMutex mutex;  // guards `observer`
  std::shared_ptr<Observer> observer;
};

Current& current() {
  static auto* const instance = new Current;
  return *instance;
}

thread_local bool inside_observer = false;

void log_exception(Observer& observer, const char* what) {
  if (observer.told_of_exception.exchange(true)) return;
  log(LogLevel::kError,
      fmt::format("the metrics observer threw: {}; calls go on, and this is said once", what));
}

}  // namespace

void set_metrics_observer(MetricsObserver observer) {
  std::shared_ptr<Observer> next;
  if (observer) {
    next = std::make_shared<Observer>();
    next->function = std::move(observer);
  }
  const bool present = next != nullptr;
  {
    std::lock_guard lock(current().mutex);
    current().observer.swap(next);
    internal::has_metrics_observer = present;
  }
  // The old one is freed here, without the lock: its destructor is the host's code.
}

void internal::tell_metrics_observer(const CallRecord& record) noexcept {
  if (inside_observer) return;
  std::shared_ptr<Observer> observer;
  {
    std::lock_guard lock(current().mutex);
    observer = current().observer;
  }
  if (observer == nullptr) return;
  inside_observer = true;
  try {
    try {
      observer->function(record);
    } catch (const std::exception& exception) {
      log_exception(*observer, exception.what());
    } catch (...) {
      log_exception(*observer, "something that is no std::exception");
    }
  } catch (...) {
  }
  inside_observer = false;
}

}  // namespace neuropod
