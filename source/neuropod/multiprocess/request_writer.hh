#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "neuropod/multiprocess/arena_allocator.hh"
#include "neuropod/multiprocess/channel/call_message.hh"
#include "neuropod/multiprocess/managed_worker.hh"
#include "neuropod/package/call_plan.hh"

namespace neuropod::multiprocess {

/// Describes one call to a worker, on the calling thread's stack.
class RequestWriter {
 public:
  RequestWriter(const BoundInputs& inputs, InputMemory& memory)
      : inputs_(inputs), memory_(memory) {}

  /// Fills the slot. Inputs that don't lie where the worker sees them are copied into the arena:
  /// once, however often a call is tried.
  void write(const std::vector<uint32_t>& requested_outputs, const Incarnation& incarnation,
             CallSlot* slot);

  /// The value that record `index` of the request describes, a copy if it was copied; null if there
  /// is none.
  std::shared_ptr<NeuropodValue> value_of(uint32_t record) const;

  /// The value, of those that lie in the input arena, that holds [data, data + bytes) wholly; null
  /// if none does.
  std::shared_ptr<NeuropodValue> holder_of(const void* data, uint64_t bytes) const;

  /// All that the worker may be looking at, by record as value_of(), then whatever else: for a call
  /// that goes on without its caller.
  std::vector<std::shared_ptr<NeuropodValue>> values() const;

  uint64_t copied_bytes() const noexcept { return copied_bytes_; }

 private:
  void add(uint32_t index, const std::shared_ptr<NeuropodValue>& value,
           const Incarnation& incarnation);
  const NeuropodTensor& copy_of(uint32_t index, const NeuropodTensor& tensor);

  const BoundInputs& inputs_;
  InputMemory& memory_;
  BodyWriter* body_ = nullptr;
  std::vector<std::pair<uint32_t, std::shared_ptr<NeuropodTensor>>> copies_;  // by input
  std::shared_ptr<NeuropodTensor> spill_;
  uint64_t copied_bytes_ = 0;
};

}  // namespace neuropod::multiprocess
