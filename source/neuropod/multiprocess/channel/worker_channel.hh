#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "neuropod/multiprocess/channel/channel_layout.hh"
#include "neuropod/multiprocess/channel/spin_policy.hh"
#include "neuropod/multiprocess/shm/arena.hh"

namespace neuropod::multiprocess {

/// The worker's end of a channel. Its executor threads take calls by themselves.
///
/// **Thread safety**: thread-safe.
class WorkerChannel {
 public:
  /// Error(invalid_argument) if the arena holds no channel of this version.
  explicit WorkerChannel(std::shared_ptr<Arena> arena);
  ~WorkerChannel();

  ChannelLayout& layout() const noexcept { return *layout_; }
  CallSlot& slot(uint32_t index) const noexcept { return layout_->slots[index]; }

  /// Waits for a call and begins it: its slot is running now. Calls that were withdrawn are retired
  /// on the way. Nothing after stop(). `executor`: the waiting thread's own policy.
  std::optional<uint32_t> take(SpinPolicy* executor);

  /// Ends a call whose reply is in its slot, and wakes its caller. False: it was abandoned, nobody
  /// waits for the reply; retire() it when the slot says what the model has kept.
  /// `executor`: as take()'s.
  bool finish(uint32_t slot, SpinPolicy* executor);

  /// Ends an abandoned call. Of its reply the host reads only which inputs the model has kept.
  void retire(uint32_t slot) noexcept;

  /// Ends every take().
  void stop();

  /// An output block that the host is done with; false if there is none.
  bool next_released_output(uint64_t* offset) { return layout_->released_outputs.pop(offset); }

  /// Tells the host that a model has let go of an input it kept. Never blocks: what doesn't fit
  /// waits for the next call.
  void release_input(uint64_t token);

 private:
  struct State;
  const std::shared_ptr<Arena> arena_;
  ChannelLayout* const layout_;
  const std::unique_ptr<State> state_;
};

}  // namespace neuropod::multiprocess
