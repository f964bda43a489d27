#include <neuropod/backends/neuropod_backend.hh>
#include <neuropod/core/generic_tensor.hh>

#include <memory>
#include <string>

#include "matrix/matrix.hh"

namespace {

using neuropod::BoundInputs;
using neuropod::ErrorCode;
using neuropod::NeuropodValueMap;
using neuropod::RuntimeOptions;
using neuropod::TensorSpec;
using neuropod::throw_error;

constexpr const char* kModelFile = "0/data/model.txt";

void require_float32(const std::vector<TensorSpec>& specs) {
  for (const TensorSpec& spec : specs) {
    if (spec.type == neuropod::FLOAT_TENSOR) continue;
    throw_error(ErrorCode::kInvalidPackage,
                "matrix models compute with float32, and the package's '" + spec.name + "' is " +
                    neuropod::get_dtype_name(spec.type));
  }
}

// Runs models of the matrix framework. The framework has no tensors of its own, so generic ones do.
class MatrixBackend
    : public neuropod::NeuropodBackendWithDefaultAllocator<neuropod::GenericNeuropodTensor> {
 public:
  using NeuropodBackendWithDefaultAllocator::NeuropodBackendWithDefaultAllocator;

 protected:
  void load_model_internal() override {
    require_float32(get_inputs());
    require_float32(get_outputs());
    const auto file = loader_->get_istream_for_file(kModelFile);
    if (file == nullptr) {
      throw_error(ErrorCode::kInvalidPackage, std::string("the package lacks ") + kModelFile);
    }
    model_ = std::make_unique<matrix::Model>(*file);
    for (const TensorSpec& output : get_outputs()) {
      if (model_->outputs().count(output.name) == 0) {
        throw_error(ErrorCode::kInvalidPackage,
                    "the matrix model has no output '" + output.name + "'");
      }
    }
  }

  std::unique_ptr<NeuropodValueMap> infer_internal(
      const BoundInputs& inputs, const std::vector<std::string>& requested_outputs) override {
    std::map<std::string, matrix::View> views;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == nullptr) continue;  // an optional input that was left out
      const auto* tensor = (*inputs[i])->as_typed_tensor<float>();
      const std::vector<int64_t>& dims = tensor->get_dims();
      views[get_inputs()[i].name] = {tensor->get_raw_data_ptr(), {dims.begin(), dims.end()}};
    }
    auto outputs = std::make_unique<NeuropodValueMap>();
    if (!requested_outputs.empty()) {
      for (const std::string& name : requested_outputs) outputs->emplace(name, run(name, views));
    } else {
      for (const TensorSpec& output : get_outputs()) {
        outputs->emplace(output.name, run(output.name, views));
      }
    }
    return outputs;
  }

 private:
  std::shared_ptr<neuropod::NeuropodValue> run(const std::string& output,
                                               const std::map<std::string, matrix::View>& inputs) {
    const std::vector<size_t> shape = model_->shape_of(output, inputs);
    auto tensor = get_tensor_allocator()->allocate_tensor<float>({shape.begin(), shape.end()});
    model_->run(output, inputs, tensor->get_raw_data_ptr());
    return tensor;
  }

  std::unique_ptr<matrix::Model> model_;
};

REGISTER_NEUROPOD_BACKEND(MatrixBackend, NEUROPOD_BACKEND_PLATFORM,
                          NEUROPOD_BACKEND_FRAMEWORK_VERSION)

}  // namespace
