#pragma once

#include <memory>
#include <string>
#include <vector>

#include "neuropod/backends/tensor_allocator.hh"

namespace neuropod {

/// A tensor without a framework: memory and a deleter. Every backend takes it without a copy where
/// its framework can use the memory in place.
template <typename T>
class GenericNeuropodTensor : public TypedNeuropodTensor<T> {
 public:
  GenericNeuropodTensor(std::vector<int64_t> dims, T* data, Deleter deleter, NeuropodDevice device)
      : TypedNeuropodTensor<T>(std::move(dims), data, device),
        memory_(data),
        deleter_(std::move(deleter)) {}
  ~GenericNeuropodTensor() override {
    if (deleter_) deleter_(memory_);
  }
  bool held_elsewhere() const override { return false; }  // what holds it holds the tensor itself

 private:
  T* const memory_;
  const Deleter deleter_;
};

template <>
class NEUROPOD_EXPORT GenericNeuropodTensor<std::string> : public TypedNeuropodTensor<std::string> {
 public:
  explicit GenericNeuropodTensor(std::vector<int64_t> dims);
  ~GenericNeuropodTensor() override;
  std::string_view get_element(size_t index) const override;
  void set_element(size_t index, std::string_view value) override;

 private:
  std::vector<std::string> elements_;
};

/// An allocator of its own for tensors that belong to no model.
NEUROPOD_EXPORT std::unique_ptr<NeuropodTensorAllocator> get_generic_tensor_allocator();

}  // namespace neuropod
