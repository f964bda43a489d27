#pragma once

#include <ATen/core/function.h>

namespace neuropod {

/// What has to be known of a model's code before it runs.
struct GraphTraits {
  /// It calls an operator that changes the shape or memory of a tensor object in place
  /// (`x.unsqueeze_(0)`, `x.resize_(…)`). Given the caller's own tensor, it would change the shape
  /// that the caller's next call passes.
  bool changes_shapes = false;

  /// It differentiates (`torch.autograd.grad`), as force fields do.
  bool differentiates = false;
};

/// Looks through `forward` and all that it calls.
GraphTraits find_graph_traits(torch::jit::Function& forward);

}  // namespace neuropod
