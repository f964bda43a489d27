#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "neuropod/multiprocess/channel/bounded_queue.hh"

namespace neuropod::multiprocess {

/// What lies in the memory of a channel, which one host and one worker share. docs/formats/
/// worker_channel.md describes it. Everything in it may be changed by the peer at any time: read a
/// number once into a local, then check it.

constexpr uint32_t kChannelMagic = 0x4e50434c;
/// Raised with every change of this file or of call_message.hh.
constexpr uint32_t kChannelVersion = 1;

/// Calls of one host that a worker knows of at once, running and waiting.
constexpr uint32_t kNumSlots = 64;
/// Bytes of a request or a reply that fit into its slot; longer ones spill into a block.
constexpr size_t kSlotBodyBytes = 16 << 10;
/// Outputs up to this many bytes travel in the slot.
constexpr size_t kInlineOutputBytes = 4 << 10;

/// Where a call is. Only these moves are legal; (h): made by the host, (w): by the worker.
///
///     free → filling (h) → submitted (h) → running (w) → done (w) → free (h)
///                          submitted → withdrawn (h) → retired (w) → free (h)
///                                       running → abandoned (h) → retired (w) → free (h)
///     filling → free (h): the call couldn't be described
///     filling → withdrawn → retired → free (h): it was cancelled meanwhile; no worker sees it
///
/// submitted → running | withdrawn and running → done | abandoned are compare-and-swaps: one side
/// wins. Once the worker is dead the host owns every slot, marks the busy ones
/// lost (→ lost_waiting for submitted and withdrawn, → lost_started for running and abandoned) and
/// wakes whoever waits; such a channel is never used again.
enum class CallState : uint32_t {
  kFree,
  kFilling,
  kSubmitted,
  kRunning,
  kDone,
  kWithdrawn,
  kAbandoned,
  kRetired,
  kLostWaiting,
  kLostStarted,
};

enum class CallKind : uint32_t {
  kInfer,
  kReset,  ///< forget a stateful model's state; has no inputs and no outputs
};

/// One call.
struct alignas(64) CallSlot {
  std::atomic<CallState> state;    // a futex word
  std::atomic<uint32_t> sleeping;  // 1: a thread of the host sleeps on `state`
  std::atomic<uint32_t> kind;      // CallKind
  std::atomic<uint32_t> body_bytes;
  std::atomic<uint64_t> spill_offset;  // of a body that is longer than the slot's, in the input
  std::atomic<uint64_t> spill_bytes;   // arena (request) or output arena (reply); 0 bytes: none
  // TickClock::now(), which all processes of a machine share.
  std::atomic<uint64_t> submitted_at;
  std::atomic<uint64_t> started_at;
  std::atomic<uint64_t> finished_at;
  alignas(64) std::array<unsigned char, kSlotBodyBytes> body;
};

/// Makes one of the moves that either side may win. False: the other has.
inline bool move_state(CallSlot& slot, CallState from, CallState to) noexcept {
  return slot.state.compare_exchange_strong(from, to, std::memory_order_seq_cst);
}

/// A futex word that counts events, for the side that waits for any of them.
struct alignas(64) EventCount {
  std::atomic<uint32_t> events;
  std::atomic<uint32_t> sleepers;
};

/// Who runs where, for deciding whether to spin. ~0: nowhere yet.
struct alignas(64) Presence {
  std::atomic<uint32_t> cpu;
};

/// What `neuropod ps` reads out of a worker's memory. Texts end with a zero.
struct alignas(64) ChannelStatus {
  std::array<char, 128> model;
  std::array<char, 32> platform;
  std::array<char, 256> package;
  std::atomic<uint64_t> host_pid;
  std::atomic<uint64_t> worker_pid;
  std::atomic<uint64_t> started_at;    // seconds since the epoch
  std::atomic<uint32_t> restarts;      // of this worker of the model, so far
  std::atomic<uint32_t> ready;         // 1 once the model is loaded
  std::atomic<uint64_t> calls;         // finished
  std::atomic<uint64_t> input_bytes;   // the host's: live in the input arena
  std::atomic<uint64_t> output_bytes;  // the worker's: live in the output arena
};

struct ChannelLayout {
  std::atomic<uint32_t> magic;
  std::atomic<uint32_t> version;
  std::atomic<uint32_t> num_slots;

  ChannelStatus status;
  alignas(64) EventCount submissions;  // the worker's executors wait for it
  Presence host;
  Presence worker;

  /// Slot numbers, host → worker. A slot is in it at most once, so it is never full.
  BoundedQueue<uint32_t, 2 * kNumSlots> submitted;
  /// Offsets of output blocks that the host is done with, host → worker.
  BoundedQueue<uint64_t, 1024> released_outputs;
  /// Tokens of inputs that a model kept and has let go, worker → host; see InputKept.
  BoundedQueue<uint64_t, 1024> released_inputs;

  std::array<CallSlot, kNumSlots> slots;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(std::is_standard_layout_v<CallSlot>);

}  // namespace neuropod::multiprocess
