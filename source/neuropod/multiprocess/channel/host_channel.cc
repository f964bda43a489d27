#include "neuropod/multiprocess/channel/host_channel.hh"

#include <array>
#include <bit>
#include <new>
#include <utility>

#include "neuropod/base/tick_clock.hh"
#include "neuropod/multiprocess/channel/backlog.hh"
#include "neuropod/multiprocess/channel/futex.hh"

namespace neuropod::multiprocess {
namespace {

constexpr auto kSlice = std::chrono::milliseconds(50);
// What a worker writes where it mustn't, it needn't wake anybody for.
constexpr auto kLongestSleep = std::chrono::seconds(1);
// Nobody wakes us when the worker retires a slot.
constexpr auto kLookForRetired = std::chrono::milliseconds(5);
constexpr int kMostMarks = 64;
constexpr uint32_t kSpinsBetweenClocks = 256;
constexpr uint32_t kSpinsBetweenQuestions = 1 << 16;
static_assert(kNumSlots == 64, "sets of slots are 64-bit masks");

constexpr uint64_t bit(uint32_t slot) { return uint64_t{1} << slot; }

// What a worker that wrote where it mustn't has left there ends waits, too. Bounded, because a
// child that it forked may still write.
void mark_lost(CallSlot& slot) {
  for (int attempt = 0; attempt < kMostMarks; ++attempt) {
    const CallState now = slot.state.load(std::memory_order_seq_cst);
    switch (now) {
      case CallState::kDone:     // its reply is whole
      case CallState::kRetired:  // it was given up, which its caller may not have seen yet
      case CallState::kLostWaiting:
      case CallState::kLostStarted:
        return;
      case CallState::kSubmitted:
      case CallState::kWithdrawn:
        if (move_state(slot, now, CallState::kLostWaiting)) return;
        break;
      default:
        if (move_state(slot, now, CallState::kLostStarted)) return;
    }
  }
}

uint32_t word(CallState state) { return static_cast<uint32_t>(state); }

}  // namespace

// Everything the host believes; nothing of it lies in shared memory.
struct HostChannel::State {
  explicit State(RuntimeOptions::Spin spin) : policy(SpinPolicy::Side::kHost, spin) {}

  SpinPolicy policy;
  std::atomic<uint64_t> free{~uint64_t{0}};
  std::array<std::atomic<uint64_t>, kNumSlots> uses{};
  std::array<std::atomic<bool>, kNumSlots> worker_slept{};  // when the call was submitted
  std::array<std::atomic<bool>, kNumSlots> cancelling{};    // somebody has asked since
  std::atomic<bool> lost{false};

  // For wait_for_slot().
  std::atomic<uint32_t> freed{0};
  std::atomic<uint32_t> waiting{0};

  Backlog released_outputs;

  void tell_waiting() {
    freed.fetch_add(1, std::memory_order_seq_cst);
    if (waiting.load(std::memory_order_seq_cst) != 0) futex_wake(&freed, kNumSlots);
  }
};

HostChannel::HostChannel(std::shared_ptr<Arena> arena, RuntimeOptions::Spin spin)
    : arena_(std::move(arena)),
      layout_(new (arena_->data()) ChannelLayout),
      state_(std::make_unique<State>(spin)) {
  layout_->submitted.clear();
  layout_->released_outputs.clear();
  layout_->released_inputs.clear();
  layout_->host.cpu.store(~uint32_t{0});
  layout_->worker.cpu.store(~uint32_t{0});
  layout_->num_slots.store(kNumSlots);
  layout_->version.store(kChannelVersion);
  layout_->magic.store(kChannelMagic, std::memory_order_release);
}

HostChannel::~HostChannel() = default;

std::optional<uint32_t> HostChannel::acquire() {
  State& state = *state_;
  if (state.lost.load(std::memory_order_relaxed)) return std::nullopt;
  uint64_t free = state.free.load(std::memory_order_acquire);
  while (free != 0) {
    const auto index = static_cast<uint32_t>(std::countr_zero(free));
    if (!state.free.compare_exchange_weak(free, free & ~bit(index), std::memory_order_acq_rel)) {
      continue;
    }
    slot(index).state.store(CallState::kFilling, std::memory_order_relaxed);
    state.cancelling[index].store(false, std::memory_order_relaxed);
    return index;
  }
  return std::nullopt;
}

void HostChannel::wait_for_slot(Clock::time_point until) {
  State& state = *state_;
  const uint32_t seen = state.freed.load(std::memory_order_seq_cst);
  state.waiting.fetch_add(1, std::memory_order_seq_cst);
  if (state.free.load(std::memory_order_seq_cst) == 0 && !lost()) {
    futex_wait(&state.freed, seen, std::min(until, Clock::now() + kLookForRetired));
  }
  state.waiting.fetch_sub(1, std::memory_order_seq_cst);
}

bool HostChannel::submit(uint32_t index, CallKind kind) {
  CallSlot& slot = this->slot(index);
  slot.kind.store(static_cast<uint32_t>(kind), std::memory_order_relaxed);
  slot.sleeping.store(0, std::memory_order_relaxed);
  slot.started_at.store(0, std::memory_order_relaxed);
  slot.finished_at.store(0, std::memory_order_relaxed);
  slot.submitted_at.store(TickClock::now(), std::memory_order_relaxed);
  if (!move_state(slot, CallState::kFilling, CallState::kSubmitted)) {
    // Cancelled meanwhile, or the channel was lost; no worker has seen it.
    if (!move_state(slot, CallState::kWithdrawn, CallState::kRetired)) {
      slot.state.store(CallState::kLostWaiting, std::memory_order_seq_cst);
    }
    return true;
  }
  // Only a worker that writes where it mustn't can make it full.
  const bool pushed = layout_->submitted.push(index);
  if (!pushed) lose();
  publish_cpu(layout_->host);
  EventCount& submissions = layout_->submissions;
  submissions.events.fetch_add(1, std::memory_order_seq_cst);
  const bool sleeps = submissions.sleepers.load(std::memory_order_seq_cst) != 0;
  state_->worker_slept[index].store(sleeps, std::memory_order_relaxed);
  if (sleeps) {
    // Where it ran before says nothing about where it wakes up.
    layout_->worker.cpu.store(~uint32_t{0}, std::memory_order_relaxed);
    futex_wake(&submissions.events, 1);
  }
  if (state_->lost.load(std::memory_order_seq_cst)) {
    move_state(slot, CallState::kSubmitted, CallState::kLostWaiting);
  }
  state_->released_outputs.flush(layout_->released_outputs);
  return pushed;
}

HostChannel::Outcome HostChannel::wait(uint32_t index, std::optional<Clock::time_point> until,
                                       bool (*interrupted)(void*), void* context) {
  CallSlot& slot = this->slot(index);
  const auto end_of = [&](CallState now) -> std::optional<Outcome> {
    switch (now) {
      case CallState::kDone:
        return Outcome::kDone;
      case CallState::kSubmitted:
      case CallState::kRunning:
        return std::nullopt;
      case CallState::kWithdrawn:
      case CallState::kRetired:
        if (state_->cancelling[index].load(std::memory_order_seq_cst)) return Outcome::kWithdrawn;
        break;
      case CallState::kLostWaiting:
        if (lost()) return Outcome::kLostWaiting;
        break;
      default:
        break;
    }
    // Nobody mends what a dead worker has left.
    return lost() ? Outcome::kLostStarted : Outcome::kBroken;
  };

  const uint64_t begin = TickClock::now();
  SpinPolicy::Wait waiting(state_->policy, layout_->host, layout_->worker,
                           state_->worker_slept[index].load(std::memory_order_relaxed));
  uint32_t spins = 0;
  do {
    const CallState now = slot.state.load(std::memory_order_acquire);
    if (const auto outcome = end_of(now)) {
      waiting.succeeded();
      state_->policy.took(TickClock::now() - begin);
      return *outcome;
    }
    if (++spins % kSpinsBetweenClocks == 0) {
      if (until && Clock::now() >= *until) return Outcome::kLate;
      if (spins % kSpinsBetweenQuestions == 0 && interrupted != nullptr && interrupted(context)) {
        return Outcome::kInterrupted;
      }
    }
  } while (waiting.spin());

  for (;;) {
    slot.sleeping.store(1, std::memory_order_seq_cst);
    const CallState now = slot.state.load(std::memory_order_seq_cst);
    if (const auto outcome = end_of(now)) {
      slot.sleeping.store(0, std::memory_order_relaxed);
      state_->policy.took(TickClock::now() - begin);
      return *outcome;
    }
    const Clock::time_point time = Clock::now();
    if (until && time >= *until) return Outcome::kLate;
    Clock::time_point wake_at = time + (interrupted != nullptr ? kSlice : kLongestSleep);
    if (until) wake_at = std::min(wake_at, *until);
    futex_wait(&slot.state, word(now), wake_at);
    if (interrupted != nullptr && interrupted(context)) {
      if (const auto outcome = end_of(slot.state.load(std::memory_order_seq_cst))) return *outcome;
      return Outcome::kInterrupted;
    }
  }
}

bool HostChannel::withdraw(uint32_t index) {
  return move_state(slot(index), CallState::kSubmitted, CallState::kWithdrawn);
}

bool HostChannel::abandon(uint32_t index) {
  return move_state(slot(index), CallState::kRunning, CallState::kAbandoned);
}

bool HostChannel::cancel(uint32_t index) {
  state_->cancelling[index].store(true, std::memory_order_seq_cst);
  if (move_state(slot(index), CallState::kFilling, CallState::kWithdrawn)) return true;
  if (!move_state(slot(index), CallState::kSubmitted, CallState::kWithdrawn)) return false;
  futex_wake(&slot(index).state, 1);
  return true;
}

uint64_t HostChannel::use_of(uint32_t index) const noexcept {
  return state_->uses[index].load(std::memory_order_acquire);
}

bool HostChannel::is_finished(uint32_t index, uint64_t use) const noexcept {
  const CallState now = slot(index).state.load(std::memory_order_acquire);
  return use_of(index) != use || now == CallState::kRetired || now == CallState::kLostWaiting ||
         now == CallState::kLostStarted;
}

void HostChannel::release(uint32_t index) {
  state_->uses[index].fetch_add(1, std::memory_order_release);
  slot(index).state.store(CallState::kFree, std::memory_order_relaxed);
  state_->free.fetch_or(bit(index), std::memory_order_seq_cst);
  if (state_->waiting.load(std::memory_order_seq_cst) != 0) state_->tell_waiting();
}

void HostChannel::release_output(uint64_t offset) {
  if (!lost()) state_->released_outputs.push(layout_->released_outputs, offset);
}

void HostChannel::lose() {
  state_->lost.store(true, std::memory_order_seq_cst);
  for (CallSlot& slot : layout_->slots) {
    mark_lost(slot);
    futex_wake(&slot.state, 1);  // whatever the worker has left there
  }
  state_->tell_waiting();
}

bool HostChannel::lost() const noexcept { return state_->lost.load(std::memory_order_seq_cst); }

uint32_t HostChannel::calls_in_flight() const noexcept {
  return static_cast<uint32_t>(std::popcount(~state_->free.load(std::memory_order_relaxed)));
}

}  // namespace neuropod::multiprocess
