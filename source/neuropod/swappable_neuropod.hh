#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "neuropod/base/visibility.hh"
#include "neuropod/neuropod.hh"
#include "neuropod/package/problem_api.hh"

namespace neuropod {

/// A model that can be replaced by another package while it serves, whatever framework made that.
///
///     neuropod::SwappableNeuropod model("detector-1.neuropod");
///     // Any number of threads:
///     auto outputs = model.infer({{"image", image}});
///     // Another thread, at any time:
///     model.swap("detector-2.neuropod");
///
/// The package it is made from sets the problem API for good: every later one must fulfil it, so
/// callers never see a change of it, and any earlier package can come back. docs/hot_swap.md.
///
/// **Ownership**: a replaced model is freed when its last call has ended and its last handle (see
/// current()) is gone; on the thread where that happens. Tensors may outlive it.
/// **Thread safety**: every method may be called from any thread, swap() too; swaps run one after
/// the other and hold up no call. load_model() and reset() must not overlap infer().
/// **Errors**: as Neuropod.
class NEUROPOD_EXPORT SwappableNeuropod {
 public:
  /// `options`, and `backend_overrides`, are those of every package that is swapped in.
  explicit SwappableNeuropod(const std::string& neuropod_path, const RuntimeOptions& options = {});
  SwappableNeuropod(const std::string& neuropod_path,
                    const std::vector<BackendLoadSpec>& backend_overrides,
                    const RuntimeOptions& options = {});
  ~SwappableNeuropod();
  SwappableNeuropod(const SwappableNeuropod&) = delete;
  SwappableNeuropod& operator=(const SwappableNeuropod&) = delete;

  /// Loads the package at `neuropod_path` and lets it serve from now on: calls that start after
  /// swap() has returned run on it, calls under way end on the model they began with. Blocks while
  /// it loads, and both models are in memory then. A stateful model starts afresh.
  ///
  /// On any error the old model keeps serving as if nothing had happened: what the constructor of
  /// Neuropod throws, and Error(invalid_argument) that lists the differences if the package doesn't
  /// fulfil the problem API (compare_problem_apis()).
  void swap(const std::string& neuropod_path);

  /// The model that serves now. Holding it keeps that model in memory. A caller that needs several
  /// calls on one model makes them through it.
  Neuropod current() const;

  /// How many swaps there were.
  uint64_t generation() const;

  /// One call, from its first check to its last, runs on one model. Inputs that another model's
  /// allocator made are taken as any tensor of another model (docs/zero_copy.md).
  std::unique_ptr<NeuropodValueMap> infer(
      const NeuropodValueMap& inputs, const std::vector<std::string>& requested_outputs = {}) const;

  /// For `load_model_at_construction = false`, before the first swap().
  void load_model();

  /// Forgets the state of the model that serves now.
  void reset();

  /// The problem API that callers can rely on: that of the first package. The one that serves now
  /// may take and return more; current().get_inputs() says so.
  const std::vector<TensorSpec>& get_inputs() const;
  const std::vector<TensorSpec>& get_outputs() const;

  /// Of the model that serves now.
  std::string get_name() const;
  std::string get_platform() const;
  std::shared_ptr<NeuropodTensorAllocator> get_tensor_allocator() const;

  template <typename T>
  std::shared_ptr<TypedNeuropodTensor<T>> allocate_tensor(const std::vector<int64_t>& dims) const {
    return get_tensor_allocator()->template allocate_tensor<T>(dims);
  }
  template <typename T>
  std::shared_ptr<TypedNeuropodTensor<T>> tensor_from_memory(const std::vector<int64_t>& dims,
                                                             T* data,
                                                             const Deleter& deleter) const {
    return get_tensor_allocator()->template tensor_from_memory<T>(dims, data, deleter);
  }

 private:
  struct Rep;
  const std::unique_ptr<Rep> rep_;
};

}  // namespace neuropod
