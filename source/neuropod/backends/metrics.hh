#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "neuropod/base/error.hh"
#include "neuropod/base/visibility.hh"

namespace neuropod {

/// All loaded models of this process that collect metrics, and the loads that failed, in
/// Prometheus' text exposition format (version 0.0.4, UTF-8). docs/metrics.md lists the names. A
/// freed model's series are gone. Thread-safe; calls under way are not held up.
NEUROPOD_EXPORT std::string metrics_text();

/// One call, as the observer sees it. `model` and `platform` are valid during the observer's call.
struct CallRecord {
  std::string_view model;
  std::string_view platform;
  uint64_t load_id = 0;            ///< as the label in metrics_text()
  std::optional<ErrorCode> error;  ///< nothing: the call succeeded

  double total_seconds = 0;
  // A part that wasn't reached is 0.
  double checks_seconds = 0;
  double sealing_seconds = 0;
  double framework_seconds = 0;
  double outputs_seconds = 0;
  double queue_seconds = 0;  ///< of a model in a process of its own, as the next
  double transport_seconds = 0;

  uint64_t input_bytes = 0;
  uint64_t output_bytes = 0;
  uint64_t copied_bytes = 0;
};

/// Has `observer` told of each finished call of every model that collects metrics; null takes it
/// away. One per process; the last one counts.
///
/// The observer runs on the thread of the call, before the call returns and without a lock held, on
/// several threads at once: its time is added to each call. Calls that it makes itself aren't
/// observed. What it throws is dropped, and logged the first time. Calls under way may still reach
/// it after it was taken away. Thread-safe.
using MetricsObserver = std::function<void(const CallRecord&)>;
NEUROPOD_EXPORT void set_metrics_observer(MetricsObserver observer);

}  // namespace neuropod
