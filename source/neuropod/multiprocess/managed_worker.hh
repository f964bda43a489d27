#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "neuropod/backends/worker_info.hh"
#include "neuropod/base/error.hh"
#include "neuropod/multiprocess/channel/host_channel.hh"
#include "neuropod/multiprocess/kept_inputs.hh"
#include "neuropod/multiprocess/serialization/ipc_serialization.hh"
#include "neuropod/multiprocess/shm/arena.hh"

namespace neuropod::multiprocess {

/// One life of a worker: from its start (or the connection to one that runs already) to its end.
/// Calls hold it while they use its channel; results hold its output arena.
struct Incarnation {
  uint64_t number = 0;  ///< 1, 2, 3, … of one ManagedWorker
  pid_t pid = 0;
  std::shared_ptr<HostChannel> channel;
  std::shared_ptr<Arena> output_arena;
  LoadReply reply;

  /// Set before the channel is lost: why it ended, for people: "killed by signal 11 (SIGSEGV)",
  /// "exited with code 3", "killed because a call was 1.0 s past its deadline", with the last lines
  /// it printed.
  std::string cause;

  /// For the calls: bytes of results that the host still reads in `output_arena`, and what the
  /// model keeps.
  std::atomic<uint64_t> lent_bytes{0};
  KeptInputs kept_inputs;
};

/// What a worker is to be.
struct WorkerSpec {
  std::string model;  ///< its name, for title, log and messages
  std::string platform;
  LoadRequest load;        ///< what it is told
  RuntimeOptions options;  ///< the host's own, ope_options included
  std::shared_ptr<Arena> input_arena;
  /// Another process of ours has loaded the model already: what keeps a worker from loading it is
  /// a trouble that may pass, and is tried again.
  bool known_to_load = false;
};

/// Keeps one worker process going: starts it, loads the model, notices its death, starts the next
/// by the restart policy (see RestartPolicy). Everything that waits happens on the supervisor's
/// thread; the methods only look or ask.
///
/// **Thread safety**: thread-safe.
class ManagedWorker {
 public:
  enum class State {
    kStarting,  ///< the first start, or a restart that calls may wait for
    kReady,
    kBackingOff,  ///< died too often: unavailable() says when the next start is
    kFailed,      ///< the model couldn't be loaded the first time; no further start
    kStopped,
  };

  /// `changed` is called on the supervisor's thread after each change of state, without a lock
  /// held; it must not block.
  ManagedWorker(WorkerSpec spec, std::function<void()> changed);
  /// stop()s.
  ~ManagedWorker();

  /// Begins the first start. Returns at once.
  void start();

  State state() const noexcept;
  /// The incarnation that takes calls; null unless the state is kReady.
  std::shared_ptr<Incarnation> current() const;
  /// Why there is none: of kBackingOff (unavailable, with the cause of the last death), of kFailed
  /// (what the worker said, or how it died, or that it took longer than startup_timeout), of
  /// kStopped.
  Error problem() const;

  /// Kills this incarnation with SIGKILL, if it is still the current one, because of `reason`,
  /// which becomes its cause. For calls that are past their grace. Returns at once.
  void kill(const std::shared_ptr<Incarnation>& incarnation, const std::string& reason);

  /// kill() as a function that may be called when this object is gone.
  std::function<void(const std::shared_ptr<Incarnation>&, const std::string&)> killer() const;

  /// Asks the worker to give kept memory back.
  void trim();

  /// Ends the worker: asks, waits up to a second, kills; returns when the process is gone and
  /// reaped (or, said in the log, can't be killed for ten seconds). In a forked child of the
  /// process that made it: forgets everything, touches no process.
  void stop();

  WorkerInfo info() const;
  uint64_t deaths() const noexcept;
  uint64_t restarts() const noexcept;

 private:
  struct Rep;
  const std::shared_ptr<Rep> rep_;
};

}  // namespace neuropod::multiprocess
