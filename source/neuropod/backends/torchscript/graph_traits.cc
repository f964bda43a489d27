#include "graph_traits.hh"

#include <torch/csrc/jit/api/function_impl.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace neuropod {
namespace {

constexpr std::string_view kShapeChanging[] = {
    "aten::as_strided_", "aten::rename_",    "aten::resize_",   "aten::resize_as_",
    "aten::set_",        "aten::squeeze_",   "aten::swapaxes_", "aten::swapdims_",
    "aten::t_",          "aten::transpose_", "aten::unsqueeze_"};
constexpr std::string_view kDifferentiating[] = {"aten::grad", "aten::backward", "aten::_backward"};

template <size_t N>
bool is_one_of(std::string_view kind, const std::string_view (&kinds)[N]) {
  return std::find(std::begin(kinds), std::end(kinds), kind) != std::end(kinds);
}

void look_through(const torch::jit::Block* block, GraphTraits* traits) {
  for (const torch::jit::Node* node : block->nodes()) {
    const std::string_view kind = node->kind().toQualString();
    if (is_one_of(kind, kShapeChanging)) traits->changes_shapes = true;
    if (is_one_of(kind, kDifferentiating)) traits->differentiates = true;
    for (const torch::jit::Block* inner : node->blocks()) look_through(inner, traits);
  }
}

}  // namespace

GraphTraits find_graph_traits(torch::jit::Function& forward) {
  GraphTraits traits;
  if (torch::jit::GraphFunction* function = torch::jit::tryToGraphFunction(forward)) {
    // The executor inlines the same graph at the first call, and keeps it.
    look_through(function->optimized_graph()->block(), &traits);
  }
  return traits;
}

}  // namespace neuropod
