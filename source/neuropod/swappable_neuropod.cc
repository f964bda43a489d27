#include "neuropod/swappable_neuropod.hh"

#include <fmt/format.h>

#include <mutex>
#include <utility>

namespace neuropod {

struct SwappableNeuropod::Rep {
  Rep(const std::string& path, std::vector<BackendLoadSpec> backend_overrides,
      RuntimeOptions runtime_options)
      : overrides(std::move(backend_overrides)),
        options(std::move(runtime_options)),
        model(path, overrides, options),
        api(problem_api_of(model.get_config())) {}

  // A model of that package, if it fulfils `api`, ready to serve. What was compared is what is
  // loaded: the package is opened once.
  Neuropod load(const std::string& path) const {
    RuntimeOptions unloaded = options;
    unloaded.load_model_at_construction = false;
    Neuropod next(path, overrides, unloaded);
    require_fulfilled(api, problem_api_of(next.get_config()), fmt::format("package '{}'", path));
    next.load_model();
    return next;
  }

  Neuropod current() const {
    std::lock_guard lock(mutex);
    return model;
  }

  const std::vector<BackendLoadSpec> overrides;
  const RuntimeOptions options;
  std::mutex swapping;  // one swap at a time

  // Held for copying a pointer. std::atomic<std::shared_ptr> would spin in its place, and in the
  // libstdc++ of g++ 12 does so in a way that ThreadSanitizer takes for a race.
  mutable std::mutex mutex;
  Neuropod model;           // guarded by `mutex`
  uint64_t generation = 0;  // guarded by `mutex`

  const ProblemApi api;
};

SwappableNeuropod::SwappableNeuropod(const std::string& neuropod_path,
                                     const RuntimeOptions& options)
    : SwappableNeuropod(neuropod_path, std::vector<BackendLoadSpec>{}, options) {}

SwappableNeuropod::SwappableNeuropod(const std::string& neuropod_path,
                                     const std::vector<BackendLoadSpec>& backend_overrides,
                                     const RuntimeOptions& options)
    : rep_(std::make_unique<Rep>(neuropod_path, backend_overrides, options)) {}

SwappableNeuropod::~SwappableNeuropod() = default;

void SwappableNeuropod::swap(const std::string& neuropod_path) {
  std::lock_guard turn(rep_->swapping);
  try {
    const Neuropod next = rep_->load(neuropod_path);
    const Neuropod previous = rep_->current();  // freed, if nobody uses it, after the lock
    std::lock_guard lock(rep_->mutex);
    rep_->model = next;
    ++rep_->generation;
  } catch (const Error& error) {
    throw error.with_context(fmt::format("model '{}' isn't swapped and keeps serving", get_name()));
  }
}

Neuropod SwappableNeuropod::current() const { return rep_->current(); }

uint64_t SwappableNeuropod::generation() const {
  std::lock_guard lock(rep_->mutex);
  return rep_->generation;
}

std::unique_ptr<NeuropodValueMap> SwappableNeuropod::infer(
    const NeuropodValueMap& inputs, const std::vector<std::string>& requested_outputs) const {
  return rep_->current().infer(inputs, requested_outputs);
}

void SwappableNeuropod::load_model() { rep_->current().load_model(); }

void SwappableNeuropod::reset() { rep_->current().reset(); }

const std::vector<TensorSpec>& SwappableNeuropod::get_inputs() const { return rep_->api.inputs; }
const std::vector<TensorSpec>& SwappableNeuropod::get_outputs() const { return rep_->api.outputs; }

std::string SwappableNeuropod::get_name() const { return rep_->current().get_name(); }
std::string SwappableNeuropod::get_platform() const { return rep_->current().get_platform(); }

std::shared_ptr<NeuropodTensorAllocator> SwappableNeuropod::get_tensor_allocator() const {
  return rep_->current().get_tensor_allocator();
}

}  // namespace neuropod
