#pragma once

#include <sys/types.h>

#include <cstdint>

namespace neuropod::multiprocess {

/// What /proc says about a process.
struct ProcStat {
  char state = 0;  ///< as in /proc/PID/stat: R, S, T, Z, …; 0: there is no such process
  double cpu_seconds = 0;
  uint64_t private_bytes = 0;  ///< resident and not shared
};

ProcStat read_proc_stat(pid_t pid);

}  // namespace neuropod::multiprocess
