#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "neuropod/base/owned_descriptor.hh"
#include "neuropod/multiprocess/control_socket.hh"
#include "neuropod/multiprocess/worker_limits.hh"

namespace neuropod::multiprocess {

/// How a worker process is started.
struct WorkerLaunch {
  std::string executable;                  ///< find_worker_executable()
  std::string title;                       ///< what ps shows, "neuropod-worker: MODEL for PID"
  std::map<std::string, std::string> env;  ///< over this process's
  WorkerLimits limits;
};

/// A worker that runs. Nothing in it waits: the supervisor does.
struct WorkerProcess {
  pid_t pid = 0;
  OwnedDescriptor pidfd;  // readable once it has ended; may be missing where pidfd_open is refused
  ControlSocket control;
  OwnedDescriptor output;  // what it prints, stdout and stderr, non-blocking
};

/// Starts one: process group of its own, all signals reset, stdin on /dev/null, stdout and stderr
/// in a pipe, no other descriptor of this process, limits applied before any of its code runs. Call
/// it on a thread that lives as long as the process: the worker dies with that thread
/// (PR_SET_PDEATHSIG). Error(unavailable): the executable is missing or can't be started; names it
/// and errno's text, or that descriptors or processes are exhausted.
WorkerProcess start_worker(const WorkerLaunch& launch);

/// For tests: whether start_worker() leaves pidfd_open alone, as where a sandbox refuses it.
extern std::atomic<bool> without_pidfds;

/// The program `neuropod-worker`: NEUROPOD_WORKER if it is set, otherwise beside this library: in
/// the installed tree, in a wheel, in a build tree. Error(unavailable) lists where it looked.
std::string find_worker_executable();

}  // namespace neuropod::multiprocess
