#include "neuropod/testing/contract_suite/contract.hh"

#include <algorithm>

namespace neuropod {
namespace {

constexpr const char* kDeclaredSkip = "declared";

class SkipWatch : public ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo& test) override {
    if (!test.result()->Skipped()) return;
    for (int i = 0; i < test.result()->test_property_count(); ++i) {
      if (std::string(test.result()->GetTestProperty(i).key()) == kDeclaredSkip) return;
    }
    ADD_FAILURE() << test.name() << " was skipped, and no capability says why";
  }
};

}  // namespace

void watch_for_undeclared_skips() {
  ::testing::UnitTest::GetInstance()->listeners().Append(new SkipWatch);
}

namespace {

bool in_workers = false;  // fixed before the first test

}  // namespace

void run_out_of_process() { in_workers = true; }

bool Contract::out_of_process() { return in_workers; }

RuntimeOptions Contract::on_cpu() {
  RuntimeOptions options;
  options.use_ope = in_workers;
  options.visible_device = Device::CPU;
  return options;
}

RuntimeOptions Contract::on_gpu() {
  RuntimeOptions options;
  options.use_ope = in_workers;
  options.visible_device = Device::GPU0;
  return options;
}

bool Contract::able(const std::string& capability) {
  // The host has no tensor on a device: the worker brings them there and back.
  if (in_workers && capability == "device") {
    RecordProperty(kDeclaredSkip, capability);
    [] { GTEST_SKIP() << "device: a worker's host has its tensors on the CPU"; }();
    return false;
  }
  return declared(capability, contract::fixtures().capabilities().switches.at(capability));
}

bool Contract::runs_on_device() {
  return declared("device", contract::fixtures().capabilities().switches.at("device"));
}

bool Contract::has(const std::string& package) {
  return declared(package, contract::fixtures().has_package(package));
}

bool Contract::declared(const std::string& key, bool present) {
  if (present) return true;
  const std::string reason = contract::fixtures().reason(key);
  if (reason.empty()) {
    ADD_FAILURE() << "the fixtures file denies '" << key << "' and doesn't say why in 'reasons'";
    return false;
  }
  RecordProperty(kDeclaredSkip, key);
  // GTEST_SKIP() returns from the function that it stands in.
  [&] { GTEST_SKIP() << key << ": " << reason; }();
  return false;
}

bool Contract::carries(const std::string& dtype) {
  const std::vector<std::string>& dtypes = contract::fixtures().capabilities().dtypes;
  return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
}

Neuropod Contract::load(const std::string& package, const RuntimeOptions& options) {
  return Neuropod(contract::fixtures().package(package), options);
}

Neuropod Contract::load_variant(const std::string& package, const Edit& edit,
                                const RuntimeOptions& options) {
  const contract::PackageVariant variant(contract::fixtures().package(package), edit);
  return Neuropod(variant.path(), options);
}

Neuropod Contract::load_identity(const std::string& dtype, size_t rank) {
  const bool own = dtype == "string" && contract::fixtures().has_package("identity_string");
  const contract::Json shape(std::vector<contract::Json>(rank, nullptr));
  return load_variant(own ? "identity_string" : "identity", [&](contract::Json& config) {
    contract::set_spec(config, "input_spec", "x", dtype, shape);
    contract::set_spec(config, "output_spec", "y", dtype, shape);
  });
}

std::shared_ptr<TypedNeuropodTensor<float>> Contract::floats(const Neuropod& model,
                                                             const std::vector<float>& values) {
  auto tensor = model.allocate_tensor<float>({int64_t(values.size())});
  tensor->copy_from(values);
  return tensor;
}

std::shared_ptr<TypedNeuropodTensor<std::string>> Contract::strings(
    const Neuropod& model, const std::vector<int64_t>& dims,
    const std::vector<std::string>& values) {
  auto tensor = model.allocate_tensor<std::string>(dims);
  tensor->copy_from(values);
  return tensor;
}

std::vector<float> Contract::values(const NeuropodValueMap& outputs, const std::string& name) {
  return outputs.at(name)
      ->as_tensor()
      ->to(Device::CPU)
      ->as_typed_tensor<float>()
      ->get_data_as_vector();
}

std::vector<std::string> Contract::texts(const NeuropodValueMap& outputs, const std::string& name) {
  return outputs.at(name)->as_typed_tensor<std::string>()->get_data_as_vector();
}

}  // namespace neuropod
