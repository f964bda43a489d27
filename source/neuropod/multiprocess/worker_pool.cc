#include "neuropod/multiprocess/worker_pool.hh"

#include <algorithm>
#include <utility>

#include "neuropod/base/error.hh"

namespace neuropod::multiprocess {
namespace {

using State = ManagedWorker::State;

constexpr auto kSlice = std::chrono::milliseconds(50);

}  // namespace

WorkerPool::WorkerPool(const WorkerSpec& spec, int count)
    : startup_timeout_(spec.options.ope_options.startup_timeout),
      changes_(std::make_shared<Changes>()) {
  for (int i = 0; i < count; ++i) {
    workers_.push_back(std::make_unique<ManagedWorker>(spec, [changes = changes_] {
      {
        std::lock_guard lock(changes->mutex);
        ++changes->count;
      }
      changes->condition.notify_all();
    }));
  }
}

WorkerPool::~WorkerPool() = default;

void WorkerPool::start() {
  for (const auto& worker : workers_) worker->start();
}

void WorkerPool::wait_until_loaded(const std::function<bool()>& interrupted) {
  const auto settled = [this] {
    return std::all_of(workers_.begin(), workers_.end(), [](const auto& worker) {
      const State state = worker->state();
      return state == State::kReady || state == State::kFailed;
    });
  };
  const auto failed = [this] {
    return std::find_if(workers_.begin(), workers_.end(),
                        [](const auto& worker) { return worker->state() == State::kFailed; });
  };
  const auto end_with = [this](const Error& error) {
    for (const auto& worker : workers_) worker->stop();
    throw error;
  };
  {
    // Each start has its own time limit, so this ends.
    std::unique_lock lock(changes_->mutex);
    while (!changes_->condition.wait_for(lock, kSlice,
                                         [&] { return settled() || failed() != workers_.end(); })) {
      if (!interrupted) continue;
      lock.unlock();
      if (interrupted()) {
        end_with(Error(ErrorCode::kCancelled, "loading was interrupted; its worker is ended"));
      }
      lock.lock();
    }
  }
  const auto first = failed();
  if (first != workers_.end()) end_with((*first)->problem());
  for (const auto& worker : workers_) {
    if (const auto incarnation = worker->current()) reply_ = incarnation->reply;
  }
}

std::optional<WorkerPool::Choice> WorkerPool::choose(std::optional<Clock::time_point> until,
                                                     const std::function<bool()>& interrupted) {
  const Clock::time_point begin = Clock::now();
  const uint32_t turn = workers_.size() > 1 ? turn_.fetch_add(1, std::memory_order_relaxed) : 0;
  for (;;) {
    const uint64_t seen = changes_->count.load();
    Choice best;
    uint32_t fewest = ~uint32_t{0};
    bool starting = false;
    const ManagedWorker* unavailable = nullptr;
    for (size_t i = 0; i < workers_.size(); ++i) {
      ManagedWorker& worker = *workers_[(i + turn) % workers_.size()];
      if (auto incarnation = worker.current();
          incarnation != nullptr && !incarnation->channel->lost()) {
        const uint32_t calls = workers_.size() == 1 ? 0 : incarnation->channel->calls_in_flight();
        if (calls < fewest) {
          fewest = calls;
          best = {&worker, std::move(incarnation)};
        }
        continue;
      }
      const State state = worker.state();
      starting |= state == State::kStarting || state == State::kReady;
      if (state == State::kBackingOff || state == State::kFailed || state == State::kStopped) {
        unavailable = &worker;
      }
    }
    if (best.worker != nullptr) return best;
    if (!starting && unavailable != nullptr) throw unavailable->problem();
    const Clock::time_point now = Clock::now();
    if ((until && now >= *until) || (interrupted && interrupted())) return std::nullopt;
    if (now - begin > startup_timeout_) {
      throw_error(ErrorCode::kUnavailable,
                  "no worker became ready within ope_options.startup_timeout");
    }
    Clock::time_point wake = now + kSlice;
    if (until) wake = std::min(wake, *until);
    std::unique_lock lock(changes_->mutex);
    changes_->condition.wait_until(lock, wake, [&] { return changes_->count != seen; });
  }
}

void WorkerPool::trim() {
  for (const auto& worker : workers_) worker->trim();
}

std::vector<WorkerInfo> WorkerPool::info() const {
  std::vector<WorkerInfo> infos;
  for (const auto& worker : workers_) infos.push_back(worker->info());
  return infos;
}

uint64_t WorkerPool::deaths() const {
  uint64_t sum = 0;
  for (const auto& worker : workers_) sum += worker->deaths();
  return sum;
}

uint64_t WorkerPool::restarts() const {
  uint64_t sum = 0;
  for (const auto& worker : workers_) sum += worker->restarts();
  return sum;
}

}  // namespace neuropod::multiprocess
