#pragma once

#include "neuropod/base/visibility.hh"

namespace neuropod {

/// What the program `neuropod-worker` does: hosts models for other processes until they are done
/// with it. Returns its exit status.
///
/// `--connect FD --host PID --title TEXT` is for a host that starts it: one connection, in FD.
/// `--listen PATH` is for any number of hosts (docs/out_of_process.md); `--version` and `--help`
/// print.
///
/// Exit codes: 0 asked to end, or its host has ended; 64 wrong arguments; 1 anything else.
NEUROPOD_EXPORT int run_worker(int argc, char** argv);

}  // namespace neuropod
