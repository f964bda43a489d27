#pragma once

#include "neuropod/base/visibility.hh"

namespace neuropod {

/// What the program `neuropod-worker` does: hosts models for other processes until they are done
/// with it. Returns its exit status.
///
///     neuropod-worker --connect FD --title TEXT       for a host that starts it: one connection,
///     in FD neuropod-worker --listen PATH                   for any number of hosts, see
///     docs/out_of_process.md neuropod-worker --version
///
/// Exit codes: 0 asked to end, or its host has ended; 64 wrong arguments; 1 anything else.
NEUROPOD_EXPORT int run_worker(int argc, char** argv);

}  // namespace neuropod
