#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "neuropod/backends/model_metrics.hh"
#include "neuropod/base/error.hh"

namespace neuropod::internal {

/// How loading went in this process.
struct LoadCounts {
  uint64_t loads = 0;                                                  ///< that succeeded
  std::array<uint64_t, size_t(ErrorCode::kCancelled) + 1> failures{};  ///< by code
};

// Thread-safe, all of them.

/// Counts a load that succeeded, and returns its number: 1, 2, 3, …
uint64_t count_load() noexcept;
void count_failed_load(ErrorCode code) noexcept;
LoadCounts load_counts() noexcept;

/// Lists a loaded model in metrics_text() for as long as it lives.
void list_model(const std::shared_ptr<const ModelMetrics>& metrics);

/// The models that live, in the order of their loading.
std::vector<std::shared_ptr<const ModelMetrics>> listed_models();

}  // namespace neuropod::internal
