#include "torch_backend.hh"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <istream>
#include <utility>

#include "custom_operators.hh"
#include "forward_arguments.hh"
#include "forward_outputs.hh"
#include "graph_traits.hh"
#include "model_state.hh"
#include "neuropod/base/error.hh"
#include "torch_errors.hh"

namespace neuropod {
namespace {

constexpr char kModelFile[] = "0/data/model.pt";

// torch keeps the number per thread that runs operators: one that ran before it was set keeps its
// own.
void use_threads(int threads) {
  if (threads > 0 && at::get_num_threads() != threads) at::set_num_threads(threads);
}

// In a catch block: says what torch found wrong with the model's file, and what to do about it.
[[noreturn]] void rethrow_load_error() {
  try {
    rethrow_torch_error(ErrorCode::kLoadFailed, std::string("torch can't load ") + kModelFile);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kLoadFailed) throw;
    const std::string message = error.message();
    if (message.find("Legacy model format") != std::string::npos) {
      throw_error(
          ErrorCode::kLoadFailed,
          message + " A torch before 1.2 saved it, in a format that torch " +
              NEUROPOD_BACKEND_FRAMEWORK_VERSION +
              " no longer reads: load and save it with torch 1.4, or export the model again.");
    }
    if (message.find("PytorchStreamReader") != std::string::npos ||
        message.find("istream reader") != std::string::npos) {
      throw_error(ErrorCode::kLoadFailed,
                  message +
                      " Make the package again, from a file that torch.jit.save "
                      "wrote (torch.save writes no TorchScript).");
    }
    throw;
  }
}

torch::jit::Module load_module(NeuropodLoader& loader, const c10::Device& device) {
  const auto stream = loader.get_istream_for_file(kModelFile);
  if (stream == nullptr) {
    throw_error(ErrorCode::kInvalidPackage,
                std::string("the package holds no ") + kModelFile +
                    ", the model itself; make it again with create_torchscript_neuropod");
  }
  // So that the loader's own Error gets through torch when the package can't be read.
  stream->exceptions(std::ios::badbit);
  try {
    return torch::jit::load(*stream, device);
  } catch (...) {
    rethrow_load_error();
  }
}

torch::jit::Function& find_forward(const torch::jit::Module& module) {
  const auto method = module.find_method("forward");
  if (!method) {
    throw_error(
        ErrorCode::kLoadFailed,
        "the TorchScript model has no method 'forward'; script or trace a module that has one");
  }
  return method->function();
}

// What was asked of the device before a model raised may still be reading the caller's memory. That
// it failed too is nothing new.
void wait_for_device_after_error(const c10::Device& device) noexcept {
  try {
    wait_for_device(device);
  } catch (...) {
  }
}

}  // namespace

struct TorchNeuropodBackend::Model {
  Model(torch::jit::Module loaded, const c10::Device& on, const ModelConfig& config, bool strict)
      : device(on),
        module(std::move(loaded)),
        self(module._ivalue()),
        forward(find_forward(module)),
        traits(find_graph_traits(forward)),
        arguments(forward.getSchema(), config.inputs, strict,
                  traits.changes_shapes || traits.differentiates),
        outputs(forward.getSchema(), config.outputs, strict) {
    if (config.stateful) state = std::make_unique<ModelState>(module);
  }

  const c10::Device device;
  const torch::jit::Module module;
  const c10::IValue self;
  torch::jit::Function& forward;  // belongs to `module`
  const GraphTraits traits;
  const ForwardArguments arguments;
  const ForwardOutputs outputs;
  std::unique_ptr<ModelState> state;
};

TorchNeuropodBackend::TorchNeuropodBackend(const std::string& neuropod_path,
                                           const RuntimeOptions& options)
    : NeuropodBackendWithDefaultAllocator<TorchNeuropodTensor>(neuropod_path, options,
                                                               make_torch_pool(options)) {}

TorchNeuropodBackend::~TorchNeuropodBackend() = default;

c10::Device TorchNeuropodBackend::get_torch_device() const {
  return to_torch_device(model_device());
}

bool TorchNeuropodBackend::has_device(NeuropodDevice device) const {
  return torch_has_device(device);
}

std::unique_ptr<TorchNeuropodBackend::Model> TorchNeuropodBackend::load() const {
  try {
    const c10::Device device = get_torch_device();
    const CurrentDevice current(device);
    torch::jit::Module module = load_module(*loader_, device);
    const bool strict = options_.strict || model_config_->format_version >= 1;
    return std::make_unique<Model>(std::move(module), device, *model_config_, strict);
  } catch (...) {
    rethrow_torch_error(ErrorCode::kLoadFailed, "torch can't load the model");
  }
}

void TorchNeuropodBackend::load_model_internal() {
  use_threads(options_.threads);
  load_custom_operators(*loader_, model_config_->custom_ops);
  model_ = load();
  for (const std::string& name : model_->arguments.inputs_with_defaults()) input_has_default(name);
  for (const std::string& name : model_->arguments.inputs_read_on_cpu()) input_stays_on_cpu(name);
}

std::unique_ptr<NeuropodValueMap> TorchNeuropodBackend::infer_internal(
    const BoundInputs& inputs, const std::vector<std::string>& requested_outputs) {
  const Model& model = *model_;
  try {
    use_threads(options_.threads);
    const CurrentDevice current(model.device);
    const c10::InferenceMode inference_mode(!model.traits.differentiates);
    torch::jit::Stack stack;
    model.arguments.bind(model.self, inputs, &stack);
    // Not forward's operator(): that checks each argument against the schema, which was done when
    // the model was loaded, and costs more than all the rest with a hundred arguments.
    model.forward.run(stack);
    auto outputs = model.outputs.convert(std::move(stack.back()), inputs, requested_outputs);
    // What was brought back is there already. A model that returns only strings or numbers, or
    // copies its inputs by itself (non_blocking), may still be reading memory that is the caller's.
    wait_for_device(model.device);
    return outputs;
  } catch (...) {
    wait_for_device_after_error(model.device);
    rethrow_torch_error(ErrorCode::kModelError, "the model raised");
  }
}

void TorchNeuropodBackend::reset_internal() {
  const CurrentDevice current(model_->device);
  if (model_->state == nullptr || !model_->state->restore()) model_ = load();
}

REGISTER_NEUROPOD_BACKEND(TorchNeuropodBackend, NEUROPOD_BACKEND_PLATFORM,
                          NEUROPOD_BACKEND_FRAMEWORK_VERSION);

}  // namespace neuropod
