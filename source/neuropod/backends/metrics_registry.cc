#include "neuropod/backends/metrics_registry.hh"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "neuropod/base/fork_safe_mutex.hh"

namespace neuropod::internal {
namespace {

// Process-wide, because whoever asks for the metrics of a process has no list of its models, and a
// load that failed leaves no model to ask. Never destroyed: models may die while the process ends.
struct Registry {
  std::atomic<uint64_t> loads{0};
  std::array<std::atomic<uint64_t>, size_t(ErrorCode::kCancelled) + 1> failures{};

  ForkSafeMutex mutex;  // guards `models`
  std::vector<std::weak_ptr<const ModelMetrics>> models;
};

Registry& registry() {
  static auto* const instance = new Registry;
  return *instance;
}

}  // namespace

uint64_t count_load() noexcept { return ++registry().loads; }

void count_failed_load(ErrorCode code) noexcept { ++registry().failures[size_t(code)]; }

LoadCounts load_counts() noexcept {
  LoadCounts counts;
  counts.loads = registry().loads;
  for (size_t i = 0; i < counts.failures.size(); ++i) counts.failures[i] = registry().failures[i];
  return counts;
}

void list_model(const std::shared_ptr<const ModelMetrics>& metrics) {
  std::lock_guard lock(registry().mutex);
  auto& models = registry().models;
  models.erase(std::remove_if(models.begin(), models.end(),
                              [](const auto& model) { return model.expired(); }),
               models.end());
  models.push_back(metrics);
}

std::vector<std::shared_ptr<const ModelMetrics>> listed_models() {
  std::vector<std::shared_ptr<const ModelMetrics>> living;
  {
    std::lock_guard lock(registry().mutex);
    for (const auto& listed : registry().models) {
      if (auto model = listed.lock()) living.push_back(std::move(model));
    }
  }
  std::sort(living.begin(), living.end(), [](const auto& one, const auto& other) {
    return one->identity().load_id < other->identity().load_id;
  });
  return living;
}

}  // namespace neuropod::internal
