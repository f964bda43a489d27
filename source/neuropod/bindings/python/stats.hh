#pragma once

#include <nanobind/nanobind.h>

#include "neuropod/backends/model_stats.hh"

namespace neuropod::python {

/// Figures as nested dicts whose keys docs/metrics.md explains. metrics.cc.
nanobind::dict stats_dict(const ModelStats& stats);
nanobind::dict allocator_dict(const AllocatorStats& stats);

}  // namespace neuropod::python
