#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <vector>

#include "neuropod/internal/config_utils.hh"
#include "neuropod/internal/neuropod_tensor.hh"
#include "neuropod/package/call_plan.hh"

namespace neuropod {

/// Turns what forward() returns into named tensors on the CPU, dense and row-major:
///
///     Dict[str, T]             an output for each key
///     Tensor                   the only output of the spec
///     List[str]                the only output, strings of rank 1
///     int, float, bool, str    the only output, rank 0 (int64, float64, bool, string)
///     List[int|float|bool]     the only output, rank 1
///     NamedTuple               an output for each field
///     Tuple of Dicts           all of them; a name may occur once
///     any other Tuple          element i is output i of the spec; there must be as many
///
/// The elements of dicts and tuples are as the single values above; None leaves its output out.
/// Nothing is copied but what isn't dense or on the CPU, and what the model still holds (a buffer,
/// a parameter, its state): a later call would change it in the caller's hands. An output that is
/// an input's memory stays so.
///
/// **Thread safety**: immutable.
class ForwardOutputs {
 public:
  /// With `strict`, Error(spec_mismatch) if forward()'s return type can't give the outputs of the
  /// spec.
  ForwardOutputs(const c10::FunctionSchema& schema, const std::vector<TensorSpec>& outputs,
                 bool strict);

  /// `requested`: outputs to convert; empty means all. `inputs`: those of the call.
  /// Error(model_error) naming the output for a value that is no tensor, string or number.
  std::unique_ptr<NeuropodValueMap> convert(c10::IValue value, const BoundInputs& inputs,
                                            const std::vector<std::string>& requested) const;

 private:
  std::unique_ptr<NeuropodValueMap> gather(c10::IValue value,
                                           const std::vector<std::string>& requested) const;
  void check(const c10::TypePtr& type) const;

  std::vector<std::string> names_;   // of the output spec
  std::vector<std::string> fields_;  // of the named tuple that forward() returns
};

}  // namespace neuropod
