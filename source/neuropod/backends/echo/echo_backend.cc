#include "neuropod/backends/echo/echo_backend.hh"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "neuropod/backends/echo/echo_operations.hh"
#include "neuropod/backends/echo/random_outputs.hh"
#include "neuropod/base/error.hh"

namespace neuropod::echo {
namespace {

constexpr const char* kModelFile = "0/data/echo.json";

// What there is of an output's inputs.
std::vector<std::shared_ptr<NeuropodValue>> present_inputs(const EchoOutput& output,
                                                           const BoundInputs& inputs) {
  std::vector<std::shared_ptr<NeuropodValue>> present;
  for (size_t index : output.inputs) {
    if (inputs[index] != nullptr) present.push_back(*inputs[index]);
  }
  if (present.empty() && !output.inputs.empty()) {
    throw_error(ErrorCode::kModelError,
                "output '" + output.name + "' needs an input, and all were left out");
  }
  return present;
}

std::shared_ptr<NeuropodTensor> as_shared_tensor(const std::shared_ptr<NeuropodValue>& value) {
  return std::shared_ptr<NeuropodTensor>(value, value->as_tensor());
}

std::shared_ptr<NeuropodTensor> on_cpu(const std::shared_ptr<NeuropodValue>& value) {
  const std::shared_ptr<NeuropodTensor> tensor = as_shared_tensor(value);
  return tensor->get_device() == Device::CPU ? tensor : tensor->to(Device::CPU);
}

bool is_wanted(const std::string& name, const std::vector<std::string>& requested) {
  return requested.empty() ||
         std::find(requested.begin(), requested.end(), name) != requested.end();
}

bool starts_negative(const NeuropodTensor& tensor) {
  if (tensor.get_tensor_type() != FLOAT_TENSOR || tensor.get_num_elements() == 0) return false;
  return tensor.as_typed_tensor<float>()->get_raw_data_ptr()[0] < 0;
}

// What ends a process, or keeps it busy.
void act(const std::string& action) {
  // What a sanitizer would make of these is another end.
  ::signal(SIGSEGV, SIG_DFL);
  ::signal(SIGABRT, SIG_DFL);
  if (action == "segv") ::raise(SIGSEGV);
  if (action == "abort") std::abort();
  if (action == "exit") ::_exit(3);
  if (action == "kill") ::kill(::getpid(), SIGKILL);
  if (action == "hang") {
    for (;;) ::pause();
  }
  if (action == "sleep") std::this_thread::sleep_for(std::chrono::seconds(1));
  if (action == "fork" && ::fork() == 0) {
    ::sleep(2);
    ::_exit(0);
  }
}

uint64_t random_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

EchoBackend::EchoBackend(const std::string& neuropod_path, const RuntimeOptions& options)
    : NeuropodBackendWithDefaultAllocator<EchoTensor>(neuropod_path, options,
                                                      MemoryPool::create(pretend_device())) {}

void EchoBackend::load_model_internal() {
  for (const std::string& custom_op : model_config_->custom_ops)
    load_custom_op(*loader_, custom_op);
  const std::unique_ptr<std::istream> file = loader_->get_istream_for_file(kModelFile);
  if (file == nullptr) {
    throw_error(ErrorCode::kInvalidPackage,
                std::string("the package holds no ") + kModelFile + ", which is the model");
  }
  model_ = read_echo_model(*file, *model_config_);
  running_sums_.clear();
  kept_inputs_.clear();
  seed_ = model_.seed ? *model_.seed : random_seed();
  random_calls_ = 0;
}

bool EchoBackend::has_device(NeuropodDevice device) const {
  return device == Device::CPU || (model_.device && PretendDevice::has(device));
}

std::unique_ptr<NeuropodValueMap> EchoBackend::infer_internal(
    const BoundInputs& inputs, const std::vector<std::string>& requested_outputs) {
  if (model_.sleep_ms > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(model_.sleep_ms));
  }
  if (!model_.printed.empty()) {
    std::printf("%s (stdout)\n", model_.printed.c_str());
    std::fprintf(stderr, "%s (stderr)\n", model_.printed.c_str());
  }
  if (model_.failing_input && inputs[*model_.failing_input] != nullptr &&
      starts_negative(*on_cpu(*inputs[*model_.failing_input]))) {
    if (model_.failing_action.empty()) throw std::runtime_error(model_.failing_message);
    act(model_.failing_action);
  }
  std::optional<RandomOutputs> random;
  if (model_.is_random) random.emplace(*model_config_, inputs, seed_, random_calls_++);
  auto outputs = std::make_unique<NeuropodValueMap>();
  for (const EchoOutput& output : model_.outputs) {
    if (!is_wanted(output.name, requested_outputs)) continue;
    outputs->emplace(output.name, output.operation == Operation::kRandom
                                      ? random->make(*get_tensor_allocator(), *output.spec)
                                      : run(output, inputs));
  }
  return outputs;
}

std::shared_ptr<NeuropodValue> EchoBackend::run(const EchoOutput& output,
                                                const BoundInputs& inputs) {
  if (output.operation == Operation::kConstant) return output.constant;
  const std::vector<std::shared_ptr<NeuropodValue>> present = present_inputs(output, inputs);
  if (output.operation == Operation::kIdentity) return present.front();

  NeuropodTensorAllocator& allocator = *get_tensor_allocator();
  const std::shared_ptr<NeuropodTensor> first = on_cpu(present.front());
  switch (output.operation) {
    case Operation::kIncrement:
      increment(*first);
      return on_model_device(first);
    case Operation::kSum: {
      if (present.size() == 1) return present.front();
      std::shared_ptr<NeuropodTensor> sum = first;
      for (size_t i = 1; i < present.size(); ++i) sum = add(allocator, *sum, *on_cpu(present[i]));
      return on_model_device(sum);
    }
    case Operation::kScale:
      return on_model_device(scale(allocator, *first, output.factor));
    case Operation::kTranspose:
      return on_model_device(transpose(allocator, *first));
    case Operation::kJoin: {
      std::vector<const NeuropodTensor*> tensors;
      for (const std::shared_ptr<NeuropodValue>& value : present) {
        tensors.push_back(value->as_tensor());
      }
      return join(allocator, tensors, output.text);
    }
    case Operation::kRunningSum:
      return on_model_device(running_sum(output, *first));
    case Operation::kPrevious: {
      std::shared_ptr<NeuropodValue>& kept = kept_inputs_[output.name];
      const std::shared_ptr<NeuropodValue> before = std::exchange(kept, present.front());
      return before == nullptr ? present.front() : before;
    }
    case Operation::kIdentity:
    case Operation::kConstant:
    case Operation::kRandom:
      break;
  }
  return present.front();
}

std::shared_ptr<NeuropodTensor> EchoBackend::running_sum(const EchoOutput& output,
                                                         NeuropodTensor& input) {
  NeuropodTensorAllocator& allocator = *get_tensor_allocator();
  std::shared_ptr<NeuropodTensor>& sum = running_sums_[output.name];
  const bool starts = sum == nullptr || sum->get_dims() != input.get_dims();
  sum = starts ? scale(allocator, input, 1) : add(allocator, *sum, input);
  return sum;
}

std::shared_ptr<NeuropodTensor> EchoBackend::on_model_device(
    std::shared_ptr<NeuropodTensor> tensor) {
  const NeuropodDevice device = model_device();
  if (tensor->get_device() == device) return tensor;
  return get_tensor_allocator()->copy_to_device(*tensor, device);
}

REGISTER_NEUROPOD_BACKEND(EchoBackend, NEUROPOD_BACKEND_PLATFORM,
                          NEUROPOD_BACKEND_FRAMEWORK_VERSION)

}  // namespace neuropod::echo
