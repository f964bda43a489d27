#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "neuropod/internal/neuropod_value.hh"
#include "neuropod/multiprocess/managed_worker.hh"

namespace neuropod::multiprocess {

/// Calls that a worker is still busy with though nobody waits for them: keeps their inputs until it
/// is through, and has the worker killed when it takes too long. Thread-safe.
class GivenUpCalls : public std::enable_shared_from_this<GivenUpCalls> {
 public:
  using Values = std::vector<std::shared_ptr<NeuropodValue>>;

  /// `use`: of the slot, from before it was given up. `grace`: how long the worker may go on; none:
  /// as long as it likes (the call never began). `kill`: kills that life of the worker.
  void add(std::shared_ptr<Incarnation> incarnation, uint32_t slot, uint64_t use, Values values,
           std::optional<std::chrono::milliseconds> grace, std::function<void()> kill);

  /// Drops what is over; cheap when there is nothing.
  void sweep();

 private:
  struct Call {
    std::shared_ptr<Incarnation> incarnation;
    uint32_t slot;
    uint64_t use;
    Values values;
    bool is_over() const {
      return incarnation->channel->lost() || incarnation->channel->is_finished(slot, use);
    }
  };
  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::vector<Call> calls_;
};

}  // namespace neuropod::multiprocess
