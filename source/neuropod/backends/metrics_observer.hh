#pragma once

#include <atomic>

#include "neuropod/backends/metrics.hh"

namespace neuropod::internal {

/// Whether there is an observer: all that a call asks if there is none.
extern std::atomic<bool> has_metrics_observer;

/// Tells the observer; nothing leaves. Does nothing on a thread that is inside an observer.
void tell_metrics_observer(const CallRecord& record) noexcept;

}  // namespace neuropod::internal
