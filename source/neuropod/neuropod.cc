#include "neuropod/neuropod.hh"

#include <utility>

#include "neuropod/async_calls.hh"
#include "neuropod/multiprocess/multiprocess_backend.hh"

namespace neuropod {
namespace {

std::shared_ptr<NeuropodBackend> open_backend(const std::string& neuropod_path,
                                              const std::vector<BackendLoadSpec>& overrides,
                                              const RuntimeOptions& options) {
  if (!options.use_ope) return load_backend(neuropod_path, overrides, options);
  return std::make_shared<MultiprocessNeuropodBackend>(neuropod_path, overrides, options);
}

}  // namespace

Neuropod::Neuropod(const std::string& neuropod_path, const RuntimeOptions& options)
    : Neuropod(neuropod_path, std::vector<BackendLoadSpec>{}, options) {}

Neuropod::Neuropod(const std::string& neuropod_path,
                   const std::vector<BackendLoadSpec>& backend_overrides,
                   const RuntimeOptions& options)
    : backend_(open_backend(neuropod_path, backend_overrides, options)),
      async_calls_(std::make_shared<internal::AsyncCalls>(backend_)) {
  if (options.load_model_at_construction) backend_->load_model();
}

Neuropod::Neuropod(const std::string& neuropod_path, std::shared_ptr<NeuropodBackend> backend)
    : backend_(std::move(backend)) {
  if (backend_ == nullptr) {
    throw_error(ErrorCode::kInvalidArgument, "the backend for '" + neuropod_path + "' is null");
  }
  async_calls_ = std::make_shared<internal::AsyncCalls>(backend_);
}

Neuropod::~Neuropod() = default;
Neuropod::Neuropod(const Neuropod&) = default;
Neuropod& Neuropod::operator=(const Neuropod&) = default;

void Neuropod::load_model() { backend_->load_model(); }

std::unique_ptr<NeuropodValueMap> Neuropod::infer(
    const NeuropodValueMap& inputs, const std::vector<std::string>& requested_outputs) const {
  return backend_->infer(inputs, requested_outputs);
}

std::future<std::unique_ptr<NeuropodValueMap>> Neuropod::infer_async(
    NeuropodValueMap inputs, std::vector<std::string> requested_outputs) const {
  auto promise = std::make_shared<std::promise<std::unique_ptr<NeuropodValueMap>>>();
  auto future = promise->get_future();
  infer_async(
      std::move(inputs), std::move(requested_outputs),
      [promise](std::unique_ptr<NeuropodValueMap> outputs, const std::exception_ptr& error) {
        if (error != nullptr) {
          promise->set_exception(error);
        } else {
          promise->set_value(std::move(outputs));
        }
      });
  return future;
}

AsyncCall Neuropod::infer_async(NeuropodValueMap inputs, std::vector<std::string> requested_outputs,
                                InferCallback done) const {
  return async_calls_->submit(std::move(inputs), std::move(requested_outputs), std::move(done));
}

void Neuropod::reset() { backend_->reset(); }

std::vector<WorkerInfo> Neuropod::workers() const { return backend_->workers(); }

int Neuropod::concurrency() const { return backend_->concurrency(); }

ModelStats Neuropod::stats() const { return backend_->stats(); }

void Neuropod::count_failed_call(ErrorCode code) const noexcept {
  backend_->count_failed_call(code);
}

const std::vector<TensorSpec>& Neuropod::get_inputs() const { return backend_->get_inputs(); }

const std::vector<TensorSpec>& Neuropod::get_outputs() const { return backend_->get_outputs(); }

const std::string& Neuropod::get_name() const { return backend_->get_name(); }

const std::string& Neuropod::get_platform() const { return backend_->get_platform(); }

const ModelConfig& Neuropod::get_config() const { return backend_->get_config(); }

std::shared_ptr<NeuropodTensorAllocator> Neuropod::get_tensor_allocator() const {
  return backend_->get_tensor_allocator();
}

}  // namespace neuropod
