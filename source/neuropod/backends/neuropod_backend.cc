#include "neuropod/backends/neuropod_backend.hh"

#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "neuropod/backends/call_control.hh"
#include "neuropod/backends/metrics_registry.hh"
#include "neuropod/backends/model_metrics.hh"
#include "neuropod/base/error.hh"
#include "neuropod/base/logging.hh"
#include "neuropod/package/checked_package.hh"

namespace neuropod {
namespace {

// The exception in flight as an Error that names the model. `foreign`: the code of exceptions that
// aren't ours, which are the framework's. An empty context names nothing.
Error current_error(const std::string& context, ErrorCode foreign) {
  const std::string before = context.empty() ? "" : context + ": ";
  try {
    throw;
  } catch (const Error& error) {
    return context.empty() ? error : error.with_context(context);
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kOutOfMemory,
                 before + "the system has no memory left; smaller or fewer inputs need less");
  } catch (const std::exception& exception) {
    return Error(foreign, before + exception.what());
  } catch (const abi::__forced_unwind&) {
    throw;  // the thread is being cancelled: not an error of the model
  } catch (...) {
    return Error(foreign, before + "an exception of an unknown type was thrown");
  }
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void drop_others(const std::vector<std::string>& requested, NeuropodValueMap* outputs) {
  if (outputs->size() == requested.size()) return;
  for (auto output = outputs->begin(); output != outputs->end();) {
    output = contains(requested, output->first) ? std::next(output) : outputs->erase(output);
  }
}

// Keeps of `outputs` what was asked for, all of which must be there.
void keep_requested(const std::vector<std::string>& requested, NeuropodValueMap* outputs) {
  for (const std::string& name : requested) {
    if (outputs->count(name) != 0) continue;
    std::vector<std::string> returned;
    for (const auto& output : *outputs) returned.push_back(output.first);
    std::sort(returned.begin(), returned.end());
    throw_error(
        ErrorCode::kSpecMismatch,
        fmt::format("output '{}' was requested and is in the output spec, but the model "
                    "returned: {}",
                    name,
                    returned.empty() ? "nothing" : fmt::format("{}", fmt::join(returned, ", "))));
  }
  drop_others(requested, outputs);
}

// The tensors whose bytes checking a call doesn't tell: strings, and all that isn't checked.
std::vector<size_t> tensors_to_measure(const std::vector<TensorSpec>& specs, bool check) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!check || specs[i].type == STRING_TENSOR) indices.push_back(i);
  }
  return indices;
}

std::shared_ptr<internal::ModelMetrics> make_metrics(const std::string& path,
                                                     const ModelConfig& config,
                                                     const RuntimeOptions& options) {
  if (!options.collect_metrics) return nullptr;
  return std::make_shared<internal::ModelMetrics>(
      internal::ModelIdentity{config.name, config.platform, config.version, path});
}

// `bytes`: what the inputs have besides those that are to be measured.
void count_inputs(const BoundInputs& bound, uint64_t bytes, const std::vector<size_t>& to_measure,
                  internal::CallMeter* meter) {
  meter->count_input(bytes);
  for (const size_t i : to_measure) {
    if (bound[i] != nullptr) meter->count_input(*(*bound[i])->as_tensor());
  }
}

void count_output(const std::shared_ptr<NeuropodValue>& output, internal::CallMeter* meter) {
  if (output != nullptr && output->is_tensor()) meter->count_output(*output->as_tensor());
}

// The same.
void count_outputs(const NeuropodValueMap& outputs, uint64_t bytes,
                   const std::vector<TensorSpec>& specs, const std::vector<size_t>& to_measure,
                   internal::CallMeter* meter) {
  meter->count_output(bytes);
  if (to_measure.size() == specs.size()) {
    // Unchecked ones needn't be in the specs.
    for (const auto& output : outputs) count_output(output.second, meter);
    return;
  }
  for (const size_t i : to_measure) {
    const auto output = outputs.find(specs[i].name);
    if (output != outputs.end()) count_output(output->second, meter);
  }
}

}  // namespace

struct NeuropodBackend::Rep {
  std::string context;  // "model 'name'"
  bool check = true;
  Clock::duration opening{};  // how long the constructor took

  const std::shared_ptr<internal::ModelMetrics> metrics;  // null if nobody wants them

  std::mutex mutex;  // one load, reset or call of a stateful model at a time
  std::atomic<bool> loaded{false};

  // Fixed while a model is loaded.
  std::unique_ptr<const CallPlan> plan;
  std::vector<NeuropodDevice> input_devices;  // strings stay on the CPU
  std::vector<std::string> inputs_with_defaults;
  std::vector<std::string> inputs_on_cpu;
  double load_seconds = 0;
  std::vector<size_t> inputs_to_measure;
  std::vector<size_t> outputs_to_measure;

  mutable std::atomic<bool> told_of_missing_device{false};

  explicit Rep(std::shared_ptr<internal::ModelMetrics> counted) : metrics(std::move(counted)) {}
};

NeuropodBackend::NeuropodBackend(const std::string& neuropod_path, const RuntimeOptions& options)
    : NeuropodBackend(neuropod_path, options, Clock::now()) {}

NeuropodBackend::NeuropodBackend(const std::string& neuropod_path, const RuntimeOptions& options,
                                 Clock::time_point begin)
    : neuropod_path_(neuropod_path),
      options_(options),
      loader_(open_checked_package(neuropod_path, options)),
      model_config_(read_checked_config(*loader_, neuropod_path, options)),
      rep_(std::make_unique<Rep>(make_metrics(neuropod_path, *model_config_, options))) {
  rep_->context = fmt::format("model '{}'", model_config_->name);
  rep_->check = !options.disable_shape_and_type_checking;
  rep_->opening = Clock::now() - begin;
}

NeuropodBackend::~NeuropodBackend() = default;

void NeuropodBackend::load_model() {
  std::lock_guard lock(rep_->mutex);
  const Clock::time_point begin = Clock::now();
  if (rep_->loaded) {
    throw_error(
        ErrorCode::kInvalidArgument,
        fmt::format("{} is loaded already; load_model() is for models that were opened with "
                    "load_model_at_construction = false",
                    rep_->context));
  }
  rep_->inputs_with_defaults.clear();
  rep_->inputs_on_cpu.clear();
  try {
    load_model_internal();
    const bool current = model_config_->format_version > 0 || options_.strict;
    rep_->plan = std::make_unique<CallPlan>(model_config_->inputs, model_config_->outputs,
                                            current ? CallRules::kCurrent : CallRules::kUpstream,
                                            rep_->inputs_with_defaults);
    rep_->inputs_to_measure = tensors_to_measure(model_config_->inputs, rep_->check);
    rep_->outputs_to_measure = tensors_to_measure(model_config_->outputs, rep_->check);
    rep_->input_devices.clear();
    for (const TensorSpec& input : model_config_->inputs) {
      const auto wanted = model_config_->input_tensor_device.find(input.name);
      const bool on_cpu =
          input.type == STRING_TENSOR || contains(rep_->inputs_on_cpu, input.name) ||
          (wanted != model_config_->input_tensor_device.end() && wanted->second == DeviceType::CPU);
      rep_->input_devices.push_back(on_cpu ? NeuropodDevice(Device::CPU) : model_device());
    }
  } catch (...) {
    const Error error =
        current_error(fmt::format("can't load {} from '{}'", rep_->context, neuropod_path_),
                      ErrorCode::kLoadFailed);
    internal::count_failed_load(error.code());
    throw error;
  }
  const std::chrono::duration<double> loading = rep_->opening + (Clock::now() - begin);
  rep_->load_seconds = loading.count();
  const uint64_t load_id = internal::count_load();
  if (rep_->metrics != nullptr) {
    rep_->metrics->set_loaded(load_id, rep_->load_seconds, get_tensor_allocator(), worker_stats());
    internal::list_model(rep_->metrics);
  }
  rep_->loaded = true;
}

ModelStats NeuropodBackend::stats() const {
  if (rep_->metrics != nullptr) return rep_->metrics->stats();
  ModelStats stats;
  if (!rep_->loaded) return stats;
  if (const auto workers = worker_stats()) workers(&stats);
  stats.load_seconds = rep_->load_seconds;
  // Not const, since backends may make their allocator when it is first asked for.
  if (const auto allocator = const_cast<NeuropodBackend*>(this)->get_tensor_allocator()) {
    stats.allocator = allocator->stats();
  }
  return stats;
}

void NeuropodBackend::reset() {
  if (!model_config_->stateful) {
    throw_error(
        ErrorCode::kInvalidArgument,
        fmt::format("{} can't be reset: its package doesn't say that it keeps state between "
                    "calls (\"stateful\": true in config.json)",
                    rep_->context));
  }
  std::unique_lock lock(rep_->mutex, std::defer_lock);
  if (!takes_turns()) lock.lock();
  if (!rep_->loaded) return;
  try {
    reset_internal();
  } catch (...) {
    throw current_error(fmt::format("can't reset {}", rep_->context), ErrorCode::kLoadFailed);
  }
}

std::vector<WorkerInfo> NeuropodBackend::workers() const { return {}; }

int NeuropodBackend::concurrency() const {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

const std::vector<std::string>& NeuropodBackend::inputs_with_defaults() const noexcept {
  return rep_->inputs_with_defaults;
}

std::unique_ptr<NeuropodValueMap> NeuropodBackend::infer_bound(
    const BoundInputs& inputs, const std::vector<std::string>& requested_outputs) {
  std::unique_lock<std::mutex> turn;
  if (model_config_->stateful) turn = std::unique_lock(rep_->mutex);
  internal::CallMeter unmeasured(nullptr);
  BoundInputs sealed(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) sealed.set(i, inputs[i]);
  std::vector<std::shared_ptr<NeuropodValue>> moved;
  try {
    seal_inputs(&sealed, &moved, &unmeasured);
    std::unique_ptr<NeuropodValueMap> outputs = infer_internal(sealed, requested_outputs);
    if (outputs == nullptr) throw_error(ErrorCode::kModelError, "the backend returned no outputs");
    if (!requested_outputs.empty()) drop_others(requested_outputs, outputs.get());
    return outputs;
  } catch (...) {
    throw current_error("", ErrorCode::kModelError);
  }
}

void NeuropodBackend::count_failed_call(ErrorCode code) const noexcept {
  internal::CallMeter(rep_->metrics.get()).fail(code);
}

std::unique_ptr<NeuropodValueMap> NeuropodBackend::infer(
    const NeuropodValueMap& inputs, const std::vector<std::string>& requested_outputs) {
  internal::CallMeter meter(rep_->metrics.get());
  try {
    std::unique_ptr<NeuropodValueMap> outputs = infer_measured(inputs, requested_outputs, &meter);
    meter.succeed();
    return outputs;
  } catch (const Error& error) {
    meter.fail(error.code());
    throw;
  }
}

std::unique_ptr<NeuropodValueMap> NeuropodBackend::infer_measured(
    const NeuropodValueMap& inputs, const std::vector<std::string>& requested_outputs,
    internal::CallMeter* meter) {
  if (!rep_->loaded) {
    throw_error(ErrorCode::kInvalidArgument,
                fmt::format("{} isn't loaded; call load_model() before infer()", rep_->context));
  }
  std::unique_lock<std::mutex> turn;
  if (model_config_->stateful && !takes_turns()) {
    turn = std::unique_lock(rep_->mutex);
    meter->restart();
  }
  if (CallControl* control = CallControl::current(); control != nullptr && !takes_turns()) {
    if (!control->close()) {
      throw_error(ErrorCode::kCancelled,
                  fmt::format("{}: the call was cancelled before it began", rep_->context));
    }
  }

  std::optional<Error> failure;
  try {
    return infer_loaded(inputs, requested_outputs, meter);
  } catch (...) {
    failure = current_error(rep_->context, ErrorCode::kModelError);
  }
  // A second try would find a stateful model in another state.
  if (failure->code() != ErrorCode::kOutOfMemory || model_config_->stateful) throw *failure;
  try {
    get_tensor_allocator()->trim();
    meter->restart();
    return infer_loaded(inputs, requested_outputs, meter);
  } catch (...) {
    throw current_error(rep_->context, ErrorCode::kModelError);
  }
}

std::unique_ptr<NeuropodValueMap> NeuropodBackend::infer_loaded(
    const NeuropodValueMap& inputs, const std::vector<std::string>& requested_outputs,
    internal::CallMeter* meter) {
  const CallPlan& plan = *rep_->plan;
  BoundInputs bound(plan.num_inputs());
  SymbolBindings symbols(plan.num_symbols());
  plan.bind(inputs, &bound);
  const uint64_t input_bytes = rep_->check ? plan.check_inputs(bound, &symbols) : 0;
  if (!requested_outputs.empty()) plan.check_requested(requested_outputs);
  if (meter->on()) count_inputs(bound, input_bytes, rep_->inputs_to_measure, meter);
  meter->end(internal::CallPhase::kChecks);

  std::vector<std::shared_ptr<NeuropodValue>> moved;
  seal_inputs(&bound, &moved, meter);

  const internal::CallMeter::Scope measured(meter);
  std::unique_ptr<NeuropodValueMap> outputs = infer_internal(bound, requested_outputs);
  if (outputs == nullptr) throw_error(ErrorCode::kModelError, "the backend returned no outputs");
  meter->end(internal::CallPhase::kFramework);

  if (!requested_outputs.empty()) keep_requested(requested_outputs, outputs.get());
  const uint64_t output_bytes =
      rep_->check ? plan.check_outputs(*outputs, requested_outputs, &symbols) : 0;
  if (meter->on()) {
    count_outputs(*outputs, output_bytes, model_config_->outputs, rep_->outputs_to_measure, meter);
  }
  meter->end(internal::CallPhase::kOutputs);
  return outputs;
}

// Puts the inputs where the package wants them. `moved` owns what is made for this call.
void NeuropodBackend::seal_inputs(BoundInputs* bound,
                                  std::vector<std::shared_ptr<NeuropodValue>>* moved,
                                  internal::CallMeter* meter) {
  for (size_t i = 0; i < bound->size(); ++i) {
    if ((*bound)[i] == nullptr) continue;
    const NeuropodTensor& tensor = *(*(*bound)[i])->as_tensor();
    if (tensor.get_device() == rep_->input_devices[i]) continue;
    if (meter->on()) meter->count_copy(tensor);
    move_input(i, bound, moved);
  }
  // Nothing was done that took time, and looking at the clock does.
  if (!moved->empty()) meter->end(internal::CallPhase::kSealing);
}

// Puts input `index` where the package wants it.
void NeuropodBackend::move_input(size_t index, BoundInputs* bound,
                                 std::vector<std::shared_ptr<NeuropodValue>>* moved) {
  const NeuropodDevice target = rep_->input_devices[index];
  // The bindings point into it.
  if (moved->capacity() == 0) moved->reserve(bound->size());
  try {
    std::shared_ptr<NeuropodTensor> tensor(*(*bound)[index], (*(*bound)[index])->as_tensor());
    // Only the framework that made a tensor can read its device's memory.
    if (tensor->get_device() != Device::CPU) tensor = tensor->to(Device::CPU);
    if (target != Device::CPU) tensor = get_tensor_allocator()->copy_to_device(*tensor, target);
    moved->push_back(std::move(tensor));
  } catch (const Error& error) {
    throw error.with_context(
        fmt::format("input '{}' can't be moved to its device", model_config_->inputs[index].name));
  }
  bound->set(index, &moved->back());
}

std::unique_ptr<NeuropodValueMap> NeuropodBackend::infer_internal(const BoundInputs& inputs,
                                                                  const std::vector<std::string>&) {
  return infer_internal(inputs);
}

std::unique_ptr<NeuropodValueMap> NeuropodBackend::infer_internal(const BoundInputs&) {
  throw_error(ErrorCode::kLoadFailed, "the backend implements neither form of infer_internal()");
}

void NeuropodBackend::reset_internal() { load_model_internal(); }

bool NeuropodBackend::has_device(NeuropodDevice device) const { return device == Device::CPU; }

NeuropodDevice NeuropodBackend::model_device() const {
  if (options_.visible_device == Device::CPU) return Device::CPU;
  if (has_device(options_.visible_device)) return options_.visible_device;
  if (!rep_->told_of_missing_device.exchange(true)) {
    log(LogLevel::kDebug, fmt::format("{}: there is no device {} here, \"GPU\" means the CPU",
                                      rep_->context, options_.visible_device));
  }
  return Device::CPU;
}

void NeuropodBackend::input_has_default(const std::string& name) {
  rep_->inputs_with_defaults.push_back(name);
}

void NeuropodBackend::input_stays_on_cpu(const std::string& name) {
  rep_->inputs_on_cpu.push_back(name);
}

}  // namespace neuropod
