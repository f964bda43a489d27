#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "neuropod/internal/neuropod_tensor.hh"

namespace neuropod {

/// One element of a numeric tensor.
using ScalarValue = std::variant<bool, int64_t, uint64_t, double>;

/// Element `index` of a CPU tensor that is neither of strings nor complex.
ScalarValue read_scalar(const NeuropodTensor& tensor, size_t index);

/// The same number as another type; false if that type can't hold exactly this number.
bool convert_exactly(const ScalarValue& value, int64_t* result);
bool convert_exactly(const ScalarValue& value, double* result);
bool convert_exactly(const ScalarValue& value, bool* result);

/// For messages.
std::string to_string(const ScalarValue& value);

}  // namespace neuropod
