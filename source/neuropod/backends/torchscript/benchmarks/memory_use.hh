#pragma once

#include <string>

namespace neuropod::benchmarks {

constexpr int kImages = 32;

/// Peak resident bytes that a child process needs beyond what it has once the model is loaded, when
/// it keeps `kImages` images and as many results. `through_neuropod`: by this library, or by torch
/// called directly.
long long measure_peak_memory(const std::string& models, bool through_neuropod);

}  // namespace neuropod::benchmarks
