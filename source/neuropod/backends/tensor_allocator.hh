#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "neuropod/base/visibility.hh"
#include "neuropod/core/memory_pool.hh"
#include "neuropod/internal/deleter.hh"
#include "neuropod/internal/neuropod_tensor.hh"

namespace neuropod {

/// Makes tensors that a model takes without a copy.
///
/// **Ownership**: tensors may outlive the allocator and the model.
/// **Thread safety**: thread-safe.
/// **Errors**: invalid_argument for a dtype the framework doesn't carry, a negative dimension or
/// more bytes than a size can hold; out_of_memory after the pool was trimmed and tried again.
class NEUROPOD_EXPORT NeuropodTensorAllocator {
 public:
  virtual ~NeuropodTensorAllocator();

  /// A tensor with uninitialised content (strings are empty) on `device`, 64-byte aligned. String
  /// tensors are on the CPU, whatever `device` says: no framework has them elsewhere.
  virtual std::unique_ptr<NeuropodTensor> allocate_tensor(const std::vector<int64_t>& dims,
                                                          TensorType type,
                                                          NeuropodDevice device = Device::CPU) = 0;

  /// A tensor over the caller's CPU memory, which must stay valid until `deleter(data)` runs; it
  /// runs exactly once, also when this call throws. Not for strings. 64-byte alignment is
  /// recommended: some frameworks copy anything less.
  virtual std::unique_ptr<NeuropodTensor> tensor_from_memory(const std::vector<int64_t>& dims,
                                                             TensorType type, void* data,
                                                             const Deleter& deleter) = 0;

  /// A copy of `tensor` (of any implementation) on `device`; counted in stats(). A copy of a string
  /// tensor is on the CPU.
  virtual std::unique_ptr<NeuropodTensor> copy_to_device(const NeuropodTensor& tensor,
                                                         NeuropodDevice device) = 0;

  virtual AllocatorStats stats() const = 0;

  /// Gives kept memory back to the system.
  virtual void trim() = 0;

  template <typename T>
  std::shared_ptr<TypedNeuropodTensor<T>> allocate_tensor(const std::vector<int64_t>& dims) {
    return downcast<T>(allocate_tensor(dims, get_tensor_type_from_cpp<T>()));
  }

  template <typename T>
  std::shared_ptr<TypedNeuropodTensor<T>> tensor_from_memory(const std::vector<int64_t>& dims,
                                                             T* data, const Deleter& deleter) {
    return downcast<T>(tensor_from_memory(dims, get_tensor_type_from_cpp<T>(), data, deleter));
  }

  template <typename T>
  std::shared_ptr<TypedNeuropodTensor<T>> full(const std::vector<int64_t>& dims, const T& value);
  template <typename T>
  std::shared_ptr<TypedNeuropodTensor<T>> zeros(const std::vector<int64_t>& dims);
  template <typename T>
  std::shared_ptr<TypedNeuropodTensor<T>> ones(const std::vector<int64_t>& dims);

  /// [0, end) in steps of 1. T: a real number, float16 and bfloat16 included.
  template <typename T>
  std::shared_ptr<TypedNeuropodTensor<T>> arange(T end);
  /// [start, end) in steps of `step`: max(0, ceil((end - start) / step)) elements, element i is
  /// start + i × step. Error(invalid_argument) if `step` is 0 or an argument isn't finite.
  template <typename T>
  std::shared_ptr<TypedNeuropodTensor<T>> arange(T start, T end, T step = T(1));

  /// `rows` × `columns`, ones on the diagonal.
  template <typename T>
  std::shared_ptr<TypedNeuropodTensor<T>> eye(int64_t rows, int64_t columns);

  /// Normally distributed numbers, from a generator seeded by the system. T: a floating-point type.
  template <typename T>
  std::shared_ptr<TypedNeuropodTensor<T>> randn(const std::vector<int64_t>& dims, T mean = T(0),
                                                T stddev = T(1));

 private:
  template <typename T>
  static std::shared_ptr<TypedNeuropodTensor<T>> downcast(std::unique_ptr<NeuropodTensor> tensor) {
    return std::shared_ptr<TypedNeuropodTensor<T>>(
        static_cast<TypedNeuropodTensor<T>*>(tensor.release()));
  }
};

/// The allocator of a backend whose tensors wrap dense memory: memory from a pool, in the
/// framework's own tensor.
///
/// `TensorImpl<T>` needs two constructors: `(dims, T* data, Deleter, NeuropodDevice)` for numeric
/// `T` and `(dims)` for std::string; both throw Error(invalid_argument) for what the framework
/// lacks. The tensor calls the deleter with `data` once, when it is done with the memory; a
/// constructor that throws may have called it or not.
template <template <typename> class TensorImpl>
class DefaultTensorAllocator : public NeuropodTensorAllocator {
 public:
  explicit DefaultTensorAllocator(std::shared_ptr<MemoryPool> pool = MemoryPool::create())
      : pool_(std::move(pool)) {}

  using NeuropodTensorAllocator::allocate_tensor;
  using NeuropodTensorAllocator::tensor_from_memory;
  std::unique_ptr<NeuropodTensor> allocate_tensor(const std::vector<int64_t>& dims, TensorType type,
                                                  NeuropodDevice device = Device::CPU) override;
  std::unique_ptr<NeuropodTensor> tensor_from_memory(const std::vector<int64_t>& dims,
                                                     TensorType type, void* data,
                                                     const Deleter& deleter) override;
  std::unique_ptr<NeuropodTensor> copy_to_device(const NeuropodTensor& tensor,
                                                 NeuropodDevice device) override;
  AllocatorStats stats() const override { return pool_->stats(); }
  void trim() override { pool_->trim(); }

 private:
  const std::shared_ptr<MemoryPool> pool_;
};

}  // namespace neuropod

#include "neuropod/backends/tensor_allocator_impl.hh"
