#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "neuropod/internal/neuropod_tensor.hh"
#include "torch_device.hh"
#include "torch_versions.hh"

namespace neuropod {

/// The key under which native_tensor() returns a `c10::IValue*` that holds an at::Tensor or a
/// List[str].
extern const char kTorchTensorKey;

/// An at::Tensor over `data`, which `deleter` frees when torch is finished with it. When this
/// throws, the deleter may have run.
at::Tensor wrap_memory(const std::vector<int64_t>& dims, TensorType type, void* data,
                       Deleter deleter, NeuropodDevice device);

/// True when the IValue holds the only reference to memory that torch itself allocated. (Memory
/// that was lent to torch may be seen by whoever lent it.)
bool is_sole_owner(const c10::IValue& tensor) noexcept;

/// True unless the IValue holds the only reference to its tensor and to the tensor's storage.
bool is_held_elsewhere(const c10::IValue& tensor) noexcept;

/// A tensor whose memory is that of an at::Tensor, dense and row-major. The at::Tensor keeps the
/// memory alive, so one that aliases a model's input outlives that input.
template <typename T>
class TorchNeuropodTensor : public TypedNeuropodTensor<T> {
 public:
  TorchNeuropodTensor(const std::vector<int64_t>& dims, T* data, Deleter deleter,
                      NeuropodDevice device)
      : TypedNeuropodTensor<T>(dims, data, device),
        value_(wrap_memory(dims, get_tensor_type_from_cpp<T>(), data, std::move(deleter), device)) {
  }

  /// `tensor`: contiguous, of dtype T.
  explicit TorchNeuropodTensor(at::Tensor tensor)
      : TypedNeuropodTensor<T>(tensor.sizes().vec(),
                               static_cast<T*>(torch_versions::mutable_data(tensor)),
                               from_torch_device(tensor.device())),
        value_(std::move(tensor)) {}

  std::shared_ptr<NeuropodTensor> to(NeuropodDevice device) override;
  bool sole_owner() const override { return is_sole_owner(value_); }
  bool held_elsewhere() const override { return is_held_elsewhere(value_); }
  void* native_tensor(const void* key) noexcept override {
    return key == &kTorchTensorKey ? &value_ : nullptr;
  }

 private:
  c10::IValue value_;
};

/// Strings in a flat List[str], in row-major order. TorchScript itself knows strings (`str`, rank
/// 0) and lists of them (rank 1); a model takes no other rank.
template <>
class TorchNeuropodTensor<std::string> : public TypedNeuropodTensor<std::string> {
 public:
  explicit TorchNeuropodTensor(std::vector<int64_t> dims);

  /// `strings`: as many as `dims` say, and nobody else changes the list.
  TorchNeuropodTensor(std::vector<int64_t> dims, c10::List<std::string> strings);

  std::string_view get_element(size_t index) const override;
  void set_element(size_t index, std::string_view value) override;
  void* native_tensor(const void* key) noexcept override {
    return key == &kTorchTensorKey ? &value_ : nullptr;
  }

 private:
  c10::IValue value_;
};

/// Wraps a contiguous at::Tensor. Error(model_error) naming torch's dtype if we don't carry it.
std::shared_ptr<NeuropodTensor> wrap_torch_tensor(at::Tensor tensor);

/// `value`'s content as torch takes it, without a copy: one of our tensors as it is; any other
/// implementation's memory wrapped, which keeps `value` alive as long as torch uses it. A list of
/// strings is a new one, so that a model that appends to it doesn't change its caller's; the
/// strings are shared if they are torch's, otherwise copied.
c10::IValue to_ivalue(const std::shared_ptr<NeuropodValue>& value);

/// `value` as to_ivalue() has it, but a numeric tensor always as a new at::Tensor over its memory.
c10::IValue wrap_value(const std::shared_ptr<NeuropodValue>& value);

template <typename T>
std::shared_ptr<NeuropodTensor> TorchNeuropodTensor<T>::to(NeuropodDevice device) {
  if (device == this->get_device()) {
    return std::static_pointer_cast<NeuropodTensor>(this->shared_from_this());
  }
  if (!torch_has_device(device)) return NeuropodTensor::to(device);
  return wrap_torch_tensor(value_.toTensor().to(to_torch_device(device)));
}

}  // namespace neuropod
