#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "neuropod/base/visibility.hh"

namespace neuropod {

class NeuropodTensor;
template <typename T>
class TypedNeuropodTensor;

/// What goes into a model and comes out of it. Today every value is a tensor.
///
/// **Ownership**: always held by `shared_ptr`; a value keeps alive what its memory needs (a
/// framework's tensor, a pool's block, the caller's memory until its deleter ran), not the model it
/// came from.
/// **Thread safety**: thread-compatible; any number of threads may read.
class NEUROPOD_EXPORT NeuropodValue : public std::enable_shared_from_this<NeuropodValue> {
 public:
  explicit NeuropodValue(bool is_tensor) : is_tensor_(is_tensor) {}
  virtual ~NeuropodValue();
  NeuropodValue(const NeuropodValue&) = delete;
  NeuropodValue& operator=(const NeuropodValue&) = delete;

  bool is_tensor() const noexcept { return is_tensor_; }

  /// This value as a tensor; Error(invalid_argument) if it isn't one.
  NeuropodTensor* as_tensor();
  const NeuropodTensor* as_tensor() const;

  /// This value as a tensor of `T`; Error(invalid_argument) naming both dtypes if it isn't one.
  template <typename T>
  TypedNeuropodTensor<T>* as_typed_tensor();
  template <typename T>
  const TypedNeuropodTensor<T>* as_typed_tensor() const;

  /// Equal dtype, shape and content (floating point as numbers: NaN differs from itself).
  /// Error(invalid_argument) if either isn't a tensor.
  bool operator==(const NeuropodValue& other) const;
  bool operator!=(const NeuropodValue& other) const { return !(*this == other); }

  /// Names the concrete kind for serialization.
  virtual const char* get_serialize_tag() const = 0;

 private:
  const bool is_tensor_;
};

/// Inputs or outputs by name.
using NeuropodValueMap = std::unordered_map<std::string, std::shared_ptr<NeuropodValue>>;

}  // namespace neuropod
