#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/api/module.h>

#include <cstdint>
#include <vector>

namespace neuropod {

/// What a model's forward() can change in the model: a copy made when it was loaded, to go back to.
/// That keeps the compiled code, which loading the model again would throw away.
///
/// Buffers and attributes are copied; parameters, which hardly any forward() changes, are only
/// watched.
/// **Thread safety**: none; not during a call.
class ModelState {
 public:
  /// Copies the state of `module` unless it is of more than 64 MiB or can't be copied (attributes
  /// of custom classes).
  explicit ModelState(const torch::jit::Module& module);

  /// Puts the model back. False, and nothing changed, if only loading it again can do that.
  bool restore();

 private:
  struct Slot {
    c10::intrusive_ptr<c10::ivalue::Object> object;
    size_t index;
  };
  struct Parameter {
    Slot slot;
    const void* tensor;
    uint32_t version;
  };

  void collect(const c10::intrusive_ptr<c10::ivalue::Object>& object);
  c10::IValue copy(const std::vector<c10::IValue>& values) const;

  std::vector<Slot> slots_;
  std::vector<Parameter> parameters_;
  std::vector<c10::IValue> saved_;  // of slots_
  bool usable_ = false;
};

}  // namespace neuropod
