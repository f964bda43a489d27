#include "neuropod/backends/neuropod_backend.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <new>
#include <stdexcept>
#include <thread>

#include "neuropod/core/generic_tensor.hh"
#include "neuropod/testing/error_of.hh"
#include "neuropod/testing/package_on_disk.hh"

namespace neuropod {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What a framework is to the base class: two functions and a device.
class FakeBackend : public NeuropodBackendWithDefaultAllocator<GenericNeuropodTensor> {
 public:
  using NeuropodBackendWithDefaultAllocator<
      GenericNeuropodTensor>::NeuropodBackendWithDefaultAllocator;

  std::function<void()> on_load = [] {};
  std::function<std::unique_ptr<NeuropodValueMap>(const BoundInputs&)> on_infer =
      [](const BoundInputs& inputs) {
        auto outputs = std::make_unique<NeuropodValueMap>();
        if (inputs[0] != nullptr) outputs->emplace("y", *inputs[0]);
        return outputs;
      };
  std::function<bool(NeuropodDevice)> on_has_device = [](NeuropodDevice device) {
    return device == Device::CPU;
  };

  using NeuropodBackend::input_has_default;
  using NeuropodBackend::input_stays_on_cpu;
  using NeuropodBackend::model_device;

 protected:
  void load_model_internal() override { on_load(); }
  std::unique_ptr<NeuropodValueMap> infer_internal(const BoundInputs& inputs) override {
    return on_infer(inputs);
  }
  bool has_device(NeuropodDevice device) const override { return on_has_device(device); }
};

class NeuropodBackendTest : public ::testing::Test {
 protected:
  FakeBackend& load(const std::string& more = "", const RuntimeOptions& options = {}) {
    open(more, options);
    backend_->load_model();
    return *backend_;
  }

  FakeBackend& open(const std::string& more = "", const RuntimeOptions& options = {}) {
    package_ = std::make_unique<PackageOnDisk>(one_input_config(more, "fake"));
    backend_ = std::make_unique<FakeBackend>(package_->path(), options);
    return *backend_;
  }

  std::shared_ptr<TypedNeuropodTensor<float>> floats(const std::vector<float>& values) {
    auto tensor =
        backend_->get_tensor_allocator()->allocate_tensor<float>({int64_t(values.size())});
    tensor->copy_from(values);
    return tensor;
  }

  Error error_of_infer() {
    return error_of([&] { backend_->infer({{"x", floats({1, 2})}}); });
  }

  std::unique_ptr<PackageOnDisk> package_;
  std::unique_ptr<FakeBackend> backend_;
};

TEST_F(NeuropodBackendTest, ReadsTheConfigurationWhenConstructed) {
  FakeBackend& backend = open();
  EXPECT_EQ(backend.get_name(), "tested");
  EXPECT_EQ(backend.get_platform(), "fake");
  ASSERT_EQ(backend.get_inputs().size(), 1u);
  EXPECT_EQ(backend.get_inputs()[0].name, "x");
  EXPECT_EQ(backend.get_outputs()[0].name, "y");
}

TEST_F(NeuropodBackendTest, InferBeforeLoadSaysWhatToCall) {
  open();
  const Error error = error_of_infer();
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("model 'tested' isn't loaded"), HasSubstr("load_model()")));
}

TEST_F(NeuropodBackendTest, LoadingTwiceIsAnError) {
  FakeBackend& backend = load();
  EXPECT_EQ(error_of([&] { backend.load_model(); }).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(backend.infer({{"x", floats({1})}})->count("y"), 1u);
}

TEST_F(NeuropodBackendTest, WhatAFrameworkThrowsWhileLoadingIsLoadFailed) {
  FakeBackend& backend = open();
  backend.on_load = [] { throw std::runtime_error("unknown layer 'conv9'"); };
  const Error error = error_of([&] { backend.load_model(); });
  EXPECT_EQ(error.code(), ErrorCode::kLoadFailed);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("model 'tested'"), HasSubstr(package_->path()),
                                  HasSubstr("unknown layer 'conv9'")));
}

TEST_F(NeuropodBackendTest, AFailedLoadMayBeTriedAgain) {
  FakeBackend& backend = open();
  backend.on_load = [] { throw std::bad_alloc(); };
  EXPECT_EQ(error_of([&] { backend.load_model(); }).code(), ErrorCode::kOutOfMemory);
  backend.on_load = [] {};
  backend.load_model();
  EXPECT_EQ(backend.infer({{"x", floats({1})}})->count("y"), 1u);
}

TEST_F(NeuropodBackendTest, WhatAModelThrowsIsModelErrorWithItsText) {
  FakeBackend& backend = load();
  const auto works = backend.on_infer;
  backend.on_infer = [](const BoundInputs&) -> std::unique_ptr<NeuropodValueMap> {
    throw std::logic_error("index 7 is out of range");
  };
  const Error error = error_of_infer();
  EXPECT_EQ(error.code(), ErrorCode::kModelError);
  EXPECT_STREQ(error.what(), "Neuropod Error: model 'tested': index 7 is out of range");
  backend.on_infer = works;
  EXPECT_EQ(backend.infer({{"x", floats({1})}})->count("y"), 1u);
}

TEST_F(NeuropodBackendTest, WhatIsNoExceptionIsModelErrorToo) {
  FakeBackend& backend = load();
  backend.on_infer = [](const BoundInputs&) -> std::unique_ptr<NeuropodValueMap> { throw 7; };
  EXPECT_EQ(error_of_infer().code(), ErrorCode::kModelError);
}

TEST_F(NeuropodBackendTest, OurOwnErrorsKeepTheirCode) {
  FakeBackend& backend = load();
  backend.on_infer = [](const BoundInputs&) -> std::unique_ptr<NeuropodValueMap> {
    throw_error(ErrorCode::kUnavailable, "not now");
  };
  const Error error = error_of_infer();
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_STREQ(error.what(), "Neuropod Error: model 'tested': not now");
}

TEST_F(NeuropodBackendTest, ACallThatRanOutOfMemoryIsTriedOnceMoreWithEmptyPools) {
  FakeBackend& backend = load();
  floats({1, 2, 3});
  ASSERT_GT(backend.get_tensor_allocator()->stats().kept_bytes, 0u);
  const auto works = backend.on_infer;
  int calls = 0;
  uint64_t kept = 0;
  backend.on_infer = [&](const BoundInputs& inputs) {
    if (++calls == 1) throw std::bad_alloc();
    kept = backend.get_tensor_allocator()->stats().kept_bytes;
    return works(inputs);
  };
  EXPECT_EQ(backend.infer({{"x", floats({1})}})->count("y"), 1u);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(kept, 0u);
}

TEST_F(NeuropodBackendTest, ASecondTimeOutOfMemoryIsTheError) {
  FakeBackend& backend = load();
  int calls = 0;
  backend.on_infer = [&](const BoundInputs&) -> std::unique_ptr<NeuropodValueMap> {
    ++calls;
    throw std::bad_alloc();
  };
  EXPECT_EQ(error_of_infer().code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(calls, 2);
}

TEST_F(NeuropodBackendTest, AStatefulModelIsNotRunTwice) {
  FakeBackend& backend = load(R"("stateful": true, )");
  int calls = 0;
  backend.on_infer = [&](const BoundInputs&) -> std::unique_ptr<NeuropodValueMap> {
    ++calls;
    throw std::bad_alloc();
  };
  EXPECT_EQ(error_of_infer().code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(calls, 1);
}

TEST_F(NeuropodBackendTest, ChecksInputsAndOutputs) {
  FakeBackend& backend = load();
  auto matrix = backend.get_tensor_allocator()->zeros<float>({2, 2});
  EXPECT_THAT(error_of([&] { backend.infer({{"x", matrix}}); }).what(),
              HasSubstr("in the input spec is expected to have 1 dimensions, but had 2"));
  backend.on_infer = [&](const BoundInputs&) {
    return std::make_unique<NeuropodValueMap>(NeuropodValueMap{{"y", matrix}});
  };
  EXPECT_THAT(error_of_infer().what(),
              HasSubstr("in the output spec is expected to have 1 dimensions, but had 2"));
}

TEST_F(NeuropodBackendTest, DisablingTheChecksLeavesUnknownNamesAnError) {
  RuntimeOptions options;
  options.disable_shape_and_type_checking = true;
  FakeBackend& backend = load("", options);
  auto matrix = backend.get_tensor_allocator()->zeros<double>({2, 2});
  EXPECT_EQ(backend.infer({{"x", matrix}})->at("y"), matrix);
  EXPECT_THAT(error_of([&] { backend.infer({{"x", matrix}, {"xx", matrix}}); }).what(),
              HasSubstr("are not found in the input spec"));
}

TEST_F(NeuropodBackendTest, ReturnsOnlyWhatWasRequested) {
  RuntimeOptions options;
  options.disable_shape_and_type_checking = true;
  FakeBackend& backend = load("", options);
  const auto works = backend.on_infer;
  backend.on_infer = [&](const BoundInputs& inputs) {
    auto outputs = works(inputs);
    outputs->emplace("extra", *inputs[0]);
    return outputs;
  };
  EXPECT_EQ(backend.infer({{"x", floats({1})}})->size(), 2u);
  const auto outputs = backend.infer({{"x", floats({1})}}, {"y"});
  EXPECT_EQ(outputs->size(), 1u);
  EXPECT_EQ(outputs->count("y"), 1u);
}

TEST_F(NeuropodBackendTest, ARequestedOutputThatTheModelForgetsIsAnError) {
  FakeBackend& backend = load();
  backend.on_infer = [](const BoundInputs&) { return std::make_unique<NeuropodValueMap>(); };
  const Error error = error_of([&] { backend.infer({{"x", floats({1})}}, {"y"}); });
  EXPECT_EQ(error.code(), ErrorCode::kSpecMismatch);
  EXPECT_THAT(error.what(), HasSubstr("'y'"));
}

TEST_F(NeuropodBackendTest, NoOutputsAtAllIsAnError) {
  FakeBackend& backend = load();
  backend.on_infer = [](const BoundInputs&) { return std::unique_ptr<NeuropodValueMap>(); };
  EXPECT_EQ(error_of_infer().code(), ErrorCode::kModelError);
}

TEST_F(NeuropodBackendTest, AnInputWithADefaultMayBeLeftOut) {
  FakeBackend& backend = open();
  backend.on_load = [&] { backend.input_has_default("x"); };
  backend.load_model();
  bool left_out = false;
  backend.on_infer = [&](const BoundInputs& inputs) {
    left_out = inputs[0] == nullptr;
    return std::make_unique<NeuropodValueMap>(NeuropodValueMap{{"y", floats({1})}});
  };
  backend.infer({});
  EXPECT_TRUE(left_out);
}

TEST_F(NeuropodBackendTest, OldPackagesMayLeaveInputsOutUnlessStrict) {
  const std::string old =
      R"({"name": "old", "platform": "fake",
          "input_spec": [{"name": "x", "dtype": "float32", "shape": [null]}],
          "output_spec": []})";
  PackageOnDisk package(old);
  FakeBackend backend(package.path(), {});
  backend.load_model();
  EXPECT_TRUE(backend.infer({})->empty());

  RuntimeOptions strict;
  strict.strict = true;
  FakeBackend strict_backend(package.path(), strict);
  strict_backend.load_model();
  EXPECT_EQ(error_of([&] { strict_backend.infer({}); }).code(), ErrorCode::kSpecMismatch);
}

TEST_F(NeuropodBackendTest, WithoutSuchADeviceGpuMeansCpu) {
  FakeBackend& backend = load();
  EXPECT_EQ(backend.model_device(), Device::CPU);
  const auto input = floats({1});
  EXPECT_EQ(backend.infer({{"x", input}})->at("y"), input);
}

TEST_F(NeuropodBackendTest, TheVisibleDeviceIsUsedIfItIsThere) {
  RuntimeOptions options;
  options.visible_device = Device::GPU3;
  FakeBackend& backend = open("", options);
  backend.on_has_device = [](NeuropodDevice device) { return device == Device::GPU3; };
  EXPECT_EQ(backend.model_device(), Device::GPU3);
  options.visible_device = Device::CPU;
  EXPECT_EQ(open("", options).model_device(), Device::CPU);
}

TEST_F(NeuropodBackendTest, AnInputThatCannotReachItsDeviceIsNamed) {
  FakeBackend& backend = open();
  backend.on_has_device = [](NeuropodDevice) { return true; };
  backend.load_model();
  // The generic allocator has no memory on GPU0, so sealing fails.
  const Error error = error_of_infer();
  EXPECT_THAT(error.what(), AllOf(HasSubstr("model 'tested'"),
                                  HasSubstr("input 'x' can't be moved to its device")));
}

TEST_F(NeuropodBackendTest, AnInputThatTheModelReadsOnTheCpuIsNotMoved) {
  FakeBackend& backend = open();
  backend.on_has_device = [](NeuropodDevice) { return true; };
  backend.on_load = [&] { backend.input_stays_on_cpu("x"); };
  backend.load_model();
  // Moving it would fail, as above.
  const auto outputs = backend.infer({{"x", floats({1, 2})}});
  EXPECT_EQ(outputs->at("y")->as_tensor()->get_device(), Device::CPU);
  EXPECT_EQ(backend.get_tensor_allocator()->stats().transfers, 0u);
}

TEST_F(NeuropodBackendTest, CallsOfAStatefulModelRunOneAfterTheOther) {
  FakeBackend& backend = load(R"("stateful": true, )");
  const auto works = backend.on_infer;
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  backend.on_infer = [&](const BoundInputs& inputs) {
    most = std::max(most.load(), ++inside);
    std::this_thread::yield();
    --inside;
    return works(inputs);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < 200; ++call) backend.infer({{"x", floats({1})}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
}

TEST_F(NeuropodBackendTest, ResetLoadsTheModelAnew) {
  FakeBackend& backend = load(R"("stateful": true, )");
  int loads = 0;
  backend.on_load = [&] { ++loads; };
  backend.reset();
  EXPECT_EQ(loads, 1);
}

TEST_F(NeuropodBackendTest, OnlyStatefulModelsCanBeReset) {
  FakeBackend& backend = load();
  const Error error = error_of([&] { backend.reset(); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("stateful"));
}

TEST_F(NeuropodBackendTest, ADirectoryWithoutAConfigurationIsNoPackage) {
  TemporaryFolder folder;
  const Error error = error_of([&] { FakeBackend backend(folder.path(), {}); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidPackage);
  EXPECT_THAT(error.what(), AllOf(HasSubstr(folder.path()), HasSubstr("config.json")));
}

TEST_F(NeuropodBackendTest, HashesAreVerifiedUnlessSwitchedOff) {
  PackageOnDisk package(one_input_config("", "fake"));
  package.write("manifest.json", R"({"files": {"config.json": ")" + std::string(64, '0') +
                                     R"("}, "manifest_version": 1})");
  EXPECT_EQ(error_of([&] { FakeBackend backend(package.path(), {}); }).code(),
            ErrorCode::kCorruptPackage);
  RuntimeOptions options;
  options.verify_hashes = false;
  EXPECT_EQ(FakeBackend(package.path(), options).get_name(), "tested");
}

}  // namespace
}  // namespace neuropod
