#pragma once

#include <string>
#include <vector>

#include "neuropod/backends/worker_info.hh"
#include "neuropod/base/visibility.hh"

namespace neuropod::multiprocess {

/// Every worker of this user, whatever program started it: processes that call themselves
/// neuropod-worker, with what their channels' memory says of model, host and calls. One that serves
/// several hosts is there once per host. What can't be read is empty or 0. `proc`: where the
/// system's processes are, for tests.
NEUROPOD_EXPORT std::vector<WorkerInfo> list_workers(const std::string& proc = "/proc");

}  // namespace neuropod::multiprocess
