#include "forward_outputs.hh"

#include <ATen/core/Dict.h>
#include <ATen/core/jit_type.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "neuropod/base/error.hh"
#include "neuropod/internal/neuropod_tensor_raw_data_access.hh"
#include "torch_tensor.hh"
#include "torch_versions.hh"

namespace neuropod {
namespace {

using c10::TypeKind;

template <typename T, typename Element>
std::shared_ptr<NeuropodTensor> make_tensor(at::ScalarType dtype, at::IntArrayRef dims,
                                            const Element* elements) {
  at::Tensor tensor = at::empty(dims, at::TensorOptions().dtype(dtype));
  std::copy_n(elements, tensor.numel(), static_cast<T*>(torch_versions::mutable_data(tensor)));
  return std::make_shared<TorchNeuropodTensor<T>>(std::move(tensor));
}

template <typename T>
std::shared_ptr<NeuropodTensor> make_rank_1(at::ScalarType dtype, const c10::IValue& list) {
  const c10::List<T> elements = c10::impl::toTypedList<T>(list.toList());
  std::vector<char> bytes(elements.size() * sizeof(T));
  T* data = reinterpret_cast<T*>(bytes.data());
  for (size_t i = 0; i < elements.size(); ++i) data[i] = elements.get(i);
  return make_tensor<T>(dtype, {int64_t(elements.size())}, data);
}

std::shared_ptr<NeuropodTensor> convert_tensor(const std::string& name, at::Tensor tensor) {
  if (tensor.layout() != at::kStrided || tensor.is_quantized() || tensor.is_nested()) {
    throw_error(ErrorCode::kModelError,
                "output '" + name +
                    "' is a sparse, nested or quantized torch tensor; let the model "
                    "return .to_dense(), .to_padded_tensor() or .dequantize() of it");
  }
  if (tensor.requires_grad()) tensor = tensor.detach();
  if (!tensor.device().is_cpu()) tensor = tensor.cpu();
  if (!tensor.is_contiguous()) tensor = tensor.contiguous();
  if (tensor.is_conj()) tensor = tensor.resolve_conj();
  if (tensor.is_neg()) tensor = tensor.resolve_neg();
  return wrap_torch_tensor(std::move(tensor));
}

bool holds_strings(const c10::List<c10::IValue>& list) {
  if (list.elementType()->kind() == TypeKind::StringType) return true;
  return !list.empty() && std::all_of(list.begin(), list.end(), [](const c10::IValue& element) {
    return element.isString();
  });
}

std::shared_ptr<NeuropodTensor> convert_list(const std::string& name, c10::IValue value) {
  if (value.isIntList()) return make_rank_1<int64_t>(at::kLong, value);
  if (value.isDoubleList()) return make_rank_1<double>(at::kDouble, value);
  if (value.isBoolList()) return make_rank_1<bool>(at::kBool, value);
  c10::List<c10::IValue> list = std::move(value).toList();
  if (!holds_strings(list)) {
    throw_error(ErrorCode::kModelError,
                "output '" + name + "' is a list of " + list.elementType()->annotation_str() +
                    "; let the model return torch.stack(...) of it, or a list "
                    "of strings or numbers");
  }
  const auto count = int64_t(list.size());
  // Somebody else who holds the list, such as the model's state, could change it later.
  if (list.use_count() > 1) list = list.copy();
  return std::make_shared<TorchNeuropodTensor<std::string>>(
      std::vector<int64_t>{count}, c10::impl::toTypedList<std::string>(list));
}

std::shared_ptr<NeuropodTensor> convert_value(const std::string& name, c10::IValue value) {
  if (value.isTensor()) return convert_tensor(name, std::move(value).toTensor());
  if (value.isList()) return convert_list(name, std::move(value));
  if (value.isString()) {
    return std::make_shared<TorchNeuropodTensor<std::string>>(
        std::vector<int64_t>{}, c10::List<std::string>({value.toStringRef()}));
  }
  if (value.isBool()) {
    const bool element = value.toBool();
    return make_tensor<bool>(at::kBool, {}, &element);
  }
  if (value.isInt()) {
    const int64_t element = value.toInt();
    return make_tensor<int64_t>(at::kLong, {}, &element);
  }
  if (value.isDouble()) {
    const double element = value.toDouble();
    return make_tensor<double>(at::kDouble, {}, &element);
  }
  throw_error(ErrorCode::kModelError, "output '" + name + "' is a TorchScript " + value.tagKind() +
                                          "; a model returns tensors, strings and numbers");
}

// The at::Tensor of an output; null for strings.
const at::Tensor* torch_tensor(const std::shared_ptr<NeuropodValue>& output) {
  void* native = output->as_tensor()->native_tensor(&kTorchTensorKey);
  const auto* value = static_cast<const c10::IValue*>(native);
  return value != nullptr && value->isTensor() ? &value->toTensor() : nullptr;
}

bool is_memory_of_an_input(const at::Tensor& tensor, const BoundInputs& inputs) {
  const auto* data = static_cast<const char*>(torch_versions::const_data(tensor));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    const NeuropodTensor& input = *(*inputs[i])->as_tensor();
    const auto* begin =
        static_cast<const char*>(internal::RawDataAccess::get_untyped_data_ptr(input));
    if (data >= begin && data < begin + internal::RawDataAccess::get_num_bytes(input)) return true;
  }
  return false;
}

// True if every reference to the tensor's storage comes from `outputs`.
bool is_held_by_outputs_only(const at::Tensor& tensor, const NeuropodValueMap& outputs) {
  const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  std::vector<const at::Tensor*> sharing;
  for (const auto& [name, output] : outputs) {
    const at::Tensor* other = torch_tensor(output);
    if (other != nullptr && other->storage().unsafeGetStorageImpl() == storage)
      sharing.push_back(other);
  }
  size_t distinct = 0;
  for (auto it = sharing.begin(); it != sharing.end(); ++it) {
    const auto is_same = [it](const at::Tensor* other) { return other->is_same(**it); };
    if (std::find_if(sharing.begin(), it, is_same) != it) continue;
    ++distinct;
    if ((*it)->use_count() != size_t(std::count_if(it, sharing.end(), is_same))) return false;
  }
  return tensor.storage().use_count() == distinct;
}

// Replaces an output whose memory the model still holds by a copy.
void take_from_model(const NeuropodValueMap& outputs, const BoundInputs& inputs,
                     std::shared_ptr<NeuropodValue>* output) {
  const at::Tensor* tensor = torch_tensor(*output);
  if (tensor == nullptr || tensor->numel() == 0 || is_memory_of_an_input(*tensor, inputs) ||
      is_held_by_outputs_only(*tensor, outputs)) {
    return;
  }
  *output = wrap_torch_tensor(tensor->clone());
}

// The outputs of one call as they are gathered.
class OutputMap {
 public:
  explicit OutputMap(const std::vector<std::string>& requested)
      : requested_(requested), map_(std::make_unique<NeuropodValueMap>()) {}

  void add(const std::string& name, c10::IValue value) {
    if (value.isNone() || (value.isTensor() && !value.toTensor().defined())) return;
    if (!requested_.empty() &&
        std::find(requested_.begin(), requested_.end(), name) == requested_.end()) {
      return;
    }
    if (!map_->emplace(name, convert_value(name, std::move(value))).second) {
      throw_error(ErrorCode::kModelError,
                  "the model returns the output '" + name + "' twice, in two dicts of a tuple");
    }
  }

  void add_dict(const c10::IValue& value) {
    for (const auto& entry : value.toGenericDict()) {
      if (!entry.key().isString()) {
        throw_error(ErrorCode::kModelError,
                    std::string("the model returns a dict whose keys are ") +
                        entry.key().tagKind() + ", not strings");
      }
      add(entry.key().toStringRef(), entry.value());
    }
  }

  std::unique_ptr<NeuropodValueMap> take() { return std::move(map_); }

 private:
  const std::vector<std::string>& requested_;
  std::unique_ptr<NeuropodValueMap> map_;
};

bool all_dicts(c10::ArrayRef<c10::IValue> elements) {
  return std::all_of(elements.begin(), elements.end(),
                     [](const c10::IValue& element) { return element.isGenericDict(); });
}

std::string list_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text.empty() ? "none" : text;
}

}  // namespace

ForwardOutputs::ForwardOutputs(const c10::FunctionSchema& schema,
                               const std::vector<TensorSpec>& outputs, bool strict) {
  for (const TensorSpec& spec : outputs) names_.push_back(spec.name);
  if (schema.returns().size() != 1) return;
  const c10::TypePtr& type = schema.returns()[0].type();
  if (type->kind() == TypeKind::TupleType) {
    if (const auto& fields = type->expectRef<c10::TupleType>().schema()) {
      for (const c10::Argument& field : fields->arguments()) fields_.push_back(field.name());
    }
  }
  if (strict) check(type);
}

void ForwardOutputs::check(const c10::TypePtr& type) const {
  const std::string returns = "the model's forward returns " + type->annotation_str();
  const std::string wanted = ", and the package's outputs are " + list_names(names_);
  switch (type->kind()) {
    case TypeKind::DictType:
    case TypeKind::AnyType:
    case TypeKind::OptionalType:
    case TypeKind::UnionType:
      return;
    case TypeKind::TupleType: {
      for (const std::string& name : fields_.empty() ? std::vector<std::string>{} : names_) {
        if (std::find(fields_.begin(), fields_.end(), name) != fields_.end()) continue;
        std::string message = returns;
        message.append(" with the fields ").append(list_names(fields_)).append(wanted);
        throw_error(ErrorCode::kSpecMismatch, message + "; name output and field alike");
      }
      const auto elements = type->containedTypes();
      const bool dicts = std::all_of(
          elements.begin(), elements.end(),
          [](const c10::TypePtr& element) { return element->kind() == TypeKind::DictType; });
      if (!fields_.empty() || dicts || elements.size() == names_.size()) return;
      throw_error(ErrorCode::kSpecMismatch,
                  returns + wanted + "; the tuple needs an element for each, in the same order");
    }
    default:
      if (names_.size() == 1) return;
      throw_error(ErrorCode::kSpecMismatch,
                  returns + wanted + "; let it return a Dict[str, Tensor] or a NamedTuple");
  }
}

std::unique_ptr<NeuropodValueMap> ForwardOutputs::convert(
    c10::IValue value, const BoundInputs& inputs, const std::vector<std::string>& requested) const {
  // The containers of `value` are gone when gather() returns: what is still shared then is shared
  // with the model, with an input or with another output.
  auto outputs = gather(std::move(value), requested);
  for (auto& [name, output] : *outputs) {
    if (!output->as_tensor()->sole_owner()) take_from_model(*outputs, inputs, &output);
  }
  return outputs;
}

std::unique_ptr<NeuropodValueMap> ForwardOutputs::gather(
    c10::IValue value, const std::vector<std::string>& requested) const {
  OutputMap outputs(requested);
  if (value.isGenericDict()) {
    outputs.add_dict(value);
  } else if (value.isTuple()) {
    const auto tuple = std::move(value).toTuple();
    const auto& elements = tuple->elements();
    const auto& names = fields_.empty() ? names_ : fields_;
    if (fields_.empty() && all_dicts(elements)) {
      for (const c10::IValue& element : elements) outputs.add_dict(element);
    } else if (elements.size() == names.size()) {
      for (size_t i = 0; i < elements.size(); ++i) outputs.add(names[i], elements[i]);
    } else {
      throw_error(ErrorCode::kModelError,
                  "the model returned a tuple of " + std::to_string(elements.size()) +
                      " values for the outputs " + list_names(names) +
                      "; let it return a Dict[str, Tensor] or a NamedTuple");
    }
  } else if (names_.size() == 1) {
    outputs.add(names_[0], std::move(value));
  } else {
    throw_error(ErrorCode::kModelError, std::string("the model returned one ") + value.tagKind() +
                                            " for the outputs " + list_names(names_) +
                                            "; let it return a Dict[str, Tensor] or a NamedTuple");
  }
  return outputs.take();
}

}  // namespace neuropod
