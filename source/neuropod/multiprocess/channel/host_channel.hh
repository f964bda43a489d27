#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "neuropod/multiprocess/channel/channel_layout.hh"
#include "neuropod/multiprocess/channel/spin_policy.hh"
#include "neuropod/multiprocess/shm/arena.hh"

namespace neuropod::multiprocess {

/// The host's end of a channel to one worker. Any number of threads take a slot each and wait for
/// it by themselves: there is no reader thread.
///
///     const uint32_t slot = *channel.acquire();
///     fill(channel.body(slot)); channel.submit(slot, …);
///     switch (channel.wait(slot, deadline, …)) …
///     channel.release(slot);
///
/// **Ownership**: keeps the arena of the channel. **Thread safety**: thread-safe; a slot belongs to
/// the thread that acquired it until release(), withdraw() or abandon().
class HostChannel {
 public:
  using Clock = std::chrono::steady_clock;

  /// Lays the channel out in `arena`, which nobody else has seen yet.
  HostChannel(std::shared_ptr<Arena> arena, RuntimeOptions::Spin spin);
  ~HostChannel();
  HostChannel(const HostChannel&) = delete;
  HostChannel& operator=(const HostChannel&) = delete;

  /// The bytes an arena for a channel needs.
  static constexpr size_t arena_bytes() { return sizeof(ChannelLayout); }

  ChannelLayout& layout() const noexcept { return *layout_; }
  CallSlot& slot(uint32_t index) const noexcept { return layout_->slots[index]; }

  /// A free slot, now in state filling; nothing if all are busy or the channel is lost. To wait for
  /// one, see wait_for_slot().
  std::optional<uint32_t> acquire();

  /// Waits until acquire() may succeed, the channel is lost, or `until`. May return early.
  void wait_for_slot(Clock::time_point until);

  /// Hands the slot, whose body and spill are filled, to the worker and wakes it if it sleeps.
  /// False: the worker has written into the queue what it mustn't, so nothing more can be handed to
  /// it; the channel is lost now, and the slot with it.
  bool submit(uint32_t slot, CallKind kind);

  /// How a wait ended.
  enum class Outcome {
    kDone,         ///< the reply is in the slot; release() it
    kLate,         ///< `until` came
    kInterrupted,  ///< `interrupted` said so; the slot is still submitted or running
    kWithdrawn,    ///< cancel() took it back; the slot isn't the caller's any more
    kLostWaiting,  ///< the worker died; the call had not started
    kLostStarted,  ///< the worker died during the call
    kBroken,       ///< the worker lives, and has written a state that it mustn't
  };

  /// Waits for a submitted slot: spins as the policy allows, then sleeps. `interrupted`, if not
  /// null, is asked whenever a signal came and at least every 50 ms; `true` ends the wait.
  Outcome wait(uint32_t slot, std::optional<Clock::time_point> until,
               bool (*interrupted)(void*) = nullptr, void* context = nullptr);

  /// Takes back a call that the worker hasn't begun. True: it never will be begun, and the slot
  /// isn't the caller's any more. False: it has begun (or is done, or lost), and the slot is still
  /// the caller's.
  bool withdraw(uint32_t slot);

  /// Gives up a call that runs. True: what it refers to must stay as it is until is_finished(), and
  /// the slot isn't the caller's any more. False: it has just ended (or was lost); the slot is
  /// still the caller's.
  bool abandon(uint32_t slot);

  /// From another thread: takes back a call that hasn't begun, whose wait() then returns
  /// kWithdrawn. False: it has begun. The caller makes sure that the slot is still in the same use.
  bool cancel(uint32_t slot);

  /// Counts the uses of a slot; constant between acquire() and release().
  uint64_t use_of(uint32_t slot) const noexcept;

  /// Whether the worker is through with an abandoned or withdrawn slot, which then needs a
  /// release(). `use`: that of the time when it was given up.
  bool is_finished(uint32_t slot, uint64_t use) const noexcept;

  /// Gives a slot back: one whose reply was read, that was never submitted, or that is finished
  /// since it was given up.
  void release(uint32_t slot);

  /// Tells the worker that an output block isn't used any more. Never blocks: what doesn't fit
  /// waits for the next call or release.
  void release_output(uint64_t offset);

  /// A token of an input that a model has let go of; false if there is none.
  bool next_released_input(uint64_t* token) { return layout_->released_inputs.pop(token); }

  /// The worker is dead: ends every wait, now and later. Once; from any thread.
  void lose();
  bool lost() const noexcept;

  /// Slots that are submitted or running now.
  uint32_t calls_in_flight() const noexcept;

 private:
  struct State;
  const std::shared_ptr<Arena> arena_;
  ChannelLayout* const layout_;
  const std::unique_ptr<State> state_;
};

}  // namespace neuropod::multiprocess
