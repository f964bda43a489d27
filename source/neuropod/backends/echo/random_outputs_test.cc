#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "neuropod/neuropod.hh"
#include "neuropod/package/problem_api.hh"
#include "neuropod/testing/package_on_disk.hh"

namespace neuropod {
namespace {

// A package of `api` (the two specs as JSON) whose outputs are all random.
PackageOnDisk random_package(const ProblemApi& api, const std::string& more = "") {
  std::string config = problem_api_text(api);
  config.replace(0, 1, R"({"name": "random", "platform": "echo", "format_version": 1,)");
  std::string outputs;
  for (const TensorSpec& output : api.outputs) {
    outputs += (outputs.empty() ? "" : ", ") + ("\"" + output.name + R"(": {"op": "random"})");
  }
  return PackageOnDisk(config, "{" + more + R"("outputs": {)" + outputs + "}}");
}

RuntimeOptions on_cpu() {
  RuntimeOptions options;
  options.visible_device = Device::CPU;
  return options;
}

const ProblemApi& detection() {
  static const ProblemApi api = {
      {{"image", {12, 19, 3}, UINT8_TENSOR}},
      {{"boxes", {"num_detections", 4}, FLOAT_TENSOR},
       {"supported_object_classes", {"num_classes"}, STRING_TENSOR},
       {"object_class_probability", {"num_detections", "num_classes"}, FLOAT_TENSOR}}};
  return api;
}

std::unique_ptr<NeuropodValueMap> detect(const Neuropod& model) {
  return model.infer({{"image", model.allocate_tensor<uint8_t>({12, 19, 3})}});
}

TEST(RandomOutputsTest, ObeySpecsAndSymbolsOfTheObjectDetectionApi) {
  const PackageOnDisk package = random_package(detection());
  const Neuropod model(package.path(), on_cpu());
  std::set<std::vector<int64_t>> shapes;
  for (int i = 0; i < 50; ++i) {
    const auto outputs = detect(model);  // the core checks every call against the specs
    ASSERT_EQ(outputs->size(), 3u);
    shapes.insert(outputs->at("object_class_probability")->as_tensor()->get_dims());
    for (const float value : outputs->at("boxes")->as_typed_tensor<float>()->get_data_as_vector()) {
      EXPECT_GE(value, 0);
      EXPECT_LE(value, 1);
    }
    const auto* classes = outputs->at("supported_object_classes")->as_typed_tensor<std::string>();
    EXPECT_GE(classes->get_element(0).size(), 3u);
  }
  EXPECT_GT(shapes.size(), 5u);
}

TEST(RandomOutputsTest, AreTheSameForTheSameSeedAndDifferFromCallToCall) {
  const PackageOnDisk seeded = random_package(detection(), R"("seed": 7, )");
  const Neuropod model(seeded.path(), on_cpu());
  const Neuropod same(seeded.path(), on_cpu());
  const auto first = detect(model);
  const auto second = detect(model);
  EXPECT_EQ(*first->at("boxes"), *detect(same)->at("boxes"));
  EXPECT_EQ(*second->at("boxes"), *detect(same)->at("boxes"));
  EXPECT_NE(*first->at("boxes"), *second->at("boxes"));
}

TEST(RandomOutputsTest, WithoutASeedDifferFromLoadToLoad) {
  const PackageOnDisk package = random_package({{}, {{"y", {8}, DOUBLE_TENSOR}}});
  const Neuropod one(package.path(), on_cpu());
  const Neuropod other(package.path(), on_cpu());
  EXPECT_NE(*one.infer({})->at("y"), *other.infer({})->at("y"));
}

TEST(RandomOutputsTest, ARequestedOutputHasTheShapeItWouldHaveHadAmongAll) {
  const PackageOnDisk package = random_package(detection(), R"("seed": 7, )");
  const Neuropod model(package.path(), on_cpu());
  const Neuropod same(package.path(), on_cpu());
  const auto all = detect(model);
  const auto some = same.infer({{"image", same.allocate_tensor<uint8_t>({12, 19, 3})}}, {"boxes"});
  EXPECT_EQ(some->size(), 1u);
  EXPECT_EQ(*some->at("boxes"), *all->at("boxes"));
}

TEST(RandomOutputsTest, CarryEveryDtype) {
  ProblemApi api;
#define NEUROPOD_OUTPUT(enumerator, number, name, cpp_type) \
  api.outputs.push_back({name, {"n", 2}, enumerator});
  NEUROPOD_FOR_EACH_DTYPE(NEUROPOD_OUTPUT)
#undef NEUROPOD_OUTPUT
  const PackageOnDisk package = random_package(api);
  const Neuropod model(package.path(), on_cpu());
  const auto outputs = model.infer({});
  EXPECT_EQ(outputs->size(), api.outputs.size());
  for (const TensorSpec& output : api.outputs) {
    EXPECT_EQ(outputs->at(output.name)->as_tensor()->get_tensor_type(), output.type);
  }
}

// Random APIs, called with inputs of random sizes: no call fails the core's checks.
TEST(RandomOutputsTest, ObeyRandomApis) {
  std::mt19937 random(5);
  const std::vector<Dimension> dimensions = {1, 3, -1, "a", "b", "c"};
  const auto specs = [&](const std::string& prefix, bool are_inputs) {
    std::vector<TensorSpec> result;
    for (unsigned i = 0; i < random() % 4; ++i) {
      std::vector<Dimension> dims;
      for (unsigned dim = 0; dim < random() % 4; ++dim) dims.push_back(dimensions[random() % 6]);
      result.emplace_back(prefix + std::to_string(i), dims,
                          random() % 2 == 0 ? INT16_TENSOR : STRING_TENSOR,
                          are_inputs && random() % 3 == 0);
    }
    return result;
  };
  for (int i = 0; i < 100; ++i) {
    const ProblemApi api = {specs("input", true), specs("output", false)};
    const PackageOnDisk package = random_package(api);
    const Neuropod model(package.path(), on_cpu());
    for (int64_t size : {0, 1, 5}) {
      NeuropodValueMap inputs;
      for (const TensorSpec& input : api.inputs) {
        if (input.optional && random() % 2 == 0) continue;
        std::vector<int64_t> dims;
        for (const Dimension& dim : input.dims) dims.push_back(dim.value > 0 ? dim.value : size);
        inputs.emplace(input.name, model.get_tensor_allocator()->allocate_tensor(dims, input.type));
      }
      ASSERT_EQ(model.infer(inputs)->size(), api.outputs.size()) << problem_api_text(api);
    }
  }
}

TEST(RandomOutputsTest, AnOutputThatThePackageLacksIsRefused) {
  const PackageOnDisk package(one_input_config(), R"({"outputs": {"z": {"op": "random"}}})");
  try {
    Neuropod model(package.path(), on_cpu());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kLoadFailed);
    EXPECT_THAT(error.message(), testing::HasSubstr("'z' is no output of the package"));
  }
}

}  // namespace
}  // namespace neuropod
