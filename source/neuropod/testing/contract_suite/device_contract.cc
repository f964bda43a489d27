// C11xx: devices. All but the first need Device::GPU0.
#include "neuropod/testing/contract_suite/contract.hh"

namespace neuropod {
namespace {

using contract::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr NeuropodDevice kNoSuchDevice = 63;

AllocatorStats stats(const Neuropod& model) { return model.get_tensor_allocator()->stats(); }

TEST_F(Contract, C1101_WithoutSuchADeviceGpuMeansCpu) {
  if (!has("identity")) return;
  RuntimeOptions options;
  options.visible_device = kNoSuchDevice;
  const Neuropod model = load("identity", options);
  const auto outputs = model.infer({{"x", floats(model, {1, 2})}});
  EXPECT_EQ(outputs->at("y")->as_tensor()->get_device(), Device::CPU);
  EXPECT_THAT(values(*outputs, "y"), ElementsAre(1, 2));
  EXPECT_EQ(stats(model).transfers, 0u);
}

TEST_F(Contract, C1102_AnInputMovesToItsDeviceOnce) {
  if (!has("identity") || !able("device")) return;
  const Neuropod model = load("identity", on_gpu());
  const auto input = floats(model, {1, 2, 3});
  model.infer({{"x", input}});
  EXPECT_EQ(stats(model).transfers, 1u);
  EXPECT_EQ(stats(model).transferred_bytes, 12u);
  EXPECT_EQ(input->get_device(), Device::CPU);
  EXPECT_THAT(input->get_data_as_vector(), ElementsAre(1, 2, 3));
}

TEST_F(Contract, C1103_AnInputThatIsOnItsDeviceDoesNotMove) {
  if (!has("identity") || !able("device")) return;
  const Neuropod model = load("identity", on_gpu());
  const auto allocator = model.get_tensor_allocator();
  const std::shared_ptr<NeuropodTensor> input =
      allocator->copy_to_device(*floats(model, {1, 2}), Device::GPU0);
  const uint64_t before = stats(model).transfers;
  EXPECT_THAT(values(*model.infer({{"x", input}}), "y"), ElementsAre(1, 2));
  EXPECT_EQ(stats(model).transfers, before);
}

TEST_F(Contract, C1104_AnInputThatBelongsOnTheCpuStaysThere) {
  if (!has("identity") || !able("device")) return;
  const Neuropod model = load_variant(
      "identity", [](Json& config) { config["input_tensor_device"] = {{"x", "CPU"}}; }, on_gpu());
  EXPECT_THAT(values(*model.infer({{"x", floats(model, {1})}}), "y"), ElementsAre(1));
  EXPECT_EQ(stats(model).transfers, 0u);
}

TEST_F(Contract, C1105_ReadingDeviceMemoryIsAnErrorThatSaysWhatToCall) {
  if (!has("identity") || !able("device")) return;
  const Neuropod model = load("identity", on_gpu());
  const std::shared_ptr<NeuropodTensor> tensor =
      model.get_tensor_allocator()->allocate_tensor({2}, FLOAT_TENSOR, Device::GPU0);
  EXPECT_EQ(tensor->get_device(), Device::GPU0);
  const Error error = error_of([&] { tensor->as_typed_tensor<float>()->get_raw_data_ptr(); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr(".to(CPU)"));
}

TEST_F(Contract, C1106_ToCpuBringsAContentBack) {
  if (!has("identity") || !able("device")) return;
  const Neuropod model = load("identity", on_gpu());
  const std::shared_ptr<NeuropodTensor> tensor =
      model.get_tensor_allocator()->copy_to_device(*floats(model, {5, 6}), Device::GPU0);
  const auto back = tensor->to(Device::CPU);
  EXPECT_THAT(back->as_typed_tensor<float>()->get_data_as_vector(), ElementsAre(5, 6));
  EXPECT_EQ(back->to(Device::CPU), back);
}

TEST_F(Contract, C1107_OutputsAreWhereTheTableSays) {
  if (!has("transpose") || !able("device")) return;
  const Neuropod model = load("transpose", on_gpu());
  const auto input = model.get_tensor_allocator()->ones<float>({1, 2});
  const auto outputs = model.infer({{"x", input}});
  const bool stay = contract::fixtures().capabilities().switches.at("outputs_on_device");
  EXPECT_EQ(outputs->at("y")->as_tensor()->get_device(), stay ? Device::GPU0 : Device::CPU);
  EXPECT_THAT(values(*outputs, "y"), ElementsAre(1, 1));
}

TEST_F(Contract, C1108_ADeviceTensorFeedsAModelOnTheCpu) {
  if (!has("identity") || !able("device")) return;
  const Neuropod on_device = load("identity", on_gpu());
  const Neuropod on_host = load("identity");
  const std::shared_ptr<NeuropodTensor> tensor =
      on_device.get_tensor_allocator()->copy_to_device(*floats(on_device, {9}), Device::GPU0);
  const auto outputs = on_host.infer({{"x", tensor}});
  EXPECT_EQ(outputs->at("y")->as_tensor()->get_device(), Device::CPU);
  EXPECT_THAT(values(*outputs, "y"), ElementsAre(9));
}

TEST_F(Contract, C1109_StringsAndEmptyTensorsWorkOnADevice) {
  if (!has("outputs") || !has("identity") || !able("device")) return;
  if (carries("string")) {
    const Neuropod model = load("outputs", on_gpu());
    EXPECT_THAT(texts(*model.infer({{"x", floats(model, {1})}}), "text"), ElementsAre("done"));
  }
  const Neuropod identity = load("identity", on_gpu());
  EXPECT_TRUE(values(*identity.infer({{"x", floats(identity, {})}}), "y").empty());
}

TEST_F(Contract, C1110_AModelOnADeviceGivesWhatItGivesOnTheCpu) {
  if (!runs_on_device() || !has("addition") || !has("transpose")) return;
  const Neuropod addition = load("addition", on_gpu());
  const auto x = floats(addition, {1, 2, 3});
  const auto sums = addition.infer({{"x", x}, {"y", x}});
  EXPECT_THAT(values(*sums, "out"), ElementsAre(2, 4, 6));
  EXPECT_THAT(values(*addition.infer({{"x", x}, {"y", sums->at("out")}}), "out"),
              ElementsAre(3, 6, 9));
  const Neuropod transpose = load("transpose", on_gpu());
  auto matrix = transpose.allocate_tensor<float>({2, 2});
  matrix->copy_from({1, 2, 3, 4});
  const auto outputs = transpose.infer({{"x", matrix}});
  EXPECT_THAT(values(*outputs, "y"), ElementsAre(1, 3, 2, 4));
  if (out_of_process()) {
    EXPECT_EQ(outputs->at("y")->as_tensor()->get_device(), Device::CPU);
  }
}

}  // namespace
}  // namespace neuropod
