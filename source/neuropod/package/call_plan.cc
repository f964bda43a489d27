#include "neuropod/package/call_plan.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "neuropod/base/error.hh"
#include "neuropod/base/logging.hh"
#include "neuropod/package/nearest_name.hh"

namespace neuropod {
namespace {

constexpr int64_t kAnySize = -1;
// Dimensions of a compiled spec: a size, kAnySize, or kFirstSymbol - <index of the symbol>.
constexpr int64_t kFirstSymbol = -2;

[[noreturn]] void fail(const std::string& message) {
  throw_error(ErrorCode::kSpecMismatch, message);
}

std::string describe(const NeuropodTensor& tensor) {
  const std::vector<int64_t>& dims = tensor.get_dims();
  return fmt::format("{} ({}{})", get_dtype_name(tensor.get_tensor_type()), fmt::join(dims, ", "),
                     dims.size() == 1 ? "," : "");
}

std::vector<std::string> names_of(const std::vector<TensorSpec>& specs) {
  std::vector<std::string> names;
  names.reserve(specs.size());
  for (const TensorSpec& spec : specs) names.push_back(spec.name);
  return names;
}

std::string quoted_list(const std::vector<std::string>& names) {
  return names.empty() ? "nothing" : fmt::format("'{}'", fmt::join(names, "', '"));
}

// Gives each symbol of one call a number.
class SymbolTable {
 public:
  size_t index_of(const std::string& symbol) {
    return indices_.emplace(symbol, indices_.size() + first_).first->second;
  }
  size_t end() const { return first_ + indices_.size(); }

  // A table of the same names that counts on where this one ends.
  SymbolTable another_side() const {
    SymbolTable other;
    other.first_ = end();
    return other;
  }
  const std::unordered_map<std::string, size_t>& indices() const { return indices_; }

 private:
  size_t first_ = 0;
  std::unordered_map<std::string, size_t> indices_;
};

uint8_t element_bytes(TensorType type) {
  return type == STRING_TENSOR ? 0 : static_cast<uint8_t>(get_bytes_per_element(type));
}

struct CompiledSpec {
  TensorType type;
  bool required;
  uint8_t bytes_per_element;  // 0 for strings
  uint32_t rank;
  uint32_t first_dim;  // in CompiledSide::dims
};

// The inputs or the outputs of a problem API.
struct CompiledSide {
  CompiledSide(std::string name, const std::vector<TensorSpec>& specs, SymbolTable* symbols)
      : debug_name(std::move(name)), specs(specs), names(names_of(specs)) {
    compiled.reserve(specs.size());
    for (const TensorSpec& spec : specs) {
      compiled.push_back({spec.type, !spec.optional, element_bytes(spec.type),
                          static_cast<uint32_t>(spec.dims.size()),
                          static_cast<uint32_t>(dims.size())});
      for (const Dimension& dim : spec.dims) dims.push_back(compile(spec, dim, symbols));
    }
  }

  const std::string debug_name;
  const std::vector<TensorSpec> specs;
  const NameIndex names;
  std::vector<CompiledSpec> compiled;
  std::vector<int64_t> dims;

 private:
  int64_t compile(const TensorSpec& spec, const Dimension& dim, SymbolTable* symbols) const {
    if (dim.value > 0 || dim.value == kAnySize) return dim.value;
    if (dim.value == -2) return kFirstSymbol - static_cast<int64_t>(symbols->index_of(dim.symbol));
    throw_error(
        ErrorCode::kInvalidArgument,
        fmt::format("'{}' in the {} has the dimension {}; a dimension is a size above 0, -1 (any "
                    "size) or a symbol",
                    spec.name, debug_name, dim.value));
  }
};

[[noreturn]] void fail_unknown(const CompiledSide& side, const NeuropodValueMap& values) {
  std::vector<std::string> unknown;
  for (const auto& value : values) {
    if (side.names.find(value.first) == NameIndex::kNotFound) unknown.push_back(value.first);
  }
  std::sort(unknown.begin(), unknown.end());
  const std::vector<std::string> known = names_of(side.specs);
  std::string hints;
  for (const std::string& name : unknown) {
    const std::string nearest = nearest_name(name, known);
    if (!nearest.empty()) hints += fmt::format("; did you mean '{}' by '{}'?", nearest, name);
  }
  fail(fmt::format("{} are not found in the {}{}{} it has {}", quoted_list(unknown),
                   side.debug_name, hints, hints.empty() ? ";" : "", quoted_list(known)));
}

[[noreturn]] void fail_null(const CompiledSide& side, const std::string& name) {
  fail(fmt::format("'{}' in the {} has no value: its pointer is null", name, side.debug_name));
}

[[noreturn]] void fail_missing(const CompiledSide& side, size_t index) {
  const TensorSpec& spec = side.specs[index];
  fail(fmt::format("'{}' in the {} is required but missing (expected {})", spec.name,
                   side.debug_name, to_string(spec)));
}

void bind_side(const CompiledSide& side, const NeuropodValueMap& values, BoundInputs* bound) {
  for (const auto& [name, value] : values) {
    const size_t index = side.names.find(name);
    if (index == NameIndex::kNotFound) fail_unknown(side, values);
    if (value == nullptr) fail_null(side, name);
    bound->set(index, &value);
  }
}

void require_all(const CompiledSide& side, const BoundInputs& bound) {
  for (size_t i = 0; i < bound.size(); ++i) {
    if (bound[i] == nullptr && side.compiled[i].required) fail_missing(side, i);
  }
}

}  // namespace

// ------------------------------------------------------------------------------------------------

NameIndex::NameIndex(const std::vector<std::string>& names) : size_(names.size()) {
  if (names.empty()) return;
  size_t slots = 4;
  while (slots < names.size() * 2) slots *= 2;
  mask_ = slots - 1;
  slots_.resize(slots);
  for (size_t index = 0; index < names.size(); ++index) {
    if (find(names[index]) != kNotFound) {
      throw_error(ErrorCode::kInvalidArgument,
                  fmt::format("two tensors of one spec have the name '{}'", names[index]));
    }
    size_t i = hash(names[index]) & mask_;
    while (slots_[i].index != kNotFound) i = (i + 1) & mask_;
    slots_[i] = {names[index], index};
  }
}

SymbolBindings::SymbolBindings(size_t num_symbols) {
  if (num_symbols > kInline) many_.resize(num_symbols);
  bindings_ = num_symbols > kInline ? many_.data() : few_.data();
}

struct CallPlan::Rep {
  // Symbols that inputs and outputs share, by their numbers on both sides.
  struct SharedSymbol {
    std::string name;
    size_t input;
    size_t output;
  };

  Rep(const std::vector<TensorSpec>& input_specs, const std::vector<TensorSpec>& output_specs,
      CallRules call_rules)
      : rules(call_rules),
        inputs("input spec", input_specs, &input_symbols),
        output_symbols(rules == CallRules::kCurrent ? input_symbols : input_symbols.another_side()),
        outputs("output spec", output_specs, &output_symbols) {
    if (rules == CallRules::kCurrent) return;
    for (const auto& [name, index] : input_symbols.indices()) {
      const auto same = output_symbols.indices().find(name);
      if (same != output_symbols.indices().end()) shared.push_back({name, index, same->second});
    }
  }

  const CallRules rules;
  SymbolTable input_symbols;
  CompiledSide inputs;
  SymbolTable output_symbols;
  CompiledSide outputs;
  std::vector<SharedSymbol> shared;
  mutable std::atomic<bool> warned{false};
};

namespace {

template <typename Bindings>
[[noreturn]] void fail_dimension(const CompiledSide& side, size_t index, size_t dim, int64_t actual,
                                 const Bindings& bindings, const std::string& found) {
  const TensorSpec& spec = side.specs[index];
  const int64_t expected = side.dims[side.compiled[index].first_dim + dim];
  std::string reason;
  if (expected > kFirstSymbol) {
    reason = fmt::format("to have size {}", expected);
  } else {
    const auto& binding = bindings[kFirstSymbol - expected];
    reason = fmt::format("to have size {}, the value that '{}' gave to the symbol '{}'",
                         binding.value, *binding.bound_by, spec.dims[dim].symbol);
  }
  fail(
      fmt::format("'{}' in the {}: dimension {} is expected {}, but had {} (expected {}, found {})",
                  spec.name, side.debug_name, dim, reason, actual, to_string(spec), found));
}

[[noreturn]] void fail_type_or_rank(const CompiledSide& side, size_t index,
                                    const NeuropodTensor& tensor) {
  const TensorSpec& spec = side.specs[index];
  std::string problem;
  if (tensor.get_tensor_type() != spec.type) {
    problem = fmt::format("be {}, but was {}", get_dtype_name(spec.type),
                          get_dtype_name(tensor.get_tensor_type()));
  } else {
    problem =
        fmt::format("have {} dimensions, but had {}", spec.dims.size(), tensor.get_dims().size());
  }
  fail(fmt::format("'{}' in the {} is expected to {} (expected {}, found {})", spec.name,
                   side.debug_name, problem, to_string(spec), describe(tensor)));
}

// `Binding`: SymbolBindings keeps it private to itself and the plan. Returns the tensor's bytes, 0
// for strings.
template <typename Binding>
uint64_t check_tensor(const CompiledSide& side, size_t index, const NeuropodValue& value,
                      Binding* bindings) {
  if (!value.is_tensor()) {
    fail(fmt::format("'{}' in the {} isn't a tensor", side.specs[index].name, side.debug_name));
  }
  const auto& tensor = static_cast<const NeuropodTensor&>(value);
  const CompiledSpec& expected = side.compiled[index];
  const std::vector<int64_t>& dims = tensor.get_dims();
  if (tensor.get_tensor_type() != expected.type || dims.size() != expected.rank) {
    fail_type_or_rank(side, index, tensor);
  }
  const int64_t* wanted = side.dims.data() + expected.first_dim;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (wanted[i] == dims[i] || wanted[i] == kAnySize) continue;
    if (wanted[i] <= kFirstSymbol) {
      Binding& binding = bindings[kFirstSymbol - wanted[i]];
      if (binding.bound_by == nullptr) binding = {dims[i], &side.specs[index].name};
      if (binding.value == dims[i]) continue;
    }
    fail_dimension(side, index, i, dims[i], bindings, describe(tensor));
  }
  return uint64_t{tensor.get_num_elements()} * expected.bytes_per_element;
}

// Checks what was bound, and returns its bytes.
template <typename Binding>
uint64_t check_tensors(const CompiledSide& side, const BoundInputs& bound, Binding* bindings) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < bound.size(); ++i) {
    if (bound[i] != nullptr) bytes += check_tensor(side, i, **bound[i], bindings);
  }
  return bytes;
}

}  // namespace

CallPlan::CallPlan(const std::vector<TensorSpec>& inputs, const std::vector<TensorSpec>& outputs,
                   CallRules rules, const std::vector<std::string>& inputs_with_defaults)
    : rep_([&] {
        auto rep = std::make_unique<Rep>(inputs, outputs, rules);
        for (const std::string& name : inputs_with_defaults) {
          const size_t index = rep->inputs.names.find(name);
          if (index != NameIndex::kNotFound) rep->inputs.compiled[index].required = false;
        }
        return rep;
      }()) {}

CallPlan::~CallPlan() = default;

size_t CallPlan::num_inputs() const noexcept { return rep_->inputs.specs.size(); }
size_t CallPlan::num_symbols() const noexcept {
  return std::max(rep_->input_symbols.end(), rep_->output_symbols.end());
}
const NameIndex& CallPlan::input_names() const noexcept { return rep_->inputs.names; }
const NameIndex& CallPlan::output_names() const noexcept { return rep_->outputs.names; }

void CallPlan::bind(const NeuropodValueMap& inputs, BoundInputs* bound) const {
  bind_side(rep_->inputs, inputs, bound);
  if (rep_->rules == CallRules::kCurrent && inputs.size() < bound->size()) {
    require_all(rep_->inputs, *bound);
  }
}

uint64_t CallPlan::check_inputs(const BoundInputs& bound, SymbolBindings* symbols) const {
  return check_tensors(rep_->inputs, bound, symbols->bindings_);
}

uint64_t CallPlan::check_outputs(const NeuropodValueMap& outputs,
                                 const std::vector<std::string>& requested,
                                 SymbolBindings* symbols) const {
  const CompiledSide& side = rep_->outputs;
  BoundInputs bound(side.specs.size());
  bind_side(side, outputs, &bound);
  for (const std::string& name : requested) {
    const size_t index = side.names.find(name);
    if (index != NameIndex::kNotFound && bound[index] == nullptr) fail_missing(side, index);
  }
  if (requested.empty() && rep_->rules == CallRules::kCurrent && outputs.size() < bound.size()) {
    require_all(side, bound);
  }
  const uint64_t bytes = check_tensors(side, bound, symbols->bindings_);
  for (const Rep::SharedSymbol& symbol : rep_->shared) {
    const auto& input = symbols->bindings_[symbol.input];
    const auto& output = symbols->bindings_[symbol.output];
    if (input.bound_by == nullptr || output.bound_by == nullptr || input.value == output.value)
      continue;
    if (rep_->warned.exchange(true, std::memory_order_relaxed)) continue;
    log(LogLevel::kWarn,
        fmt::format("the symbol '{}' is {} in input '{}' but {} in output '{}'; packages with a "
                    "format_version, and strict=true, refuse that",
                    symbol.name, input.value, *input.bound_by, output.value, *output.bound_by));
  }
  return bytes;
}

void CallPlan::check_requested(const std::vector<std::string>& requested) const {
  for (const std::string& name : requested) {
    if (rep_->outputs.names.find(name) != NameIndex::kNotFound) continue;
    const std::vector<std::string> known = names_of(rep_->outputs.specs);
    const std::string nearest = nearest_name(name, known);
    throw_error(ErrorCode::kNotFound,
                fmt::format("there is no output '{}'{}; the model has {}", name,
                            nearest.empty() ? "" : fmt::format(": did you mean '{}'?", nearest),
                            quoted_list(known)));
  }
}

void validate_tensors_against_specs(const NeuropodValueMap& tensors,
                                    const std::vector<TensorSpec>& specs,
                                    const std::string& debug_name) {
  SymbolTable symbols;
  const CompiledSide side(debug_name, specs, &symbols);
  BoundInputs bound(specs.size());
  bind_side(side, tensors, &bound);
  struct Binding {
    int64_t value = -1;
    const std::string* bound_by = nullptr;
  };
  std::vector<Binding> bindings(symbols.end());
  check_tensors(side, bound, bindings.data());
}

}  // namespace neuropod
