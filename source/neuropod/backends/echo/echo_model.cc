#include "neuropod/backends/echo/echo_model.hh"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "neuropod/base/error.hh"
#include "neuropod/core/generic_tensor.hh"

namespace neuropod::echo {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::pair<std::string_view, Operation>, 10> kOperations{
    {{"identity", Operation::kIdentity},
     {"increment", Operation::kIncrement},
     {"sum", Operation::kSum},
     {"scale", Operation::kScale},
     {"transpose", Operation::kTranspose},
     {"join", Operation::kJoin},
     {"running_sum", Operation::kRunningSum},
     {"previous", Operation::kPrevious},
     {"constant", Operation::kConstant},
     {"random", Operation::kRandom}}};

[[noreturn]] void fail(const std::string& problem) {
  throw_error(ErrorCode::kLoadFailed, fmt::format("the echo model can't be loaded: {}", problem));
}

Operation read_operation(const std::string& name) {
  for (const auto& [known, operation] : kOperations) {
    if (known == name) return operation;
  }
  fail(fmt::format("'{}' is no operation", name));
}

size_t find_input(const ModelConfig& config, const std::string& name) {
  for (size_t i = 0; i < config.inputs.size(); ++i) {
    if (config.inputs[i].name == name) return i;
  }
  fail(fmt::format("'{}' is no input of the package", name));
}

const TensorSpec* find_output(const ModelConfig& config, const std::string& name) {
  for (const TensorSpec& output : config.outputs) {
    if (output.name == name) return &output;
  }
  fail(fmt::format("'{}' is no output of the package", name));
}

std::vector<size_t> read_inputs(const Json& json, const ModelConfig& config) {
  std::vector<size_t> inputs;
  if (json.contains("input")) inputs.push_back(find_input(config, json.at("input")));
  if (json.contains("inputs")) {
    for (const Json& name : json.at("inputs")) inputs.push_back(find_input(config, name));
  }
  return inputs;
}

template <typename T>
std::shared_ptr<NeuropodTensor> numeric_constant(const std::vector<int64_t>& dims,
                                                 const Json& values) {
  auto tensor = get_generic_tensor_allocator()->allocate_tensor<T>(dims);
  tensor->copy_from(values.get<std::vector<T>>());
  return tensor;
}

std::shared_ptr<NeuropodTensor> read_constant(const Json& json) {
  const auto dims = json.at("shape").get<std::vector<int64_t>>();
  const Json& values = json.at("values");
  const auto dtype = json.at("dtype").get<std::string>();
  if (dtype == "float32") return numeric_constant<float>(dims, values);
  if (dtype == "int64") return numeric_constant<int64_t>(dims, values);
  if (dtype != "string") fail(fmt::format("a constant can't have dtype '{}'", dtype));
  auto tensor = get_generic_tensor_allocator()->allocate_tensor<std::string>(dims);
  tensor->copy_from(values.get<std::vector<std::string>>());
  return tensor;
}

EchoOutput read_output(const std::string& name, const Json& json, const ModelConfig& config) {
  EchoOutput output;
  output.name = name;
  output.operation = read_operation(json.at("op"));
  output.inputs = read_inputs(json, config);
  output.factor = json.value("by", 1.0);
  output.text = json.value("separator", "");
  if (output.operation == Operation::kConstant) {
    output.constant = read_constant(json);
  } else if (output.operation == Operation::kRandom) {
    output.spec = find_output(config, name);
  } else if (output.inputs.empty()) {
    fail(fmt::format("output '{}' names no input", name));
  }
  return output;
}

EchoModel read_model(const Json& json, const ModelConfig& config) {
  EchoModel model;
  for (const auto& [name, output] : json.at("outputs").items()) {
    model.outputs.push_back(read_output(name, output, config));
    model.is_random |= model.outputs.back().operation == Operation::kRandom;
  }
  model.device = json.value("device", false);
  model.sleep_ms = json.value("sleep_ms", 0);
  model.printed = json.value("print", "");
  if (json.contains("seed")) model.seed = json.at("seed").get<uint64_t>();
  if (json.contains("fail_if_negative")) {
    const Json& rule = json.at("fail_if_negative");
    model.failing_input = find_input(config, rule.at("input"));
    model.failing_message = rule.value("message", "");
    model.failing_action = rule.value("action", "");
  }
  return model;
}

}  // namespace

EchoModel read_echo_model(std::istream& file, const ModelConfig& config) {
  try {
    return read_model(Json::parse(file), config);
  } catch (const Json::exception& exception) {
    fail(exception.what());
  }
}

}  // namespace neuropod::echo
