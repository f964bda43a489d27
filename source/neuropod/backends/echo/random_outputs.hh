#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "neuropod/backends/tensor_allocator.hh"
#include "neuropod/internal/config_utils.hh"
#include "neuropod/package/call_plan.hh"

namespace neuropod::echo {

/// Makes outputs of one call that obey their specs and hold random values: a stand-in for a model
/// that isn't there yet.
///
/// A symbol has the value that the inputs gave it, else one from 1 to 8 for the whole call; "any
/// size" is from 1 to 8 too. Numbers: floats and the parts of complex ones from 0 to 1, integers
/// from 0 to 99. Strings are 3 to 8 letters.
/// The same `seed`, number of the call, inputs' sizes and output give the same tensor.
class RandomOutputs {
 public:
  RandomOutputs(const ModelConfig& config, const BoundInputs& inputs, uint64_t seed,
                uint64_t call_number);

  std::shared_ptr<NeuropodTensor> make(NeuropodTensorAllocator& allocator,
                                       const TensorSpec& output) const;

 private:
  const uint64_t seed_;                             // of this call
  std::unordered_map<std::string, int64_t> sizes_;  // of the symbols that inputs have
};

}  // namespace neuropod::echo
