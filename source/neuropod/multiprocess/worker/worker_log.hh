#pragma once

namespace neuropod::multiprocess {

/// Sends this process's log lines to stderr in the form that a host tells from what a model prints:
/// `\x01LEVEL\x02FILE:LINE\x02TEXT\n`, line ends in TEXT as `\x03`
/// (docs/formats/worker_protocol.md).
void log_for_host();

}  // namespace neuropod::multiprocess
