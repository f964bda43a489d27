#pragma once

#include <ATen/core/function.h>

namespace neuropod {

/// True if the model calls an operator that changes the shape or memory of a tensor object in place
/// (`x.unsqueeze_(0)`, `x.resize_(…)`). Given the caller's own tensor, it would change the shape
/// that the caller's next call passes.
bool changes_shapes_in_place(torch::jit::Function& forward);

}  // namespace neuropod
