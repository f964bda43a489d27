#pragma once

#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "neuropod/backends/metrics.hh"
#include "neuropod/backends/neuropod_backend.hh"
#include "neuropod/backends/tensor_allocator.hh"
#include "neuropod/base/error.hh"
#include "neuropod/base/logging.hh"
#include "neuropod/base/visibility.hh"
#include "neuropod/core/generic_tensor.hh"
#include "neuropod/internal/backend_registration.hh"
#include "neuropod/internal/config_utils.hh"
#include "neuropod/internal/neuropod_tensor.hh"
#include "neuropod/options.hh"
#include "neuropod/version.hh"

namespace neuropod {

namespace internal {
class AsyncCalls;
struct AsyncCallState;
}  // namespace internal

/// A call that infer_async() began. Copies are the same call.
class NEUROPOD_EXPORT AsyncCall {
 public:
  /// Withdraws it, from any thread. True: it hadn't begun and never will; it ends with
  /// Error(cancelled). False: it runs or is over, and goes on as if nobody had asked.
  bool cancel() const;

 private:
  friend class internal::AsyncCalls;
  explicit AsyncCall(std::shared_ptr<internal::AsyncCallState> state);
  std::shared_ptr<internal::AsyncCallState> state_;
};

/// A packaged model, loaded and ready to run, whatever framework made it.
///
///     neuropod::Neuropod model("detector.neuropod");
///     auto image = model.allocate_tensor<uint8_t>({1200, 1920, 3});
///     fill(image->get_raw_data_ptr());
///     auto outputs = model.infer({{"image", image}});
///     auto boxes = outputs->at("boxes")->as_typed_tensor<float>()->accessor<2>();
///
/// **Ownership**: copies share one loaded model, which is freed with the last of them. Tensors may
/// outlive it.
/// **Thread safety**: every method may be called from any thread; calls of a stateful model run one
/// after the other. load_model() and reset() must not overlap infer().
/// **Errors**: all are neuropod::Error. Constructor and load_model: not_found, invalid_package,
/// corrupt_package, backend_not_found, version_conflict, load_failed. infer: spec_mismatch,
/// not_found, model_error, out_of_memory. The model stays usable after a failed call.
class NEUROPOD_EXPORT Neuropod {
 public:
  explicit Neuropod(const std::string& neuropod_path, const RuntimeOptions& options = {});

  /// `backend_overrides`: plug-ins to prefer over those that are found; the last one wins.
  Neuropod(const std::string& neuropod_path, const std::vector<BackendLoadSpec>& backend_overrides,
           const RuntimeOptions& options = {});

  /// Around a backend that exists already; `neuropod_path` is for messages only.
  Neuropod(const std::string& neuropod_path, std::shared_ptr<NeuropodBackend> backend);

  ~Neuropod();
  // Moving copies: what was moved from stays a usable model.
  Neuropod(const Neuropod&);
  Neuropod& operator=(const Neuropod&);

  /// Loads the model, for `load_model_at_construction = false`.
  void load_model();

  /// Runs the model. `requested_outputs`: the outputs to compute and return; empty means all.
  std::unique_ptr<NeuropodValueMap> infer(
      const NeuropodValueMap& inputs, const std::vector<std::string>& requested_outputs = {}) const;

  /// Begins a call and returns at once; the future has what infer() would return or throw. As many
  /// calls go on at once as concurrency() says, on threads that are started when they are first
  /// needed and end with the model; others wait their turn. Don't change the tensors before the
  /// call is over.
  std::future<std::unique_ptr<NeuropodValueMap>> infer_async(
      NeuropodValueMap inputs, std::vector<std::string> requested_outputs = {}) const;

  /// Gets the outputs, or null and the exception, on one of the model's threads, exactly once. It
  /// must not throw.
  using InferCallback =
      std::function<void(std::unique_ptr<NeuropodValueMap> outputs, std::exception_ptr error)>;

  /// The same, telling `done`. When the last copy of the model goes, calls that haven't begun end
  /// with Error(cancelled), and those that run are waited for; so `done` must not hold a copy of it
  /// for good.
  AsyncCall infer_async(NeuropodValueMap inputs, std::vector<std::string> requested_outputs,
                        InferCallback done) const;

  /// Forgets a stateful model's state.
  void reset();

  /// What the model has done since it was loaded; see ModelStats.
  ModelStats stats() const;

  /// The processes that run the model (RuntimeOptions::use_ope); none if it runs in this one.
  std::vector<WorkerInfo> workers() const;

  /// Calls that make sense at once; see NeuropodBackend::concurrency().
  int concurrency() const;

  /// For bindings; see NeuropodBackend::count_failed_call.
  void count_failed_call(ErrorCode code) const noexcept;

  const std::vector<TensorSpec>& get_inputs() const;
  const std::vector<TensorSpec>& get_outputs() const;
  const std::string& get_name() const;
  const std::string& get_platform() const;
  const ModelConfig& get_config() const;

  /// Makes tensors that this model takes without a copy.
  std::shared_ptr<NeuropodTensorAllocator> get_tensor_allocator() const;

  template <typename T>
  std::shared_ptr<TypedNeuropodTensor<T>> allocate_tensor(const std::vector<int64_t>& dims) const {
    return get_tensor_allocator()->template allocate_tensor<T>(dims);
  }

  /// A tensor over the caller's memory; see NeuropodTensorAllocator::tensor_from_memory.
  template <typename T>
  std::shared_ptr<TypedNeuropodTensor<T>> tensor_from_memory(const std::vector<int64_t>& dims,
                                                             T* data,
                                                             const Deleter& deleter) const {
    return get_tensor_allocator()->template tensor_from_memory<T>(dims, data, deleter);
  }

 private:
  std::shared_ptr<NeuropodBackend> backend_;
  std::shared_ptr<internal::AsyncCalls> async_calls_;
};

}  // namespace neuropod
