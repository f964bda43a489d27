#include "neuropod/internal/neuropod_value.hh"

#include "neuropod/base/error.hh"
#include "neuropod/internal/neuropod_tensor.hh"

namespace neuropod {

NeuropodValue::~NeuropodValue() = default;

NeuropodTensor* NeuropodValue::as_tensor() {
  if (!is_tensor_) {
    throw_error(ErrorCode::kInvalidArgument,
                std::string("this value is a '") + get_serialize_tag() +
                    "', not a tensor; check is_tensor() before as_tensor()");
  }
  return static_cast<NeuropodTensor*>(this);
}

const NeuropodTensor* NeuropodValue::as_tensor() const {
  return const_cast<NeuropodValue*>(this)->as_tensor();
}

}  // namespace neuropod
