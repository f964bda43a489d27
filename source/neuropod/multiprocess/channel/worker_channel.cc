#include "neuropod/multiprocess/channel/worker_channel.hh"

#include <limits>
#include <mutex>
#include <utility>

#include "neuropod/base/error.hh"
#include "neuropod/base/tick_clock.hh"
#include "neuropod/multiprocess/channel/backlog.hh"
#include "neuropod/multiprocess/channel/futex.hh"

namespace neuropod::multiprocess {
struct WorkerChannel::State {
  std::atomic<bool> stopped{false};

  // One executor pops at a time. One that is preempted between claiming a cell and freeing it would
  // be overtaken by others, until a push finds its cell taken and the queue full.
  std::mutex popping;

  Backlog released_inputs;
};

WorkerChannel::WorkerChannel(std::shared_ptr<Arena> arena)
    : arena_(std::move(arena)),
      layout_(reinterpret_cast<ChannelLayout*>(arena_->data())),
      state_(std::make_unique<State>()) {
  if (arena_->size() < sizeof(ChannelLayout) ||
      layout_->magic.load(std::memory_order_acquire) != kChannelMagic ||
      layout_->version.load() != kChannelVersion || layout_->num_slots.load() != kNumSlots) {
    throw_error(ErrorCode::kInvalidArgument,
                "the shared memory that the host sent holds no channel of this version");
  }
}

WorkerChannel::~WorkerChannel() = default;

std::optional<uint32_t> WorkerChannel::take(SpinPolicy* executor) {
  const auto pop = [&](uint32_t* index) {
    if (layout_->submitted.looks_empty()) return false;
    std::lock_guard lock(state_->popping);
    return layout_->submitted.pop(index);
  };
  const auto next = [&]() -> std::optional<uint32_t> {
    uint32_t index = 0;
    while (pop(&index)) {
      if (index >= kNumSlots) continue;
      CallSlot& slot = this->slot(index);
      if (move_state(slot, CallState::kSubmitted, CallState::kRunning)) {
        slot.started_at.store(TickClock::now(), std::memory_order_relaxed);
        publish_cpu(layout_->worker);
        return index;
      }
      move_state(slot, CallState::kWithdrawn, CallState::kRetired);
    }
    return std::nullopt;
  };

  EventCount& submissions = layout_->submissions;
  // A push that overtook another one woke an executor before there was anything
  // to find, so the one wake of the slower push can stand for two calls.
  const auto pass_on = [&] {
    if (!layout_->submitted.looks_empty() &&
        submissions.sleepers.load(std::memory_order_seq_cst) != 0) {
      futex_wake(&submissions.events, 1);
    }
  };
  while (!state_->stopped.load(std::memory_order_seq_cst)) {
    {
      SpinPolicy::Wait spinning(*executor, layout_->worker, layout_->host, false);
      do {
        if (const auto index = next()) {
          spinning.succeeded();
          pass_on();
          return index;
        }
      } while (!state_->stopped.load(std::memory_order_relaxed) && spinning.spin());
    }
    submissions.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t seen = submissions.events.load(std::memory_order_seq_cst);
    const auto index = next();
    if (!index && !state_->stopped.load(std::memory_order_seq_cst)) {
      futex_wait(&submissions.events, seen, std::nullopt);
    }
    submissions.sleepers.fetch_sub(1, std::memory_order_seq_cst);
    if (index) {
      pass_on();
      return index;
    }
  }
  return std::nullopt;
}

bool WorkerChannel::finish(uint32_t index, SpinPolicy* executor) {
  CallSlot& slot = this->slot(index);
  slot.finished_at.store(TickClock::now(), std::memory_order_relaxed);
  publish_cpu(layout_->worker);
  state_->released_inputs.flush(layout_->released_inputs);
  if (move_state(slot, CallState::kRunning, CallState::kDone)) {
    if (slot.sleeping.load(std::memory_order_seq_cst) != 0) {
      futex_wake(&slot.state, 1);
    } else {
      executor->expect_soon();
    }
    return true;
  }
  return false;
}

void WorkerChannel::retire(uint32_t index) noexcept {
  slot(index).state.store(CallState::kRetired, std::memory_order_seq_cst);
}

void WorkerChannel::release_input(uint64_t token) {
  state_->released_inputs.push(layout_->released_inputs, token);
}

void WorkerChannel::stop() {
  state_->stopped.store(true, std::memory_order_seq_cst);
  layout_->submissions.events.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(&layout_->submissions.events, std::numeric_limits<int>::max());
}

}  // namespace neuropod::multiprocess
