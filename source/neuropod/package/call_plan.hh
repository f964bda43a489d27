#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "neuropod/base/visibility.hh"
#include "neuropod/internal/config_utils.hh"
#include "neuropod/internal/neuropod_tensor.hh"

namespace neuropod {

/// Names to small integers, fixed when a model is loaded. Looking a name up costs one cheap hash
/// and one comparison. Thread safety: immutable.
class NEUROPOD_EXPORT NameIndex {
 public:
  static constexpr size_t kNotFound = size_t(-1);

  NameIndex() = default;
  /// Index i is names[i]. Error(invalid_argument) if a name is there twice.
  explicit NameIndex(const std::vector<std::string>& names);

  size_t find(std::string_view name) const noexcept {
    if (slots_.empty()) return kNotFound;
    for (size_t i = hash(name) & mask_;; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.index == kNotFound) return kNotFound;
      if (slot.name == name) return slot.index;
    }
  }
  size_t size() const noexcept { return size_; }

 private:
  struct Slot {
    std::string name;
    size_t index = kNotFound;
  };

  // The length, the first and the last bytes: names in one spec seldom share them all, and those
  // that do are told apart by the comparison.
  static size_t hash(std::string_view name) noexcept {
    uint64_t first = 0;
    uint64_t last = 0;
    if (name.size() >= 8) {
      std::memcpy(&first, name.data(), 8);
      std::memcpy(&last, name.data() + name.size() - 8, 8);
    } else if (name.size() >= 4) {
      uint32_t part = 0;
      std::memcpy(&part, name.data(), 4);
      first = part;
      std::memcpy(&part, name.data() + name.size() - 4, 4);
      last = part;
    } else {
      for (const char c : name) first = first << 8 | static_cast<unsigned char>(c);
    }
    const uint64_t mixed = (first ^ (last << 32 | last >> 32) ^ name.size()) * 0x9e3779b97f4a7c15u;
    return static_cast<size_t>(mixed ^ mixed >> 32);
  }

  size_t size_ = 0;
  size_t mask_ = 0;
  std::vector<Slot> slots_;
};

/// Which rules a call is checked by. docs/formats/package.md, "Two sets of rules".
enum class CallRules {
  kUpstream,  ///< packages without format_version: inputs may be missing, symbols bind per side
  kCurrent,   ///< a missing input must be optional, symbols bind across the whole call
};

/// The inputs of one call by their index in the input spec; an input that was left out is null.
/// Points into the caller's map and lives on the stack of one call.
class BoundInputs {
 public:
  explicit BoundInputs(size_t size) : size_(size) {
    if (size > kInline) many_.resize(size);
    values_ = size > kInline ? many_.data() : few_.data();
  }
  BoundInputs(const BoundInputs&) = delete;
  BoundInputs& operator=(const BoundInputs&) = delete;

  size_t size() const noexcept { return size_; }

  /// Null if input `index` was left out.
  const std::shared_ptr<NeuropodValue>* operator[](size_t index) const noexcept {
    return values_[index];
  }
  void set(size_t index, const std::shared_ptr<NeuropodValue>* value) noexcept {
    values_[index] = value;
  }

 private:
  static constexpr size_t kInline = 16;
  size_t size_;
  std::array<const std::shared_ptr<NeuropodValue>*, kInline> few_{};
  std::vector<const std::shared_ptr<NeuropodValue>*> many_;
  const std::shared_ptr<NeuropodValue>** values_;
};

/// The values that symbols have in one call, and which tensor bound each. Lives on a call's stack.
class NEUROPOD_EXPORT SymbolBindings {
 public:
  explicit SymbolBindings(size_t num_symbols);

 private:
  friend class CallPlan;
  struct Binding {
    int64_t value = -1;
    const std::string* bound_by = nullptr;
  };
  static constexpr size_t kInline = 8;
  std::array<Binding, kInline> few_{};
  std::vector<Binding> many_;
  Binding* bindings_;
};

/// A problem API compiled for checking calls. Made when a model is loaded.
///
/// Order of the checks: names, then tensor by tensor in the order of the spec: dtype, rank, each
/// dimension. Messages hold the fragments that existing applications match: "are not found in the
/// input spec", "in the input spec is expected to have 2 dimensions, but had 1". A call that passes
/// allocates nothing, up to 16 tensors a side and 8 symbols.
/// **Thread safety**: immutable.
class NEUROPOD_EXPORT CallPlan {
 public:
  /// `inputs_with_defaults`: names of inputs that may be left out because the model has a default.
  /// Error(invalid_argument): a dimension that is none (0, or below -2), or a name twice on one
  /// side.
  CallPlan(const std::vector<TensorSpec>& inputs, const std::vector<TensorSpec>& outputs,
           CallRules rules, const std::vector<std::string>& inputs_with_defaults = {});
  ~CallPlan();
  CallPlan(const CallPlan&) = delete;

  size_t num_inputs() const noexcept;
  size_t num_symbols() const noexcept;

  /// Fills `bound` from `inputs`. Error(spec_mismatch) for names that aren't in the spec (all of
  /// them, with the nearest known name), a null value, or a required input that is missing.
  void bind(const NeuropodValueMap& inputs, BoundInputs* bound) const;

  /// Checks dtype, rank, dimensions and symbols of what was bound. Error(spec_mismatch).
  /// Returns the bytes of its numbers, which are at hand here; strings don't count.
  uint64_t check_inputs(const BoundInputs& bound, SymbolBindings* symbols) const;

  /// Checks outputs: names not in the spec, null values, dtype, rank, dimensions, symbols (those of
  /// the inputs included, under kCurrent; under kUpstream a conflict between the sides is one
  /// warning per plan). Under kCurrent an output of the spec that is missing is an error too unless
  /// `requested` is not empty, in which case only the requested ones must be there, by either
  /// rules. Error(spec_mismatch). Returns bytes as check_inputs() does.
  uint64_t check_outputs(const NeuropodValueMap& outputs, const std::vector<std::string>& requested,
                         SymbolBindings* symbols) const;

  /// Error(not_found) naming the first of `requested` that isn't an output, and the outputs there
  /// are.
  void check_requested(const std::vector<std::string>& requested) const;

  const NameIndex& input_names() const noexcept;
  const NameIndex& output_names() const noexcept;

 private:
  struct Rep;
  const std::unique_ptr<const Rep> rep_;
};

/// Checks tensors against specs under kUpstream's rules, without a model.
/// `debug_name`: how messages call the specs, e.g. "input spec".
NEUROPOD_EXPORT void validate_tensors_against_specs(const NeuropodValueMap& tensors,
                                                    const std::vector<TensorSpec>& specs,
                                                    const std::string& debug_name = "spec");

}  // namespace neuropod
