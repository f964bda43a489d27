#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "neuropod/internal/neuropod_value.hh"
#include "neuropod/multiprocess/channel/call_message.hh"
#include "neuropod/multiprocess/channel/worker_channel.hh"
#include "neuropod/multiprocess/worker/input_tensors.hh"
#include "neuropod/multiprocess/worker/result_memory.hh"
#include "neuropod/package/call_plan.hh"

namespace neuropod::multiprocess {

/// What the host of a connection still reads in its output arena, by the block's offset.
/// Thread-safe.
class LentResults {
 public:
  LentResults(std::shared_ptr<WorkerChannel> channel, std::shared_ptr<ResultArena> arena);
  ~LentResults();

  /// `value` keeps the block at `offset`; null: the block is ours.
  void lend(uint64_t offset, std::shared_ptr<NeuropodValue> value);
  /// Takes one back: its reply will not be read.
  void take_back(uint64_t offset);
  /// Takes back what the host has released.
  void drain();
  ResultArena& arena() noexcept { return *arena_; }

 private:
  void drop(uint64_t offset, const std::shared_ptr<NeuropodValue>& value) noexcept;

  const std::shared_ptr<WorkerChannel> channel_;
  const std::shared_ptr<ResultArena> arena_;
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<NeuropodValue>> lent_;
};

/// Turns a model's outputs into the reply of a call. One executor's.
class ReplyWriter {
 public:
  ReplyWriter(const NameIndex& outputs, LentResults* lent) : names_(outputs), lent_(*lent) {}

  /// Fills `body` with the reply for `outputs`. A result is, by the first that holds: a part of one
  /// of this call's `inputs` (where it is), small (in the message), alone in its memory, which the
  /// host can read (where it is), copied. Error(out_of_memory) when the output arena is full;
  /// nothing is lent then.
  void write(const NeuropodValueMap& outputs, const InputTensors& inputs, BodyWriter* body);

  /// Puts a finished body into the slot, or beside it if it is too long.
  void publish(std::string_view body, CallSlot* slot);

  /// The reply won't be read: couldn't be written or published, or nobody waits for it.
  void take_back();
  /// It will be.
  void forget() noexcept { lent_now_.clear(); }

 private:
  void write_output(const std::string& name, const std::shared_ptr<NeuropodValue>& output,
                    const InputTensors& inputs, BodyWriter* body);
  void write_strings(uint32_t index, std::string_view named, const NeuropodTensor& tensor,
                     BodyWriter* body);
  char* lend_block(std::string_view what, uint64_t bytes, uint64_t* offset);
  void lend(uint64_t offset, std::shared_ptr<NeuropodValue> value);

  const NameIndex& names_;
  LentResults& lent_;
  std::vector<uint64_t> lent_now_;
};

}  // namespace neuropod::multiprocess
