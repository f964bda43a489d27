#pragma once

#include <memory>
#include <new>
#include <string>

#include "neuropod/backends/echo/pretend_device.hh"
#include "neuropod/core/generic_tensor.hh"
#include "neuropod/internal/neuropod_tensor_raw_data_access.hh"

namespace neuropod::echo {

/// A generic tensor that can come back from the pretend device.
template <typename T>
class EchoTensor : public GenericNeuropodTensor<T> {
 public:
  using GenericNeuropodTensor<T>::GenericNeuropodTensor;

  std::shared_ptr<NeuropodTensor> to(NeuropodDevice device) override {
    if (device == this->get_device() || !reachable(device)) return NeuropodTensor::to(device);
    const size_t bytes = this->get_num_elements() * sizeof(T);
    const std::shared_ptr<PretendDevice> memory = pretend_device();
    const size_t allocated = bytes > 0 ? bytes : 1;
    void* data = memory->allocate(allocated, device);
    if (data == nullptr) throw std::bad_alloc();
    auto copy = std::make_shared<EchoTensor<T>>(
        this->get_dims(), static_cast<T*>(data),
        [memory, allocated, device](void* block) { memory->free(block, allocated, device); },
        device);
    memory->copy(data, device, internal::RawDataAccess::get_untyped_data_ptr(*this),
                 this->get_device(), bytes);
    return copy;
  }

 private:
  static bool reachable(NeuropodDevice device) {
    return device == Device::CPU || PretendDevice::has(device);
  }
};

template <>
class EchoTensor<std::string> : public GenericNeuropodTensor<std::string> {
 public:
  using GenericNeuropodTensor<std::string>::GenericNeuropodTensor;
};

}  // namespace neuropod::echo
