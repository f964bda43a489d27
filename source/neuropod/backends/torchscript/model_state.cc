#include "model_state.hh"

#include <ATen/core/jit_type.h>

#include <exception>
#include <utility>

#include "torch_versions.hh"

namespace neuropod {
namespace {

constexpr size_t kMaxCopiedBytes = size_t(64) << 20;

size_t count_bytes(const std::vector<c10::IValue>& values) {
  size_t bytes = 0;
  for (const c10::IValue& value : values) {
    c10::IValue::HashAliasedIValues parts;
    value.getSubValues(parts);
    for (const c10::IValue& part : parts) {
      if (part.isTensor() && part.toTensor().defined()) bytes += part.toTensor().nbytes();
    }
  }
  return bytes;
}

}  // namespace

ModelState::ModelState(const torch::jit::Module& module) {
  try {
    collect(module._ivalue());
    std::vector<c10::IValue> values;
    for (const Slot& slot : slots_) values.push_back(slot.object->getSlot(slot.index));
    if (count_bytes(values) > kMaxCopiedBytes) return;
    saved_ = copy(values).toTupleRef().elements().vec();
    usable_ = true;
  } catch (const std::exception&) {
    // An attribute that can't be copied; restore() says so.
    saved_.clear();
  }
}

bool ModelState::restore() {
  if (!usable_) return false;
  for (const Parameter& parameter : parameters_) {
    const at::Tensor& now = parameter.slot.object->getSlot(parameter.slot.index).toTensor();
    if (now.unsafeGetTensorImpl() != parameter.tensor || now._version() != parameter.version)
      return false;
  }
  const c10::IValue fresh = copy(saved_);
  for (size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].object->setSlot(slots_[i].index, fresh.toTupleRef().elements()[i]);
  }
  return true;
}

void ModelState::collect(const c10::intrusive_ptr<c10::ivalue::Object>& object) {
  const auto type = object->type();
  for (size_t i = 0; i < type->numAttributes(); ++i) {
    const c10::IValue& value = object->getSlot(i);
    if (value.isModule()) {
      collect(value.toObject());
    } else if (type->is_parameter(i) && value.isTensor() && value.toTensor().defined()) {
      parameters_.push_back({{object, i},
                             value.toTensor().unsafeGetTensorImpl(),
                             uint32_t(value.toTensor()._version())});
    } else {
      slots_.push_back({object, i});
    }
  }
}

// A deep copy that keeps references to parameters, and what refers to one thing twice.
c10::IValue ModelState::copy(const std::vector<c10::IValue>& values) const {
  torch_versions::CopiedValues copied;
  for (const Parameter& parameter : parameters_) {
    const c10::IValue& value = parameter.slot.object->getSlot(parameter.slot.index);
    copied.emplace(value, value);
  }
  return c10::IValue(c10::ivalue::Tuple::create(values)).deepcopy(copied);
}

}  // namespace neuropod
