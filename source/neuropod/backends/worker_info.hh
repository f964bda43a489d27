#pragma once

#include <cstdint>
#include <string>

namespace neuropod {

/// A process that runs a model for another: what Neuropod::workers() and `neuropod ps` show.
struct WorkerInfo {
  int64_t pid = 0;       ///< 0: it isn't there now (starting, waiting to be restarted)
  int64_t host_pid = 0;  ///< the process whose model it runs
  std::string model;
  std::string platform;
  std::string package;
  /// "starting", "ready" (no call runs), "busy", "backing off", "failed" (won't be restarted),
  /// "stopped" (by a signal, SIGSTOP).
  std::string state;
  double cpu_seconds = 0;     ///< of all its threads
  uint64_t memory_bytes = 0;  ///< its own, arenas not included
  uint64_t input_bytes = 0;   ///< live in the model's input arena
  uint64_t output_bytes = 0;  ///< live in its output arena
  uint64_t restarts = 0;
  uint64_t calls = 0;            ///< finished
  uint64_t calls_in_flight = 0;  ///< waiting or running
  double running_seconds = 0;    ///< since it started
};

}  // namespace neuropod
