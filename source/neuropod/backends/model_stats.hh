#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "neuropod/base/error.hh"
#include "neuropod/core/memory_pool.hh"

namespace neuropod {

/// The bounds, in seconds, by which durations are counted for people and for Prometheus.
inline constexpr std::array<double, 25> kLatencyBounds{
    1e-6,  2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01,
    0.025, 0.05,   0.1,  0.25, 0.5,    1.0,  2.5,  5.0,    10.0, 20.0, 30.0,   60.0};

/// How long calls, or one part of them, took. Quantiles are within 7 %.
struct LatencyStats {
  uint64_t count = 0;
  double total_seconds = 0;
  double max_seconds = 0;
  double p50_seconds = 0;
  double p95_seconds = 0;
  double p99_seconds = 0;
  /// How many took at most kLatencyBounds[i] (a bound is within 6 %).
  std::array<uint64_t, kLatencyBounds.size()> up_to{};
};

/// What a model has done since it was loaded. docs/metrics.md explains each figure.
struct ModelStats {
  /// False: the model was loaded with `collect_metrics = false`; everything but `load_seconds` and
  /// `allocator` is 0.
  bool collected = false;

  uint64_t calls = 0;                    ///< finished: succeeded and failed
  uint64_t calls_in_flight = 0;          ///< begun and not finished, waiting ones included
  std::map<ErrorCode, uint64_t> errors;  ///< failed calls; only codes that occurred

  // Calls that succeeded. A stateful model's call waits for its turn: `total` holds the wait, no
  // part of it does.
  LatencyStats total;
  LatencyStats checks;     ///< names, dtypes, shapes and symbols of the inputs
  LatencyStats sealing;    ///< inputs brought to the device that the package wants
  LatencyStats framework;  ///< the plug-in and its framework
  LatencyStats outputs;    ///< filtering and checking the outputs

  // Of a model in a process of its own; `framework` is then the worker's own time.
  bool has_workers = false;
  LatencyStats queue;            ///< until a worker began the call
  LatencyStats transport;        ///< bringing inputs and results across
  uint64_t worker_deaths = 0;    ///< workers that ended by themselves or were killed
  uint64_t worker_restarts = 0;  ///< workers that were started in their place

  uint64_t input_bytes = 0;   ///< of inputs that passed the checks
  uint64_t output_bytes = 0;  ///< of outputs that were returned
  /// Of inputs that were copied: to another device, to where a worker sees them, or by a language's
  /// binding to make a tensor.
  uint64_t copied_bytes = 0;

  /// CPU time of the calling threads inside calls; an estimate from samples for calls under a
  /// millisecond. A framework's own threads are not in it.
  double cpu_seconds = 0;

  /// Reading and verifying the package, and loading the model.
  double load_seconds = 0;

  AllocatorStats allocator;
};

}  // namespace neuropod
