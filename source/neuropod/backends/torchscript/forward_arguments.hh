#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <cstddef>
#include <string>
#include <vector>

#include "neuropod/internal/config_utils.hh"
#include "neuropod/package/call_plan.hh"

namespace neuropod {

/// Turns a call's inputs into the arguments of the model's forward(). The schema is looked at once,
/// here; a call only copies handles by index.
///
/// An input goes to the argument of its name, or else into the one Dict argument. What each
/// argument type takes:
///
///     Tensor, Any              a numeric tensor, without a copy
///     List[str]                strings of rank 1
///     int, float, bool, Scalar a tensor of rank 0 or shape (1,) whose number the type holds
///     exactly str                      a string of rank 0 or shape (1,) List[int|float|bool]     a
///     tensor of rank 1, exactly as above List[Tensor]             x[0], x[1], … of a tensor of
///     rank 1 or more, without a copy Tuple[…]                 as the lists, its length being the
///     tensor's first dimension Optional[T], Union[…]    whichever fits the input's spec Dict[str,
///     T]             any number of inputs, each taken as T
///
/// **Thread safety**: immutable.
class ForwardArguments {
 public:
  /// With `strict`, Error(spec_mismatch) naming input and argument if an input can't be passed, or
  /// an argument without a default has no input. Otherwise a call that needs them gets that error.
  /// `pass_own_tensors`: hand the model tensor objects of its own over the same memory, for one
  /// that changes them in place or records gradients.
  ForwardArguments(const c10::FunctionSchema& schema, const std::vector<TensorSpec>& inputs,
                   bool strict, bool pass_own_tensors);

  /// Inputs that may be left out because forward() has a default for them, or takes None.
  std::vector<std::string> inputs_with_defaults() const;

  /// Inputs that become Python numbers, which are read on the CPU.
  std::vector<std::string> inputs_read_on_cpu() const;

  /// Replaces `stack` by forward()'s arguments, `self` first.
  /// Error(spec_mismatch): a scalar that can't be passed exactly, a missing argument, …
  void bind(const c10::IValue& self, const BoundInputs& inputs, torch::jit::Stack* stack) const;

 private:
  enum class Element { kTensor, kInt, kFloat, kBool, kNumber, kString };
  enum class Container { kNone, kList, kTuple };

  // How a tensor becomes a value of an argument's type.
  struct Form {
    Element element = Element::kTensor;
    Container container = Container::kNone;
    std::vector<Element> members;  // of a tuple
  };
  struct Input {
    std::string name;
    Form form;
    size_t position = 0;   // on the stack, unless it goes into the Dict
    c10::IValue dict_key;  // its name, if it does
    bool required = false;
    std::string unusable;  // why it can't be passed; empty: it can
  };

  static bool find_form(const c10::TypePtr& type, const TensorSpec& spec, Form* form);
  static bool find_container_form(const c10::TypePtr& type, const TensorSpec& spec, Form* form);
  void add_input(const c10::FunctionSchema& schema, const TensorSpec& spec);
  void find_missing(const c10::FunctionSchema& schema);
  c10::IValue to_argument(const Input& input, const std::shared_ptr<NeuropodValue>& value) const;
  c10::IValue to_tensor_argument(const Input& input, c10::IValue value) const;
  static c10::IValue to_string_argument(const Input& input, c10::IValue value);
  static c10::IValue to_number_argument(const Input& input, const NeuropodTensor& tensor);
  static c10::IValue to_number(const Input& input, Element element, const NeuropodTensor& tensor,
                               size_t index);

  const bool pass_own_tensors_;
  std::vector<c10::IValue> defaults_;  // by position on the stack; None for self
  std::vector<Input> inputs_;          // in the order of the input spec
  size_t dict_position_ = 0;           // 0: there is no Dict argument
  c10::TypePtr dict_value_type_;
  std::string missing_;  // why no call can work: an argument that no input gives
};

}  // namespace neuropod
