#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "neuropod/backends/tensor_allocator.hh"
#include "neuropod/multiprocess/channel/call_message.hh"
#include "neuropod/multiprocess/channel/worker_channel.hh"
#include "neuropod/multiprocess/shm/arena.hh"
#include "neuropod/package/call_plan.hh"

namespace neuropod::multiprocess {

/// The tensors of one executor's calls, over the host's memory. A call whose inputs lie where those
/// of an earlier one did finds that one's tensors again, which costs nothing.
///
/// When a model still refers to an input after its call, the host is told (finish_call()), and told
/// again when the model has let go, so that it doesn't reuse the memory meanwhile.
/// **Thread safety**: one executor's; what a model keeps may be let go on any thread.
class InputTensors {
 public:
  InputTensors(size_t num_inputs, std::shared_ptr<NeuropodTensorAllocator> allocator,
               std::shared_ptr<WorkerChannel> channel, std::shared_ptr<Arena> inputs,
               std::shared_ptr<Arena> outputs);
  ~InputTensors();

  /// Makes the record's tensor the input of its name. Error(invalid_argument): not in its arena, no
  /// such input, twice.
  void bind(const TensorRecord& record, BoundInputs* bound);

  /// Before the first bind() of a call.
  void begin_call() noexcept;
  /// The call is over, well or not: announces in `reply` what the model has kept. When another
  /// reply takes that one's place, it announces the same again.
  void finish_call(BodyWriter* reply);

  /// Whether [data, data + bytes) lies in one of this call's inputs; its offset in the input arena.
  std::optional<uint64_t> offset_in_inputs(const void* data, size_t bytes) const noexcept;

 private:
  struct Lease;
  struct Entry {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    Place place = Place::kInputArena;
    TensorType type = FLOAT_TENSOR;
    std::vector<int64_t> dims;
    std::shared_ptr<NeuropodValue> value;
    std::shared_ptr<Lease> lease;
  };
  struct Used {
    uint32_t input = 0;
    size_t entry = 0;  // of cache_[input]; kNotCached: strings
  };
  static constexpr size_t kNotCached = size_t(-1);
  static constexpr size_t kEntriesPerInput = 4;

  void bind_strings(const TensorRecord& record, const char* content, BoundInputs* bound);
  Entry make_entry(const TensorRecord& record, char* content) const;

  const std::shared_ptr<NeuropodTensorAllocator> allocator_;
  const std::shared_ptr<WorkerChannel> channel_;
  const std::shared_ptr<Arena> inputs_;
  const std::shared_ptr<Arena> outputs_;
  std::vector<std::vector<Entry>> cache_;  // by input; never more than kEntriesPerInput
  std::vector<uint32_t> next_;             // the entry to replace, by input
  std::vector<Used> used_;                 // by this call, in the order of its records
  std::vector<InputKept> announced_;       // by this call
  std::vector<std::shared_ptr<NeuropodValue>> strings_;  // by input
};

}  // namespace neuropod::multiprocess
