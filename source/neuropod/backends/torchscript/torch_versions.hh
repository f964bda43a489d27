#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <torch/version.h>

#include <type_traits>

/// What differs between the versions of torch that this plug-in compiles against, 1.13 and newer:
/// each function here does one thing by whichever name the torch at hand has for it. A name is
/// detected where that can be done, because it says what the code relies on; else the version is
/// compared.

/// 1 where tensors of uint16, uint32 and uint64 exist (torch 2.3).
#define NEUROPOD_TORCH_HAS_WIDE_UNSIGNED \
  (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3))

namespace neuropod::torch_versions {

/// The first element's address, for writing. (A torch that has lazily copied tensors, 2.1, tells
/// reading from writing.)
template <typename Tensor>
void* mutable_data(const Tensor& tensor) {
  if constexpr (requires { tensor.mutable_data_ptr(); }) {
    return tensor.mutable_data_ptr();
  } else {
    return tensor.data_ptr();
  }
}

/// The first element's address, for reading.
template <typename Tensor>
const void* const_data(const Tensor& tensor) {
  if constexpr (requires { tensor.const_data_ptr(); }) {
    return tensor.const_data_ptr();
  } else {
    return tensor.data_ptr();
  }
}

template <typename Hooks>
int gpu_count(const Hooks& hooks) {
  if constexpr (requires { hooks.deviceCount(); }) {
    return int(hooks.deviceCount());
  } else {
    return hooks.getNumGPUs();
  }
}

template <typename Value, typename = void>
struct CopiedValuesOf {
  using type = typename Value::HashAliasedIValueMap;
};
template <typename Value>
struct CopiedValuesOf<Value, std::void_t<typename Value::HashIdentityIValueMap>> {
  using type = typename Value::HashIdentityIValueMap;
};

/// What IValue::deepcopy() has copied already, or must not copy: from original to copy.
using CopiedValues = typename CopiedValuesOf<c10::IValue>::type;

}  // namespace neuropod::torch_versions
