#include "neuropod/neuropod.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "neuropod/core/generic_tensor.hh"
#include "neuropod/internal/neuropod_tensor_raw_data_access.hh"
#include "neuropod/testing/error_of.hh"
#include "neuropod/testing/package_on_disk.hh"

namespace neuropod {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kDoubling =
    R"({"device": true, "outputs": {"y": {"op": "scale", "input": "x", "by": 2}}})";
constexpr const char* kIdentity =
    R"({"device": true, "outputs": {"y": {"op": "identity", "input": "x"}}})";

// The facade over echo, which lies beside the library under test.
class NeuropodTest : public ::testing::Test {
 protected:
  static RuntimeOptions on_cpu() {
    RuntimeOptions options;
    options.visible_device = Device::CPU;
    return options;
  }

  static std::shared_ptr<TypedNeuropodTensor<float>> floats(const Neuropod& model,
                                                            const std::vector<float>& values) {
    auto tensor = model.allocate_tensor<float>({int64_t(values.size())});
    tensor->copy_from(values);
    return tensor;
  }

  PackageOnDisk doubling_{one_input_config(), kDoubling};
};

TEST_F(NeuropodTest, LoadsAndInfers) {
  Neuropod model(doubling_.path(), on_cpu());
  EXPECT_EQ(model.get_name(), "tested");
  EXPECT_EQ(model.get_platform(), "echo");
  EXPECT_EQ(model.get_inputs().at(0).name, "x");
  EXPECT_EQ(model.get_outputs().at(0).name, "y");
  EXPECT_EQ(model.get_config().format_version, 1);
  const auto outputs = model.infer({{"x", floats(model, {1, 2, 3})}});
  EXPECT_THAT(outputs->at("y")->as_typed_tensor<float>()->get_data_as_vector(),
              ElementsAre(2, 4, 6));
}

TEST_F(NeuropodTest, RunsWithDefaultOptionsOnAMachineWithoutGpu) {
  PackageOnDisk package(one_input_config(),
                        R"({"outputs": {"y": {"op": "identity", "input": "x"}}})");
  Neuropod model(package.path());
  const auto input = floats(model, {1});
  EXPECT_EQ(model.infer({{"x", input}})->at("y"), input);
}

TEST_F(NeuropodTest, CopiesAndMovesShareTheModel) {
  std::vector<Neuropod> models;
  models.emplace_back(doubling_.path(), on_cpu());
  models.push_back(models.front());
  Neuropod moved(std::move(models.front()));  // NOLINT(performance-move-const-arg)
  EXPECT_EQ(moved.get_tensor_allocator(), models.back().get_tensor_allocator());
  // A move is a copy: what was moved from stays usable.
  EXPECT_EQ(models.front().get_name(), "tested");  // NOLINT(bugprone-use-after-move)
  models.clear();
  EXPECT_EQ(moved.infer({{"x", floats(moved, {1})}})->size(), 1u);
  models.push_back(moved);
  moved = std::move(models.back());  // NOLINT(performance-move-const-arg)
  EXPECT_EQ(moved.get_name(), "tested");
}

TEST_F(NeuropodTest, LoadsLaterIfAsked) {
  RuntimeOptions options = on_cpu();
  options.load_model_at_construction = false;
  Neuropod model(doubling_.path(), options);
  EXPECT_EQ(model.get_name(), "tested");
  const auto input = floats(model, {1});
  EXPECT_EQ(error_of([&] { model.infer({{"x", input}}); }).code(), ErrorCode::kInvalidArgument);
  model.load_model();
  EXPECT_EQ(model.infer({{"x", input}})->size(), 1u);
  EXPECT_EQ(error_of([&] { model.load_model(); }).code(), ErrorCode::kInvalidArgument);
}

TEST_F(NeuropodTest, TakesAnOverrideByDirectory) {
  const BackendLoadSpec echo{"echo", "1.0.0", NEUROPOD_TEST_ECHO_DIRECTORY};
  Neuropod model(doubling_.path(), {echo}, on_cpu());
  EXPECT_EQ(model.infer({{"x", floats(model, {1})}})->size(), 1u);
}

TEST_F(NeuropodTest, WrapsABackendThatExists) {
  std::shared_ptr<NeuropodBackend> backend = load_backend(doubling_.path(), {}, on_cpu());
  backend->load_model();
  Neuropod model("for messages only", backend);
  EXPECT_EQ(model.infer({{"x", floats(model, {1})}})->size(), 1u);
  EXPECT_EQ(error_of([] { Neuropod none("p", std::shared_ptr<NeuropodBackend>()); }).code(),
            ErrorCode::kInvalidArgument);
}

TEST_F(NeuropodTest, ResetsAStatefulModel) {
  PackageOnDisk package(one_input_config(R"("stateful": true, )"),
                        R"({"outputs": {"y": {"op": "running_sum", "input": "x"}}})");
  Neuropod model(package.path(), on_cpu());
  const auto sum = [&] {
    return model.infer({{"x", floats(model, {1})}})->at("y")->as_tensor()->as_scalar<float>();
  };
  EXPECT_EQ(sum(), 1);
  EXPECT_EQ(sum(), 2);
  model.reset();
  EXPECT_EQ(sum(), 1);
}

TEST_F(NeuropodTest, AMissingPackageIsNamed) {
  const Error error = error_of([] { Neuropod model("/nowhere/model.neuropod"); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_THAT(error.what(), HasSubstr("/nowhere/model.neuropod"));
}

TEST_F(NeuropodTest, ErrorsOfACallNameTheModel) {
  Neuropod model(doubling_.path(), on_cpu());
  const Error error = error_of([&] { model.infer({{"x", floats(model, {1})}}, {"why"}); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("model 'tested'"), HasSubstr("'why'")));
}

// The pretend device: its memory can't be touched, so these fail with a signal if anything does.
class NeuropodDeviceTest : public NeuropodTest {
 protected:
  static AllocatorStats stats(const Neuropod& model) {
    return model.get_tensor_allocator()->stats();
  }
};

TEST_F(NeuropodDeviceTest, AnInputMovesToTheDeviceOnce) {
  PackageOnDisk package(one_input_config(), kIdentity);
  Neuropod model(package.path());
  const auto outputs = model.infer({{"x", floats(model, {1, 2})}});
  EXPECT_EQ(stats(model).transfers, 1u);
  EXPECT_EQ(stats(model).transferred_bytes, 8u);

  const auto on_device = std::dynamic_pointer_cast<NeuropodTensor>(outputs->at("y"));
  ASSERT_EQ(on_device->get_device(), Device::GPU0);
  const auto again = model.infer({{"x", on_device}});
  EXPECT_EQ(again->at("y"), on_device);
  EXPECT_EQ(stats(model).transfers, 1u);
}

TEST_F(NeuropodDeviceTest, ReadingDeviceMemorySaysWhatToCall) {
  PackageOnDisk package(one_input_config(), kDoubling);
  Neuropod model(package.path());
  const auto outputs = model.infer({{"x", floats(model, {1, 2})}});
  NeuropodTensor* output = outputs->at("y")->as_tensor();
  EXPECT_THAT(error_of([&] { output->as_typed_tensor<float>()->get_raw_data_ptr(); }).what(),
              HasSubstr(".to(CPU)"));
  EXPECT_THAT(output->to(Device::CPU)->as_typed_tensor<float>()->get_data_as_vector(),
              ElementsAre(2, 4));
}

TEST_F(NeuropodDeviceTest, AnInputThatBelongsOnTheCpuStaysThere) {
  PackageOnDisk package(one_input_config(R"("input_tensor_device": {"x": "CPU"}, )"), kIdentity);
  Neuropod model(package.path());
  const auto input = floats(model, {1});
  EXPECT_EQ(model.infer({{"x", input}})->at("y"), input);
  EXPECT_EQ(stats(model).transfers, 0u);
}

TEST_F(NeuropodDeviceTest, ATensorOfAnotherModelsDeviceGoesThroughTheCpu) {
  PackageOnDisk package(one_input_config(), kIdentity);
  Neuropod first(package.path());
  RuntimeOptions second_device;
  second_device.visible_device = Device::GPU1;
  Neuropod second(package.path(), second_device);
  Neuropod third(package.path(), on_cpu());

  const auto on_first = first.infer({{"x", floats(first, {3})}});
  const auto on_second = second.infer({{"x", on_first->at("y")}});
  EXPECT_EQ(on_second->at("y")->as_tensor()->get_device(), Device::GPU1);
  const auto on_third = third.infer({{"x", on_second->at("y")}});
  EXPECT_EQ(on_third->at("y")->as_tensor()->as_scalar<float>(), 3);
}

TEST_F(NeuropodDeviceTest, ATensorOfNoFrameworkMoves) {
  PackageOnDisk package(one_input_config(), kDoubling);
  Neuropod model(package.path());
  const auto input = get_generic_tensor_allocator()->full<float>({2}, 4);
  const auto outputs = model.infer({{"x", std::shared_ptr<NeuropodValue>(input)}});
  EXPECT_THAT(outputs->at("y")
                  ->as_tensor()
                  ->to(Device::CPU)
                  ->as_typed_tensor<float>()
                  ->get_data_as_vector(),
              ElementsAre(8, 8));
}

TEST_F(NeuropodDeviceTest, AnEmptyTensorMoves) {
  PackageOnDisk package(one_input_config(), kIdentity);
  Neuropod model(package.path());
  const auto outputs = model.infer({{"x", model.allocate_tensor<float>({0})}});
  EXPECT_EQ(outputs->at("y")->as_tensor()->to(Device::CPU)->get_num_elements(), 0u);
}

}  // namespace
}  // namespace neuropod
