#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "neuropod/internal/neuropod_value.hh"
#include "neuropod/multiprocess/managed_worker.hh"

namespace neuropod::multiprocess {

/// Calls that a worker isn't through with though nobody waits for them: keeps their inputs and
/// their slots until it is, and has the worker killed when it takes too long. Thread-safe.
class GivenUpCalls : public std::enable_shared_from_this<GivenUpCalls> {
 public:
  struct Call {
    std::shared_ptr<Incarnation> incarnation;
    uint32_t slot = 0;
    uint64_t use = 0;                                    // of the slot, from before it was given up
    std::vector<std::shared_ptr<NeuropodValue>> values;  // RequestWriter::values()
  };

  /// One that will never begin.
  void add_withdrawn(Call call);
  /// One that runs. After `grace` the worker is killed by `kill`, which ends that life of it only.
  void add_running(Call call, std::chrono::milliseconds grace, std::function<void()> kill);

  /// Lets go of what is over, so that slots are free again; cheap when there is nothing.
  void sweep();

 private:
  struct Entry {
    Call call;
    std::function<void()> kill;  // none: it never began
  };
  void add(Entry entry);
  static bool is_over(const Call& call) {
    return call.incarnation->channel->is_finished(call.slot, call.use);
  }
  static void finish(const Entry& entry);

  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace neuropod::multiprocess
