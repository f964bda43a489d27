// What the plug-in does on a GPU. `make test-gpu` builds and runs it, nothing else: each test needs
// a GPU that torch can use. What is the same for every backend (sealing counted, memory that can't
// be read here, …) is C11xx of the contract suite, which runs beside it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "neuropod/internal/neuropod_tensor_raw_data_access.hh"
#include "neuropod/neuropod.hh"

namespace neuropod {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TorchDeviceTest : public ::testing::Test {
 protected:
  static RuntimeOptions on(NeuropodDevice device) {
    RuntimeOptions options;
    options.visible_device = device;
    return options;
  }

  static Neuropod load(const std::string& name, NeuropodDevice device = Device::GPU0) {
    return Neuropod(std::string(FIXTURES) + "/" + name, on(device));
  }

  static int gpu_count() {
    int count = 0;
    std::ifstream(std::string(FIXTURES) + "/done") >> count;
    return count;
  }

  static std::shared_ptr<TypedNeuropodTensor<float>> floats(const Neuropod& model,
                                                            const std::vector<float>& values) {
    auto tensor = model.allocate_tensor<float>({int64_t(values.size())});
    tensor->copy_from(values);
    return tensor;
  }

  template <typename T>
  static std::vector<T> infer(const Neuropod& model, const std::string& output,
                              const NeuropodValueMap& inputs) {
    const auto outputs = model.infer(inputs);
    return outputs->at(output)->as_tensor()->as_typed_tensor<T>()->get_data_as_vector();
  }

  // Where the model "where" or "weights" says it is.
  static std::vector<int64_t> place(const Neuropod& model, const std::string& output) {
    return infer<int64_t>(model, output, {{"x", floats(model, {1})}});
  }

  static AllocatorStats stats(const Neuropod& model) {
    return model.get_tensor_allocator()->stats();
  }
};

TEST_F(TorchDeviceTest, InputsAndParametersAreOnTheGpu) {
  EXPECT_THAT(place(load("where"), "x_on"), ElementsAre(0));
  EXPECT_THAT(place(load("weights"), "y"), ElementsAre(0));
}

TEST_F(TorchDeviceTest, TheCpuIsUsedWhereItIsChosen) {
  EXPECT_THAT(place(load("where", Device::CPU), "x_on"), ElementsAre(-1));
  EXPECT_THAT(place(load("weights", Device::CPU), "y"), ElementsAre(-1));
}

TEST_F(TorchDeviceTest, AnIndexBehindTheLastGpuMeansTheCpu) {
  for (const int index : {gpu_count(), 63, 127, 128, 300}) {
    EXPECT_THAT(place(load("where", index), "x_on"), ElementsAre(-1)) << index;
  }
}

TEST_F(TorchDeviceTest, EachGpuCanBeChosenAndIsTheModelsCurrentOne) {
  ASSERT_GE(gpu_count(), 1);
  for (int index = 0; index < gpu_count(); ++index) {
    const Neuropod model = load("where", index);
    EXPECT_THAT(place(model, "x_on"), ElementsAre(index));
    EXPECT_THAT(place(model, "made_on"), ElementsAre(index));
    EXPECT_THAT(place(load("weights", index), "y"), ElementsAre(index));
  }
}

TEST_F(TorchDeviceTest, AnInputThatBelongsOnTheCpuStaysThere) {
  const Neuropod model = load("where_on_cpu");
  EXPECT_THAT(place(model, "x_on"), ElementsAre(-1));
  EXPECT_EQ(stats(model).transfers, 0u);
}

TEST_F(TorchDeviceTest, SealingMovesEachInputOnceAndCountsItsBytes) {
  const Neuropod model = load("plus_one");
  const auto x = floats(model, std::vector<float>(1000, 1));
  for (uint64_t call = 1; call <= 3; ++call) {
    model.infer({{"x", x}});
    EXPECT_EQ(stats(model).transfers, call);
    EXPECT_EQ(stats(model).transferred_bytes, call * 4000);
  }
}

TEST_F(TorchDeviceTest, HostMemoryOfAGpuModelIsPinnedAndLentMemoryIsNot) {
  const Neuropod model = load("pinned");
  EXPECT_THAT(infer<int64_t>(model, "y", {{"x", floats(model, {1, 2})}}), ElementsAre(1));
  std::vector<float> own(1024, 1);
  const auto lent = model.tensor_from_memory<float>({1024}, own.data(), [](void*) {});
  EXPECT_THAT(infer<int64_t>(model, "y", {{"x", lent}}), ElementsAre(0));
  const Neuropod on_cpu = load("pinned", Device::CPU);
  EXPECT_THAT(infer<int64_t>(on_cpu, "y", {{"x", floats(on_cpu, {1})}}), ElementsAre(0));
}

TEST_F(TorchDeviceTest, OutputsAreBroughtBackWhole) {
  const Neuropod model = load("plus_one");
  std::vector<float> values(size_t{1} << 24);
  std::iota(values.begin(), values.end(), 0.0F);
  const auto outputs = model.infer({{"x", floats(model, values)}});
  const std::shared_ptr<NeuropodTensor> y(outputs->at("y"), outputs->at("y")->as_tensor());
  EXPECT_EQ(y->get_device(), Device::CPU);
  EXPECT_TRUE(y->sole_owner());
  const float* data = y->as_typed_tensor<float>()->get_raw_data_ptr();
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(data[i], values[i] + 1) << i;
}

TEST_F(TorchDeviceTest, OutputsThatAreNotContiguousAreMadeSo) {
  const Neuropod model = load("transposed");
  auto x = model.allocate_tensor<float>({2, 3});
  x->copy_from({0, 1, 2, 3, 4, 5});
  EXPECT_THAT(infer<float>(model, "y", {{"x", x}}), ElementsAre(0, 6, 2, 8, 4, 10));
}

TEST_F(TorchDeviceTest, EveryDtypeGoesThereAndBack) {
  for (int type = 0; type <= int(COMPLEX128_TENSOR); ++type) {
    const auto dtype = TensorType(type);
    if (dtype == STRING_TENSOR) continue;
    const std::string name = get_dtype_name(dtype);
    const Neuropod model = load("identity_" + name);
    const std::shared_ptr<NeuropodTensor> x =
        model.get_tensor_allocator()->allocate_tensor({16}, dtype);
    auto* bytes = static_cast<char*>(internal::RawDataAccess::get_untyped_data_ptr(*x));
    const size_t size = internal::RawDataAccess::get_num_bytes(*x);
    for (size_t i = 0; i < size; ++i) bytes[i] = char(dtype == BOOL_TENSOR ? i % 2 : i % 100);
    const auto outputs = model.infer({{"x", x}});
    const NeuropodTensor& y = *outputs->at("y")->as_tensor();
    EXPECT_EQ(y.get_tensor_type(), dtype) << name;
    EXPECT_EQ(y.get_device(), Device::CPU) << name;
    EXPECT_EQ(std::memcmp(internal::RawDataAccess::get_untyped_data_ptr(y), bytes, size), 0)
        << name;
  }
}

TEST_F(TorchDeviceTest, ATensorMovesBetweenDevicesAndKeepsItsContent) {
  const Neuropod model = load("plus_one");
  const std::shared_ptr<NeuropodTensor> x = floats(model, {1, 2, 3});
  const auto there = x->to(Device::GPU0);
  EXPECT_EQ(there->get_device(), Device::GPU0);
  const auto back = there->to(Device::CPU);
  EXPECT_THAT(back->as_typed_tensor<float>()->get_data_as_vector(), ElementsAre(1, 2, 3));
  EXPECT_THAT(infer<float>(model, "y", {{"x", there}}), ElementsAre(2, 3, 4));
  EXPECT_EQ(stats(model).transfers, 0u) << "it was there already";
  for (int index = 1; index < gpu_count(); ++index) {
    EXPECT_THAT(infer<float>(load("plus_one", index), "y", {{"x", there}}), ElementsAre(2, 3, 4));
  }
}

TEST_F(TorchDeviceTest, ANumberThatTheModelTakesIsReadFromItsTensor) {
  const Neuropod model = load("threshold");
  auto limit = model.allocate_tensor<double>({});
  *limit->get_raw_data_ptr() = 2.5;
  EXPECT_THAT(infer<float>(model, "y", {{"x", floats(model, {1, 2, 3})}, {"limit", limit}}),
              ElementsAre(1, 2, 2.5));
  EXPECT_EQ(stats(model).transfers, 1u) << "the number isn't moved there and back";
}

TEST_F(TorchDeviceTest, StateLivesOnTheGpuAndResets) {
  Neuropod model = load("counter");
  const auto x = floats(model, {1, 2});
  EXPECT_THAT(infer<float>(model, "y", {{"x", x}}), ElementsAre(3));
  EXPECT_THAT(infer<float>(model, "y", {{"x", x}}), ElementsAre(6));
  model.reset();
  EXPECT_THAT(infer<float>(model, "y", {{"x", x}}), ElementsAre(3));
}

TEST_F(TorchDeviceTest, AnInputMayBeChangedAsSoonAsTheCallReturns) {
  const Neuropod model = load("late");
  constexpr int64_t kMany = 1 << 24;
  auto keep = model.allocate_tensor<int64_t>({});
  auto x = model.get_tensor_allocator()->full<float>({kMany}, 1);
  *keep->get_raw_data_ptr() = 1;
  model.infer({{"x", x}, {"keep", keep}});
  std::fill_n(x->get_raw_data_ptr(), kMany, 2.0F);
  *keep->get_raw_data_ptr() = 0;
  EXPECT_THAT(infer<float>(model, "y", {{"x", x}, {"keep", keep}}), ElementsAre(float(kMany)));
}

TEST_F(TorchDeviceTest, BlocksOfTheGpuAreUsedAgain) {
  const Neuropod model = load("plus_one");
  const auto x = floats(model, std::vector<float>(100000, 1));
  model.infer({{"x", x}});
  const AllocatorStats before = stats(model);
  for (int call = 0; call < 10; ++call) model.infer({{"x", x}});
  EXPECT_EQ(stats(model).system_allocations, before.system_allocations);
  EXPECT_EQ(stats(model).reused, before.reused + 10);
  EXPECT_EQ(stats(model).live_bytes, before.live_bytes);
}

TEST_F(TorchDeviceTest, ThreadsGetTheirOwnResults) {
  const Neuropod model = load("plus_one");
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      for (int call = 0; call < 100; ++call) {
        const float value = float(thread * 1000 + call);
        const std::vector<float> y =
            infer<float>(model, "y", {{"x", floats(model, std::vector<float>(5000, value))}});
        wrong += std::any_of(y.begin(), y.end(), [&](float each) { return each != value + 1; });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(TorchDeviceTest, AGpuThatIsFullIsOutOfMemoryAndTheNextCallWorks) {
  const Neuropod model = load("greedy");
  try {
    model.infer({{"x", floats(model, {4096})}});
    FAIL() << "4 TiB were to be had";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("memory"));
  }
  EXPECT_THAT(infer<float>(model, "y", {{"x", floats(model, {0.0F})}}), ElementsAre(1));
}

TEST_F(TorchDeviceTest, AllocatingMoreThanTheGpuHasIsOutOfMemory) {
  const Neuropod model = load("plus_one");
  const auto allocator = model.get_tensor_allocator();
  try {
    allocator->allocate_tensor({int64_t{1} << 42}, FLOAT_TENSOR, Device::GPU0);
    FAIL() << "16 TiB were to be had";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory) << error.what();
  }
  EXPECT_THAT(infer<float>(model, "y", {{"x", floats(model, {1})}}), ElementsAre(2));
}

TEST_F(TorchDeviceTest, TensorsOutliveTheirModel) {
  std::shared_ptr<NeuropodTensor> on_gpu;
  std::shared_ptr<TypedNeuropodTensor<float>> pinned;
  {
    const Neuropod model = load("plus_one");
    pinned = floats(model, {7});
    on_gpu = pinned->to(Device::GPU0);
  }
  EXPECT_THAT(pinned->get_data_as_vector(), ElementsAre(7));
  EXPECT_THAT(on_gpu->to(Device::CPU)->as_typed_tensor<float>()->get_data_as_vector(),
              ElementsAre(7));
}

}  // namespace
}  // namespace neuropod
