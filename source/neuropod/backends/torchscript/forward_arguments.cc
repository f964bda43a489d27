#include "forward_arguments.hh"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "neuropod/base/error.hh"
#include "scalar_values.hh"
#include "torch_tensor.hh"

namespace neuropod {
namespace {

using c10::TypeKind;

bool takes_none(const c10::TypePtr& type) {
  return type->kind() == TypeKind::AnyType || c10::NoneType::get()->isSubtypeOf(*type);
}

bool is_union(const c10::TypePtr& type) {
  return type->kind() == TypeKind::UnionType || type->kind() == TypeKind::OptionalType;
}

// Whether a dimension of the spec can be `size` at all.
bool can_be(const Dimension& dimension, int64_t size) {
  return dimension.value < 0 || dimension.value == size;
}

bool is_real_number(TensorType type) {
  return type != STRING_TENSOR && type != COMPLEX64_TENSOR && type != COMPLEX128_TENSOR;
}

bool is_integer(TensorType type) {
  return is_real_number(type) && type != FLOAT_TENSOR && type != DOUBLE_TENSOR &&
         type != FLOAT16_TENSOR && type != BFLOAT16_TENSOR;
}

// Which of int, float and bool a number of this dtype is by itself.
TypeKind natural_kind(TensorType type) {
  if (type == BOOL_TENSOR) return TypeKind::BoolType;
  return is_integer(type) ? TypeKind::IntType : TypeKind::FloatType;
}

bool can_be_scalar(const TensorSpec& spec) {
  return spec.dims.empty() || (spec.dims.size() == 1 && can_be(spec.dims[0], 1));
}

std::string list_arguments(const c10::FunctionSchema& schema) {
  std::string text;
  for (size_t i = 1; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    text += (i > 1 ? ", " : "") + argument.name() + ": " + argument.type()->annotation_str();
  }
  return "forward(" + text + ")";
}

c10::IValue take_tuple(std::vector<c10::IValue> elements) {
  return c10::ivalue::Tuple::create(std::move(elements));
}

template <typename T>
T exact_element(const NeuropodTensor& tensor, size_t index, const std::string& name,
                const char* type_name) {
  const ScalarValue value = read_scalar(tensor, index);
  T result;
  if (!convert_exactly(value, &result)) {
    throw_error(ErrorCode::kSpecMismatch, "input '" + name + "': the model takes a Python " +
                                              type_name + ", which can't hold " + to_string(value) +
                                              " exactly");
  }
  return result;
}

[[noreturn]] void throw_wrong_kind(const std::string& name, const char* wanted, const char* found) {
  throw_error(ErrorCode::kSpecMismatch,
              "input '" + name + "': the model takes " + wanted + ", found a tensor of " + found);
}

[[noreturn]] void throw_wrong_count(const std::string& name, size_t wanted, size_t found) {
  throw_error(ErrorCode::kSpecMismatch,
              "input '" + name + "': the model takes " + std::to_string(wanted) +
                  (wanted == 1 ? " element, found " : " elements, found ") + std::to_string(found));
}

template <typename T>
c10::IValue exact_list(const NeuropodTensor& tensor, const std::string& name,
                       const char* type_name) {
  c10::List<T> list;
  list.reserve(tensor.get_num_elements());
  for (size_t i = 0; i < tensor.get_num_elements(); ++i) {
    list.push_back(exact_element<T>(tensor, i, name, type_name));
  }
  return list;
}

}  // namespace

ForwardArguments::ForwardArguments(const c10::FunctionSchema& schema,
                                   const std::vector<TensorSpec>& inputs, bool strict,
                                   bool pass_own_tensors)
    : pass_own_tensors_(pass_own_tensors) {
  const auto& arguments = schema.arguments();
  defaults_.resize(std::max<size_t>(arguments.size(), 1));
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i].default_value()) defaults_[i] = *arguments[i].default_value();
    if (arguments[i].type()->kind() != TypeKind::DictType) continue;
    const auto& dict = arguments[i].type()->expectRef<c10::DictType>();
    if (dict_position_ == 0 && dict.getKeyType()->kind() == TypeKind::StringType) {
      dict_position_ = i;
      dict_value_type_ = dict.getValueType();
    }
  }
  for (const TensorSpec& spec : inputs) add_input(schema, spec);
  find_missing(schema);
  if (!strict) return;
  for (const Input& input : inputs_) {
    if (!input.unusable.empty()) throw_error(ErrorCode::kSpecMismatch, input.unusable);
  }
  if (!missing_.empty()) throw_error(ErrorCode::kSpecMismatch, missing_);
}

void ForwardArguments::add_input(const c10::FunctionSchema& schema, const TensorSpec& spec) {
  Input input;
  input.name = spec.name;
  c10::TypePtr type;
  const auto& arguments = schema.arguments();
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i].name() != spec.name || i == dict_position_) continue;
    input.position = i;
    type = arguments[i].type();
    input.required = !arguments[i].default_value() && !takes_none(type);
  }
  if (type == nullptr && dict_position_ != 0) {
    input.dict_key = c10::IValue(spec.name);
    type = dict_value_type_;
  }
  if (type == nullptr) {
    input.unusable = "input '" + spec.name + "' is no argument of the model's " +
                     list_arguments(schema) +
                     "; rename one of the two, or let forward take one Dict[str, Tensor]";
  } else if (!find_form(type, spec, &input.form)) {
    input.unusable = "input '" + spec.name + "' is " + neuropod::to_string(spec) +
                     ", which the model's " + list_arguments(schema) + " doesn't take as " +
                     type->annotation_str();
  }
  inputs_.push_back(std::move(input));
}

void ForwardArguments::find_missing(const c10::FunctionSchema& schema) {
  const auto& arguments = schema.arguments();
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (i == dict_position_ || arguments[i].default_value() || takes_none(arguments[i].type()))
      continue;
    const bool given = std::any_of(inputs_.begin(), inputs_.end(),
                                   [i](const Input& input) { return input.position == i; });
    if (given) continue;
    missing_ =
        "the model's " + list_arguments(schema) + " needs the argument '" + arguments[i].name() +
        "', which is no input of the package; add it to the input spec, or give it a default";
    return;
  }
}

bool ForwardArguments::find_form(const c10::TypePtr& type, const TensorSpec& spec, Form* form) {
  if (is_union(type)) {
    std::vector<c10::TypePtr> members = type->containedTypes().vec();
    std::stable_partition(members.begin(), members.end(), [&spec](const c10::TypePtr& member) {
      return member->kind() == natural_kind(spec.type);
    });
    for (const c10::TypePtr& member : members) {
      Form candidate;
      if (!find_form(member, spec, &candidate)) continue;
      *form = std::move(candidate);
      return true;
    }
    return false;
  }
  const bool text = spec.type == STRING_TENSOR;
  const bool scalar = is_real_number(spec.type) && can_be_scalar(spec);
  switch (type->kind()) {
    case TypeKind::TensorType:
      form->element = Element::kTensor;
      return !text;
    case TypeKind::AnyType:
      form->element = text ? Element::kString : Element::kTensor;
      form->container = text && !spec.dims.empty() ? Container::kList : Container::kNone;
      return !text || spec.dims.size() <= 1;
    case TypeKind::IntType:
      form->element = Element::kInt;
      return scalar;
    case TypeKind::FloatType:
      form->element = Element::kFloat;
      return scalar;
    case TypeKind::BoolType:
      form->element = Element::kBool;
      return scalar;
    case TypeKind::NumberType:
      form->element = Element::kNumber;
      return scalar;
    case TypeKind::StringType:
      form->element = Element::kString;
      return text && can_be_scalar(spec);
    case TypeKind::ListType:
    case TypeKind::TupleType:
      return find_container_form(type, spec, form);
    default:
      return false;
  }
}

bool ForwardArguments::find_container_form(const c10::TypePtr& type, const TensorSpec& spec,
                                           Form* form) {
  if (spec.dims.empty()) return false;
  // An element, as the spec of a tensor one rank lower.
  const TensorSpec element_spec(spec.name, {spec.dims.begin() + 1, spec.dims.end()}, spec.type);
  const auto members = type->containedTypes();
  if (type->kind() == TypeKind::TupleType && !can_be(spec.dims[0], int64_t(members.size())))
    return false;
  form->container = type->kind() == TypeKind::TupleType ? Container::kTuple : Container::kList;
  for (const c10::TypePtr& member : members) {
    Form member_form;
    if (!find_form(member, element_spec, &member_form)) return false;
    if (member_form.container != Container::kNone) return false;
    if (member_form.element != Element::kTensor && spec.dims.size() != 1) return false;
    form->element = member_form.element;
    form->members.push_back(member_form.element);
  }
  // List[Scalar] and List[Any] have no counterpart, and a tuple can't mix tensors with numbers.
  const auto is_tensor = [](Element element) { return element == Element::kTensor; };
  const auto tensors = std::count_if(form->members.begin(), form->members.end(), is_tensor);
  if (tensors != 0 && size_t(tensors) != form->members.size()) return false;
  return form->container == Container::kTuple ||
         (form->element != Element::kNumber && !is_union(members[0]) &&
          members[0]->kind() != TypeKind::AnyType);
}

std::vector<std::string> ForwardArguments::inputs_with_defaults() const {
  std::vector<std::string> names;
  for (const Input& input : inputs_) {
    const bool in_dict = input.position == 0;
    if (!in_dict && !input.required) names.push_back(input.name);
  }
  return names;
}

std::vector<std::string> ForwardArguments::inputs_read_on_cpu() const {
  std::vector<std::string> names;
  for (const Input& input : inputs_) {
    if (input.form.element != Element::kTensor) names.push_back(input.name);
  }
  return names;
}

void ForwardArguments::bind(const c10::IValue& self, const BoundInputs& inputs,
                            torch::jit::Stack* stack) const {
  if (!missing_.empty()) throw_error(ErrorCode::kSpecMismatch, missing_);
  *stack = defaults_;
  stack->front() = self;
  c10::impl::GenericDict* dict = nullptr;
  std::optional<c10::impl::GenericDict> storage;
  if (dict_position_ != 0) {
    storage.emplace(c10::StringType::get(), dict_value_type_);
    dict = &*storage;
    dict->reserve(inputs.size());
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    const std::shared_ptr<NeuropodValue>* value = inputs[i];
    if (value == nullptr) {
      if (input.required) {
        throw_error(ErrorCode::kSpecMismatch,
                    "input '" + input.name + "' is missing, and the model has no default for it");
      }
      continue;
    }
    c10::IValue argument = to_argument(input, *value);
    if (input.position != 0) {
      (*stack)[input.position] = std::move(argument);
    } else {
      dict->insert(input.dict_key, std::move(argument));
    }
  }
  if (dict != nullptr) (*stack)[dict_position_] = *dict;
}

c10::IValue ForwardArguments::to_argument(const Input& input,
                                          const std::shared_ptr<NeuropodValue>& value) const {
  if (!input.unusable.empty()) throw_error(ErrorCode::kSpecMismatch, input.unusable);
  if (input.form.element == Element::kTensor) {
    return to_tensor_argument(input, pass_own_tensors_ ? wrap_value(value) : to_ivalue(value));
  }
  if (input.form.element == Element::kString) return to_string_argument(input, to_ivalue(value));
  return to_number_argument(input, *value->as_tensor()->to(Device::CPU));
}

c10::IValue ForwardArguments::to_tensor_argument(const Input& input, c10::IValue value) const {
  if (!value.isTensor()) throw_wrong_kind(input.name, "numbers", "strings");
  if (input.form.container == Container::kNone) {
    return value;
  }
  const at::Tensor tensor = std::move(value).toTensor();
  if (tensor.dim() == 0)
    throw_error(ErrorCode::kSpecMismatch, "input '" + input.name + "' has rank 0");
  std::vector<at::Tensor> rows = tensor.unbind(0);
  if (input.form.container == Container::kList) return c10::List<at::Tensor>(rows);
  return take_tuple(std::vector<c10::IValue>(rows.begin(), rows.end()));
}

c10::IValue ForwardArguments::to_string_argument(const Input& input, c10::IValue value) {
  if (!value.isList()) throw_wrong_kind(input.name, "strings", "numbers");
  if (input.form.container == Container::kList) return value;
  const c10::ArrayRef<c10::IValue> elements = value.toListRef();
  if (input.form.container == Container::kNone) {
    if (elements.size() != 1) throw_wrong_count(input.name, 1, elements.size());
    return elements[0];
  }
  if (elements.size() != input.form.members.size()) {
    throw_wrong_count(input.name, input.form.members.size(), elements.size());
  }
  return take_tuple(elements.vec());
}

c10::IValue ForwardArguments::to_number_argument(const Input& input, const NeuropodTensor& tensor) {
  const Form& form = input.form;
  if (form.container == Container::kList) {
    switch (form.element) {
      case Element::kInt:
        return exact_list<int64_t>(tensor, input.name, "int");
      case Element::kFloat:
        return exact_list<double>(tensor, input.name, "float");
      default:
        return exact_list<bool>(tensor, input.name, "bool");
    }
  }
  const size_t wanted = form.container == Container::kTuple ? form.members.size() : 1;
  if (tensor.get_num_elements() != wanted) {
    throw_wrong_count(input.name, wanted, tensor.get_num_elements());
  }
  if (form.container == Container::kNone) return to_number(input, form.element, tensor, 0);
  std::vector<c10::IValue> elements;
  for (size_t i = 0; i < wanted; ++i) {
    elements.push_back(to_number(input, form.members[i], tensor, i));
  }
  return take_tuple(std::move(elements));
}

c10::IValue ForwardArguments::to_number(const Input& input, Element element,
                                        const NeuropodTensor& tensor, size_t index) {
  switch (element) {
    case Element::kInt:
      return exact_element<int64_t>(tensor, index, input.name, "int");
    case Element::kBool:
      return exact_element<bool>(tensor, index, input.name, "bool");
    case Element::kNumber:
      if (is_integer(tensor.get_tensor_type())) {
        return exact_element<int64_t>(tensor, index, input.name, "int");
      }
      [[fallthrough]];
    default:
      return exact_element<double>(tensor, index, input.name, "float");
  }
}

}  // namespace neuropod
