#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "neuropod/base/error.hh"
#include "neuropod/base/visibility.hh"
#include "neuropod/internal/deleter.hh"
#include "neuropod/internal/neuropod_value.hh"
#include "neuropod/internal/tensor_accessor.hh"
#include "neuropod/internal/tensor_types.hh"
#include "neuropod/options.hh"

namespace neuropod {

namespace internal {
class RawDataAccess;
}

/// A dense, row-major tensor of any dtype and rank, on one device. Rank 0 and tensors without
/// elements are ordinary.
///
/// Frameworks derive from `TypedNeuropodTensor<T>` and keep their own tensor in the derived class;
/// the data pointer is fixed at construction, so reading costs no virtual call.
///
/// **Thread safety**: thread-compatible. **Errors**: reading the content of a tensor that isn't on
/// the CPU is Error(invalid_argument), which says `.to(CPU)`.
class NEUROPOD_EXPORT NeuropodTensor : public NeuropodValue {
 public:
  ~NeuropodTensor() override;

  const std::vector<int64_t>& get_dims() const noexcept { return dims_; }

  /// Product of the dimensions: 1 for rank 0, 0 if any dimension is 0.
  size_t get_num_elements() const noexcept { return num_elements_; }

  TensorType get_tensor_type() const noexcept { return type_; }
  NeuropodDevice get_device() const noexcept { return device_; }

  /// Row-major strides, in elements.
  std::vector<int64_t> get_strides() const;

  /// See NeuropodValue; checks the dtype.
  template <typename T>
  TypedNeuropodTensor<T>* as_typed_tensor();
  template <typename T>
  const TypedNeuropodTensor<T>* as_typed_tensor() const;

  /// The only element of a tensor with one element, whatever its rank. Error(invalid_argument) if
  /// there are more or none.
  template <typename T>
  T& as_scalar();
  template <typename T>
  const T& as_scalar() const;

  /// This tensor on `device`: itself if it is there already, otherwise a copy made by the framework
  /// that owns it. Error(invalid_argument) if that framework can't reach the device.
  virtual std::shared_ptr<NeuropodTensor> to(NeuropodDevice device);

  /// True when nobody but this tensor refers to its storage, so that handing the storage on can't
  /// be seen by anybody else. False when in doubt.
  virtual bool sole_owner() const { return false; }

  /// True when somebody besides this tensor may refer to its memory, wherever that came from; true
  /// when in doubt. So a worker learns whether a model has kept an input.
  virtual bool held_elsewhere() const { return true; }

  /// The framework's own tensor, if this tensor is an implementation that knows `key`; null
  /// otherwise. Each implementation has a key of its own (the address of a static), which makes the
  /// question "is this one of mine?" one comparison.
  virtual void* native_tensor(const void* key) noexcept;

  const char* get_serialize_tag() const override;

 protected:
  /// `data`: the first element (null for strings; may be null when there are no elements).
  NeuropodTensor(TensorType type, std::vector<int64_t> dims, NeuropodDevice device, void* data);

  /// For implementations that know their memory only after construction of the base.
  void set_data(void* data) noexcept { data_ = data; }

  /// Throws unless the content can be read here.
  void require_cpu() const {
    if (device_ != Device::CPU) throw_not_on_cpu();
  }

 private:
  friend class internal::RawDataAccess;
  template <typename T>
  friend class TypedNeuropodTensor;

  [[noreturn]] void throw_not_on_cpu() const;
  [[noreturn]] void throw_not_scalar() const;

  const TensorType type_;
  const NeuropodDevice device_;
  const std::vector<int64_t> dims_;
  size_t num_elements_;
  void* data_;
};

/// Prints dtype, shape and, on the CPU, the content: all of up to five elements, otherwise the
/// first and last three, e.g. "[0.5, 1.5, 2.5 ... 5.5, 6.5, 7.5]".
NEUROPOD_EXPORT std::ostream& operator<<(std::ostream& out, const NeuropodTensor& tensor);

namespace internal {
NEUROPOD_EXPORT void print_content(std::ostream& out, const NeuropodTensor& tensor);
}

/// Prints the content only.
template <typename T>
std::ostream& operator<<(std::ostream& out, const TypedNeuropodTensor<T>& tensor) {
  internal::print_content(out, tensor);
  return out;
}

/// A tensor of fixed-size elements.
template <typename T>
class TypedNeuropodTensor : public NeuropodTensor {
 public:
  /// The first element; null only if there are no elements.
  T* get_raw_data_ptr() {
    require_cpu();
    return static_cast<T*>(data_);
  }
  const T* get_raw_data_ptr() const {
    require_cpu();
    return static_cast<const T*>(data_);
  }

  /// Indexed access with the rank checked once: `auto a = t->accessor<2>(); a[i][j]`. Rank 0 has no
  /// accessor; use as_scalar(). The accessor must not outlive the tensor.
  template <size_t N>
  TensorAccessor<T*, N> accessor() {
    return make_accessor<T*, N>(get_raw_data_ptr(), get_dims());
  }
  template <size_t N>
  TensorAccessor<const T*, N> accessor() const {
    return make_accessor<const T*, N>(get_raw_data_ptr(), get_dims());
  }

  /// The same elements under another shape; the element counts must be equal. -1 isn't allowed.
  template <typename... Dim>
  TensorView<T*, sizeof...(Dim)> view(Dim... dims) {
    return make_view<T*, sizeof...(Dim)>(get_raw_data_ptr(), get_num_elements(),
                                         {int64_t(dims)...});
  }
  template <typename... Dim>
  TensorView<const T*, sizeof...(Dim)> view(Dim... dims) const {
    return make_view<const T*, sizeof...(Dim)>(get_raw_data_ptr(), get_num_elements(),
                                               {int64_t(dims)...});
  }

  /// All elements in order, as rank 1.
  TensorView<T*, 1> flat() { return view(get_num_elements()); }
  TensorView<const T*, 1> flat() const { return view(get_num_elements()); }

  using NeuropodTensor::as_scalar;
  T& as_scalar() {
    if (get_num_elements() != 1) throw_not_scalar();
    return *get_raw_data_ptr();
  }
  const T& as_scalar() const {
    if (get_num_elements() != 1) throw_not_scalar();
    return *get_raw_data_ptr();
  }

  std::vector<T> get_data_as_vector() const {
    const T* data = get_raw_data_ptr();
    return std::vector<T>(data, data + get_num_elements());
  }

  /// Copies `count` elements in; Error(invalid_argument) naming both counts if it isn't this
  /// tensor's.
  void copy_from(const T* data, size_t count);
  void copy_from(const std::vector<T>& data);

 protected:
  TypedNeuropodTensor(std::vector<int64_t> dims, T* data, NeuropodDevice device = Device::CPU)
      : NeuropodTensor(get_tensor_type_from_cpp<T>(), std::move(dims), device, data) {}
};

/// A tensor of strings: bytes of any length, NULs included; UTF-8 where the application says so.
/// Frameworks hold strings in forms of their own, so elements are reached through two virtual
/// functions.
template <>
class NEUROPOD_EXPORT TypedNeuropodTensor<std::string> : public NeuropodTensor {
 public:
  /// One element: reads as a string, and assigning to it writes the tensor.
  using Element = StringProxy<TypedNeuropodTensor<std::string>>;

  template <size_t N>
  TensorAccessor<TypedNeuropodTensor<std::string>&, N> accessor() {
    require_cpu();
    return make_accessor<TypedNeuropodTensor<std::string>&, N>(*this, get_dims());
  }
  template <size_t N>
  TensorAccessor<const TypedNeuropodTensor<std::string>&, N> accessor() const {
    require_cpu();
    return make_accessor<const TypedNeuropodTensor<std::string>&, N>(*this, get_dims());
  }
  template <typename... Dim>
  TensorView<TypedNeuropodTensor<std::string>&, sizeof...(Dim)> view(Dim... dims) {
    require_cpu();
    return make_view<TypedNeuropodTensor<std::string>&, sizeof...(Dim)>(*this, get_num_elements(),
                                                                        {int64_t(dims)...});
  }
  template <typename... Dim>
  TensorView<const TypedNeuropodTensor<std::string>&, sizeof...(Dim)> view(Dim... dims) const {
    require_cpu();
    return make_view<const TypedNeuropodTensor<std::string>&, sizeof...(Dim)>(
        *this, get_num_elements(), {int64_t(dims)...});
  }
  TensorView<TypedNeuropodTensor<std::string>&, 1> flat() { return view(get_num_elements()); }
  TensorView<const TypedNeuropodTensor<std::string>&, 1> flat() const {
    return view(get_num_elements());
  }

  /// Element `index` in row-major order, in place; valid until the element is written or the tensor
  /// dies. `index` isn't checked.
  virtual std::string_view get_element(size_t index) const = 0;

  /// Replaces element `index`.
  virtual void set_element(size_t index, std::string_view value) = 0;

  std::vector<std::string> get_data_as_vector() const;

  /// Error(invalid_argument) naming both counts if `data` hasn't one string per element.
  void copy_from(const std::vector<std::string>& data);

 protected:
  explicit TypedNeuropodTensor(std::vector<int64_t> dims)
      : NeuropodTensor(STRING_TENSOR, std::move(dims), Device::CPU, nullptr) {}
};

// ------------------------------------------------------------------------------------------------

namespace internal {
[[noreturn]] NEUROPOD_EXPORT void throw_wrong_dtype(TensorType actual, TensorType requested);
[[noreturn]] NEUROPOD_EXPORT void throw_unknown_dtype(TensorType type);
/// The product of the dimensions. Error(invalid_argument) if one is negative or the tensor would
/// have more than 2^63 - 1 bytes; a dimension of 0 doesn't excuse the others.
NEUROPOD_EXPORT size_t count_elements(TensorType type, const std::vector<int64_t>& dims);
[[noreturn]] NEUROPOD_EXPORT void throw_wrong_element_count(size_t expected, size_t actual);
NEUROPOD_EXPORT void copy_elements(void* to, const void* from, size_t bytes);
}  // namespace internal

template <typename T>
TypedNeuropodTensor<T>* NeuropodTensor::as_typed_tensor() {
  if (type_ != get_tensor_type_from_cpp<T>()) {
    internal::throw_wrong_dtype(type_, get_tensor_type_from_cpp<T>());
  }
  return static_cast<TypedNeuropodTensor<T>*>(this);
}

template <typename T>
const TypedNeuropodTensor<T>* NeuropodTensor::as_typed_tensor() const {
  return const_cast<NeuropodTensor*>(this)->as_typed_tensor<T>();
}

template <typename T>
TypedNeuropodTensor<T>* NeuropodValue::as_typed_tensor() {
  return as_tensor()->as_typed_tensor<T>();
}

template <typename T>
const TypedNeuropodTensor<T>* NeuropodValue::as_typed_tensor() const {
  return as_tensor()->as_typed_tensor<T>();
}

template <typename T>
T& NeuropodTensor::as_scalar() {
  return as_typed_tensor<T>()->as_scalar();
}

template <typename T>
const T& NeuropodTensor::as_scalar() const {
  return as_typed_tensor<T>()->as_scalar();
}

template <typename T>
void TypedNeuropodTensor<T>::copy_from(const T* data, size_t count) {
  if (count != get_num_elements()) internal::throw_wrong_element_count(get_num_elements(), count);
  internal::copy_elements(get_raw_data_ptr(), data, count * sizeof(T));
}

template <typename T>
void TypedNeuropodTensor<T>::copy_from(const std::vector<T>& data) {
  if constexpr (std::is_same_v<T, bool>) {
    if (data.size() != get_num_elements()) {
      internal::throw_wrong_element_count(get_num_elements(), data.size());
    }
    std::copy(data.begin(), data.end(), get_raw_data_ptr());
  } else {
    copy_from(data.data(), data.size());
  }
}

/// `TensorClass<T>(params...)` for the C++ type of a numeric `type`. Error(invalid_argument) for
/// strings and for what is no dtype.
template <template <typename> class TensorClass, typename... Params>
std::unique_ptr<NeuropodTensor> make_tensor_no_string(TensorType type, Params&&... params) {
  switch (type) {
#define NEUROPOD_MAKE(enumerator, value, name, cpp_type) \
  case enumerator:                                       \
    return std::make_unique<TensorClass<cpp_type>>(std::forward<Params>(params)...);
    NEUROPOD_FOR_EACH_NUMERIC_DTYPE(NEUROPOD_MAKE)
#undef NEUROPOD_MAKE
    case STRING_TENSOR:
      break;
  }
  internal::throw_unknown_dtype(type);
}

/// The same, strings included.
template <template <typename> class TensorClass, typename... Params>
std::unique_ptr<NeuropodTensor> make_tensor(TensorType type, Params&&... params) {
  if (type == STRING_TENSOR) {
    return std::make_unique<TensorClass<std::string>>(std::forward<Params>(params)...);
  }
  return make_tensor_no_string<TensorClass>(type, std::forward<Params>(params)...);
}

}  // namespace neuropod
