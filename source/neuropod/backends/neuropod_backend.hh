#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "neuropod/backends/model_stats.hh"
#include "neuropod/backends/tensor_allocator.hh"
#include "neuropod/backends/worker_info.hh"
#include "neuropod/base/visibility.hh"
#include "neuropod/internal/backend_registration.hh"
#include "neuropod/internal/config_utils.hh"
#include "neuropod/internal/neuropod_loader.hh"
#include "neuropod/internal/neuropod_tensor.hh"
#include "neuropod/options.hh"
#include "neuropod/package/call_plan.hh"

namespace neuropod {

namespace internal {
class CallMeter;
}

/// Runs one model of one framework. Frameworks derive from it (usually from
/// NeuropodBackendWithDefaultAllocator) and override load_model_internal() and infer_internal();
/// docs/adding_a_backend.md walks through a whole one.
///
/// Call order: construct (reads and checks the package's configuration) → load_model() once →
/// infer() any number of times.
///
/// **Ownership**: tensors it returned may outlive it.
/// **Thread safety**: infer() may run on any number of threads at once; calls of a stateful model
/// run one after the other. load_model() and reset() wait for nobody: don't call them during
/// infer().
/// **Errors**: every exception that leaves is an Error that names the model. What a framework
/// throws is converted to model_error, load_failed or out_of_memory, with the framework's own
/// message.
class NEUROPOD_EXPORT NeuropodBackend {
 public:
  /// Opens the package, verifies it as far as the options demand (hashes, signature, no compiled
  /// code), reads its configuration.
  NeuropodBackend(const std::string& neuropod_path, const RuntimeOptions& options);
  virtual ~NeuropodBackend();
  NeuropodBackend(const NeuropodBackend&) = delete;
  NeuropodBackend& operator=(const NeuropodBackend&) = delete;

  /// Checks `inputs`, moves those that the package wants elsewhere to their device, runs the model,
  /// checks the outputs. `requested_outputs`: only these are returned; empty means all.
  /// A call that ran out of memory is tried once more after the allocator was trimmed, unless the
  /// model is stateful.
  std::unique_ptr<NeuropodValueMap> infer(const NeuropodValueMap& inputs,
                                          const std::vector<std::string>& requested_outputs = {});

  /// Loads the model. Error(invalid_argument) if it is loaded already.
  void load_model();

  /// Forgets a stateful model's state, as if it was loaded anew; waits for running calls.
  /// Error(invalid_argument) if the package doesn't say that its model is stateful.
  void reset();

  /// What the model has done since it was loaded, the same for every framework: calls, errors,
  /// times, bytes. Any thread may ask at any time; calls under way are not held up.
  ModelStats stats() const;

  /// The processes that run this model; none if it runs in this one.
  virtual std::vector<WorkerInfo> workers() const;

  /// Calls that make sense at once: those of all workers together; for a model in this process, the
  /// CPUs.
  virtual int concurrency() const;

  /// For workers, whose host checks the call and its outputs: brings the inputs to their devices
  /// and runs the model; outputs that weren't requested are dropped. What it throws doesn't name
  /// the model. Not counted in stats().
  std::unique_ptr<NeuropodValueMap> infer_bound(const BoundInputs& inputs,
                                                const std::vector<std::string>& requested_outputs);

  /// Inputs that may be left out because the model has a default for them; known once it is loaded.
  const std::vector<std::string>& inputs_with_defaults() const noexcept;

  /// For bindings: counts a call that failed before it came to infer(), which counts the others.
  void count_failed_call(ErrorCode code) const noexcept;

  virtual std::shared_ptr<NeuropodTensorAllocator> get_tensor_allocator() = 0;

  const std::vector<TensorSpec>& get_inputs() const { return model_config_->inputs; }
  const std::vector<TensorSpec>& get_outputs() const { return model_config_->outputs; }
  const std::string& get_name() const { return model_config_->name; }
  const std::string& get_platform() const { return model_config_->platform; }
  const ModelConfig& get_config() const { return *model_config_; }

 protected:
  /// Loads the model from `loader_`, custom operators included (see load_custom_op).
  virtual void load_model_internal() = 0;

  /// Runs the model. `inputs` are in the order of the input spec, checked and on their devices;
  /// null means left out. `requested_outputs` is empty (all) or a subset of the output spec. May
  /// return more than was asked; the caller filters. Default: runs the overload without requested
  /// outputs.
  virtual std::unique_ptr<NeuropodValueMap> infer_internal(
      const BoundInputs& inputs, const std::vector<std::string>& requested_outputs);
  virtual std::unique_ptr<NeuropodValueMap> infer_internal(const BoundInputs& inputs);

  /// Forgets the state. Default: load_model_internal() once more.
  virtual void reset_internal();

  /// True if infer_internal() runs the calls of a stateful model one after the other by itself, and
  /// reset_internal() takes its turn among them. Default: no.
  virtual bool takes_turns() const { return false; }

  /// What adds to stats() what is known of the model's workers, called at any time, also when the
  /// backend is gone. Asked for once, when the model is loaded. Default: nothing.
  virtual std::function<void(ModelStats*)> worker_stats() const { return {}; }

  /// True if tensors and the model can be on `device`. Default: the CPU only.
  virtual bool has_device(NeuropodDevice device) const;

  /// Which device this package's "GPU" means here: options_.visible_device, or the CPU if there is
  /// no such device (said once in the log, at debug level).
  NeuropodDevice model_device() const;

  /// For load_model_internal(): input `name` may be left out, the model has a default for it.
  void input_has_default(const std::string& name);

  /// For load_model_internal(): the model reads input `name` on the CPU, wherever the package wants
  /// it, as frameworks do with numbers that aren't tensors to them. It isn't moved to the GPU.
  void input_stays_on_cpu(const std::string& name);

  const std::string neuropod_path_;
  const RuntimeOptions options_;
  const std::unique_ptr<NeuropodLoader> loader_;           // never null
  const std::unique_ptr<const ModelConfig> model_config_;  // never null

 private:
  struct Rep;
  using Clock = std::chrono::steady_clock;
  NeuropodBackend(const std::string& neuropod_path, const RuntimeOptions& options,
                  Clock::time_point begin);
  std::unique_ptr<NeuropodValueMap> infer_measured(
      const NeuropodValueMap& inputs, const std::vector<std::string>& requested_outputs,
      internal::CallMeter* meter);
  std::unique_ptr<NeuropodValueMap> infer_loaded(const NeuropodValueMap& inputs,
                                                 const std::vector<std::string>& requested_outputs,
                                                 internal::CallMeter* meter);
  void seal_inputs(BoundInputs* bound, std::vector<std::shared_ptr<NeuropodValue>>* moved,
                   internal::CallMeter* meter);
  void move_input(size_t index, BoundInputs* bound,
                  std::vector<std::shared_ptr<NeuropodValue>>* moved);
  const std::unique_ptr<Rep> rep_;
};

/// A backend whose tensors are `TensorImpl<T>` over pooled memory, see DefaultTensorAllocator.
template <template <typename> class TensorImpl>
class NeuropodBackendWithDefaultAllocator : public NeuropodBackend {
 public:
  explicit NeuropodBackendWithDefaultAllocator(
      const std::string& neuropod_path, const RuntimeOptions& options,
      std::shared_ptr<MemoryPool> pool = MemoryPool::create())
      : NeuropodBackend(neuropod_path, options),
        allocator_(std::make_shared<DefaultTensorAllocator<TensorImpl>>(std::move(pool))) {}

  std::shared_ptr<NeuropodTensorAllocator> get_tensor_allocator() override { return allocator_; }

 private:
  const std::shared_ptr<NeuropodTensorAllocator> allocator_;
};

/// Loads a package's custom operator library `base_name` (in 0/ops) into this process (RTLD_NOW |
/// RTLD_LOCAL), once per content (SHA-256), whatever its name. Thread-safe.
/// Error(not_found) if the package lacks it, load_failed with the loader's own message. Other
/// content under a name that is loaded already is Error(version_conflict): frameworks abort the
/// process when an operator is registered twice. A library that failed to open may be tried again.
NEUROPOD_EXPORT void load_custom_op(NeuropodLoader& loader, const std::string& base_name);

}  // namespace neuropod
