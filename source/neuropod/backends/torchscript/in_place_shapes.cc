#include "in_place_shapes.hh"

#include <torch/csrc/jit/api/function_impl.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace neuropod {
namespace {

constexpr std::array<std::string_view, 11> kOperators = {
    "aten::as_strided_", "aten::rename_",    "aten::resize_",   "aten::resize_as_",
    "aten::set_",        "aten::squeeze_",   "aten::swapaxes_", "aten::swapdims_",
    "aten::t_",          "aten::transpose_", "aten::unsqueeze_"};

bool changes_shapes(const torch::jit::Block* block) {
  return std::any_of(
      block->nodes().begin(), block->nodes().end(), [](const torch::jit::Node* node) {
        const std::string_view kind = node->kind().toQualString();
        if (std::find(kOperators.begin(), kOperators.end(), kind) != kOperators.end()) return true;
        return std::any_of(node->blocks().begin(), node->blocks().end(), changes_shapes);
      });
}

}  // namespace

bool changes_shapes_in_place(torch::jit::Function& forward) {
  torch::jit::GraphFunction* function = torch::jit::tryToGraphFunction(forward);
  // The executor inlines the same graph at the first call, and keeps it.
  return function != nullptr && changes_shapes(function->optimized_graph()->block());
}

}  // namespace neuropod
