#include "neuropod/multiprocess/supervisor_loop.hh"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "neuropod/base/error.hh"
#include "neuropod/multiprocess/process_local.hh"
#include "neuropod/multiprocess/worker_output.hh"

namespace neuropod::multiprocess {

struct SupervisorLoop::State {
  int epoll = -1;
  int wake = -1;

  std::mutex mutex;
  std::vector<std::function<void()>> posted;  // guarded by `mutex`

  // The loop thread's.
  Id last_id = 0;
  struct Watched {
    int descriptor;
    std::shared_ptr<std::function<void()>> readable;
  };
  std::map<Id, Watched> watched;
  std::map<std::pair<Clock::time_point, Id>, std::function<void()>> timers;
};

namespace {

void run_guarded(const std::function<void()>& task) {
  try {
    task();
  } catch (const std::exception& exception) {
    log_later(LogLevel::kError, fmt::format("while supervising workers: {}", exception.what()));
  }
}

}  // namespace

SupervisorLoop& SupervisorLoop::instance() {
  // Process-wide, and a forked child's own; never destroyed: see State.
  static auto* const loops = new ProcessLocal<SupervisorLoop>(
      [] { return std::unique_ptr<SupervisorLoop>(new SupervisorLoop); });
  return loops->get();
}

SupervisorLoop::SupervisorLoop() : state_(new State) {
  const auto close_all = [this] {
    ::close(state_->epoll);
    ::close(state_->wake);
    delete state_;
  };
  state_->epoll = ::epoll_create1(EPOLL_CLOEXEC);
  state_->wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = 0;
  if (state_->epoll < 0 || state_->wake < 0 ||
      ::epoll_ctl(state_->epoll, EPOLL_CTL_ADD, state_->wake, &event) != 0) {
    const int failure = errno;
    close_all();
    throw_error(
        ErrorCode::kUnavailable,
        fmt::format("can't supervise workers: {}; raise the limit of open files (ulimit -n) or "
                    "close some",
                    std::strerror(failure)));
  }
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread thread([this] { run(); });
    ::pthread_setname_np(thread.native_handle(), "neuropod-sup");
    thread.detach();
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    close_all();
    throw_error(ErrorCode::kUnavailable, "can't supervise workers: the system has no thread left");
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void SupervisorLoop::post(std::function<void()> task) {
  {
    std::lock_guard lock(state_->mutex);
    state_->posted.push_back(std::move(task));
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(state_->wake, &one, sizeof one);
}

SupervisorLoop::Id SupervisorLoop::watch(int descriptor, std::function<void()> readable) {
  const Id id = ++state_->last_id;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id;
  if (::epoll_ctl(state_->epoll, EPOLL_CTL_ADD, descriptor, &event) != 0) {
    throw_error(ErrorCode::kUnavailable,
                fmt::format("can't watch a worker: {}", std::strerror(errno)));
  }
  state_->watched[id] = {descriptor, std::make_shared<std::function<void()>>(std::move(readable))};
  return id;
}

void SupervisorLoop::unwatch(Id watch) {
  const auto found = state_->watched.find(watch);
  if (found == state_->watched.end()) return;
  ::epoll_ctl(state_->epoll, EPOLL_CTL_DEL, found->second.descriptor, nullptr);
  state_->watched.erase(found);
}

SupervisorLoop::Id SupervisorLoop::at(Clock::time_point time, std::function<void()> task) {
  const Id id = ++state_->last_id;
  state_->timers.emplace(std::pair(time, id), std::move(task));
  return id;
}

void SupervisorLoop::cancel(Id timer) {
  const auto found =
      std::find_if(state_->timers.begin(), state_->timers.end(),
                   [timer](const auto& entry) { return entry.first.second == timer; });
  if (found != state_->timers.end()) state_->timers.erase(found);
}

void SupervisorLoop::run() {
  std::array<epoll_event, 64> events{};
  for (;;) {
    int timeout = -1;
    if (!state_->timers.empty()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(
          state_->timers.begin()->first.first - Clock::now());
      timeout = static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1'000'000));
    }
    const int count = ::epoll_wait(state_->epoll, events.data(), int(events.size()), timeout);
    for (int i = 0; i < count; ++i) {
      if (events[size_t(i)].data.u64 == 0) {
        uint64_t ignored = 0;
        [[maybe_unused]] const ssize_t size = ::read(state_->wake, &ignored, sizeof ignored);
        continue;
      }
      // An earlier one of these may have ended this watch.
      const auto found = state_->watched.find(events[size_t(i)].data.u64);
      if (found == state_->watched.end()) continue;
      const auto readable = found->second.readable;
      run_guarded(*readable);
    }
    std::vector<std::function<void()>> posted;
    {
      std::lock_guard lock(state_->mutex);
      posted.swap(state_->posted);
    }
    for (const auto& task : posted) run_guarded(task);
    while (!state_->timers.empty() && state_->timers.begin()->first.first <= Clock::now()) {
      const auto task = std::move(state_->timers.begin()->second);
      state_->timers.erase(state_->timers.begin());
      run_guarded(task);
    }
  }
}

}  // namespace neuropod::multiprocess
