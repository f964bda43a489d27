#include "neuropod/backends/tensor_allocator.hh"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "neuropod/core/generic_tensor.hh"

namespace neuropod {
namespace {

// A framework that has no int8, and whose double tensors break after they took the memory over.
template <typename T>
class PickyTensor : public GenericNeuropodTensor<T> {
 public:
  PickyTensor(std::vector<int64_t> dims, T* data, Deleter deleter, NeuropodDevice device)
      : GenericNeuropodTensor<T>(checked(std::move(dims)), data, std::move(deleter), device) {
    if (std::is_same_v<T, double>) throw std::runtime_error("broke late");
  }

 private:
  static std::vector<int64_t> checked(std::vector<int64_t> dims) {
    if (std::is_same_v<T, int8_t>) throw_error(ErrorCode::kInvalidArgument, "no int8 here");
    return dims;
  }
};

template <>
class PickyTensor<std::string> : public GenericNeuropodTensor<std::string> {
 public:
  using GenericNeuropodTensor<std::string>::GenericNeuropodTensor;
};

// Device 0 is memory like any other, so that copies to and from it can be looked at.
class PretendMemory : public DeviceMemory {
 public:
  bool has_device(NeuropodDevice device) const noexcept override { return device <= 0; }
  void* allocate(size_t bytes, NeuropodDevice) noexcept override {
    return host_->allocate(bytes, Device::CPU);
  }
  void free(void* data, size_t bytes, NeuropodDevice) noexcept override {
    host_->free(data, bytes, Device::CPU);
  }
  void copy(void* to, NeuropodDevice, const void* from, NeuropodDevice, size_t bytes) override {
    host_->copy(to, Device::CPU, from, Device::CPU, bytes);
  }

 private:
  const std::shared_ptr<DeviceMemory> host_ = host_memory();
};

class TensorAllocatorTest : public ::testing::Test {
 protected:
  std::unique_ptr<NeuropodTensorAllocator> allocator_ = get_generic_tensor_allocator();
};

TEST_F(TensorAllocatorTest, TensorsAreAlignedAndPooled) {
  const void* before = nullptr;
  for (int i = 0; i < 3; ++i) {
    auto tensor = allocator_->allocate_tensor<float>({1200, 100});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor->get_raw_data_ptr()) % 64, 0u);
    if (i > 0) {
      EXPECT_EQ(tensor->get_raw_data_ptr(), before);
    }
    before = tensor->get_raw_data_ptr();
  }
  EXPECT_EQ(allocator_->stats().system_allocations, 1u);
  allocator_->trim();
  EXPECT_EQ(allocator_->stats().kept_bytes, 0u);
}

TEST_F(TensorAllocatorTest, AnUnknownDtypeIsRefused) {
  EXPECT_THROW(allocator_->allocate_tensor({1}, static_cast<TensorType>(99)), Error);
  EXPECT_EQ(allocator_->stats().live_bytes, 0u);
}

TEST_F(TensorAllocatorTest, WrapsMemoryAndRunsTheDeleterOnce) {
  std::vector<float> data{1, 2, 3, 4};
  std::vector<void*> deleted;
  {
    auto tensor = allocator_->tensor_from_memory<float>(
        {2, 2}, data.data(), [&](void* memory) { deleted.push_back(memory); });
    EXPECT_EQ(tensor->get_raw_data_ptr(), data.data());
    EXPECT_EQ(tensor->accessor<2>()[1][0], 3);
    EXPECT_TRUE(deleted.empty());
  }
  EXPECT_EQ(deleted, std::vector<void*>{data.data()});
}

TEST_F(TensorAllocatorTest, RunsTheDeleterOnceWhenItRefuses) {
  DefaultTensorAllocator<PickyTensor> picky;
  std::vector<double> data(4);
  const auto count_deleter_runs = [&](const std::vector<int64_t>& dims, TensorType type,
                                      void* memory) {
    int runs = 0;
    EXPECT_ANY_THROW(picky.tensor_from_memory(dims, type, memory, [&](void*) { ++runs; }));
    return runs;
  };
  EXPECT_EQ(count_deleter_runs({-1}, FLOAT_TENSOR, data.data()), 1);
  EXPECT_EQ(count_deleter_runs({1}, STRING_TENSOR, data.data()), 1);
  EXPECT_EQ(count_deleter_runs({1}, FLOAT_TENSOR, nullptr), 1);
  EXPECT_EQ(count_deleter_runs({1}, INT8_TENSOR, data.data()), 1)
      << "before it took the memory over";
  EXPECT_EQ(count_deleter_runs({1}, DOUBLE_TENSOR, data.data()), 1) << "after it took it over";
}

TEST_F(TensorAllocatorTest, AFailedAllocationLeavesNothingLive) {
  DefaultTensorAllocator<PickyTensor> picky;
  EXPECT_THROW(picky.allocate_tensor<int8_t>({10}), Error);
  EXPECT_THROW(picky.allocate_tensor<double>({10}), std::runtime_error);
  EXPECT_EQ(picky.stats().live_bytes, 0u);
  EXPECT_EQ(picky.allocate_tensor<float>({1})->get_num_elements(), 1u);
}

TEST_F(TensorAllocatorTest, EmptyTensorsMayWrapNothing) {
  int runs = 0;
  allocator_->tensor_from_memory<float>({0}, nullptr, [&](void*) { ++runs; });
  EXPECT_EQ(runs, 1);
  allocator_->tensor_from_memory<float>({0}, nullptr, Deleter());
}

TEST_F(TensorAllocatorTest, TypedAndUntypedFormsAgree) {
  int32_t number = 7;
  std::shared_ptr<NeuropodTensor> tensor =
      allocator_->tensor_from_memory({}, INT32_TENSOR, &number, [](void*) {});
  EXPECT_EQ(tensor->as_scalar<int32_t>(), 7);
}

TEST_F(TensorAllocatorTest, CopiesToADeviceAndBackAndCounts) {
  DefaultTensorAllocator<GenericNeuropodTensor> allocator(
      MemoryPool::create(std::make_shared<PretendMemory>()));
  auto source = allocator_->arange<float>(100);
  std::shared_ptr<NeuropodTensor> there = allocator.copy_to_device(*source, Device::GPU0);
  EXPECT_EQ(there->get_device(), Device::GPU0);
  EXPECT_THROW(there->as_typed_tensor<float>()->get_raw_data_ptr(), Error);
  std::shared_ptr<NeuropodTensor> back = allocator.copy_to_device(*there, Device::CPU);
  EXPECT_TRUE(*back == *source);
  EXPECT_EQ(allocator.stats().transfers, 2u);
  EXPECT_EQ(allocator.stats().transferred_bytes, 800u);
}

TEST_F(TensorAllocatorTest, StringsStayOnTheCpu) {
  auto source = allocator_->full<std::string>({3}, "s");
  std::shared_ptr<NeuropodTensor> copy = allocator_->copy_to_device(*source, Device::GPU0);
  EXPECT_EQ(copy->get_device(), Device::CPU);
  EXPECT_TRUE(*copy == *source);
  EXPECT_EQ(allocator_->stats().transfers, 0u);
}

TEST_F(TensorAllocatorTest, FillsWithZerosOnesAndValues) {
  EXPECT_EQ(allocator_->zeros<int32_t>({2})->get_data_as_vector(), (std::vector<int32_t>{0, 0}));
  EXPECT_EQ(allocator_->ones<float16>({1})->as_scalar(), float16(1.0f));
  EXPECT_EQ(allocator_->full<uint8_t>({3}, 9)->get_data_as_vector(),
            (std::vector<uint8_t>{9, 9, 9}));
  EXPECT_EQ(allocator_->full<std::string>({}, "s")->get_element(0), "s");
}

TEST_F(TensorAllocatorTest, ArangeTakesFractionalAndNegativeSteps) {
  EXPECT_EQ(allocator_->arange<float>(4)->get_data_as_vector(), (std::vector<float>{0, 1, 2, 3}));
  EXPECT_EQ(allocator_->arange<double>(1, 2, 0.25)->get_data_as_vector(),
            (std::vector<double>{1, 1.25, 1.5, 1.75}));
  EXPECT_EQ(allocator_->arange<double>(1, 0, -0.5)->get_data_as_vector(),
            (std::vector<double>{1, 0.5}));
  EXPECT_EQ(allocator_->arange<double>(0.1)->get_data_as_vector(), (std::vector<double>{0}));
  EXPECT_EQ(allocator_->arange<int32_t>(5, -6, -5)->get_data_as_vector(),
            (std::vector<int32_t>{5, 0, -5}));
  EXPECT_EQ(allocator_->arange<bfloat16>(bfloat16(2.0f))->get_data_as_vector()[1], bfloat16(1.0f));
}

TEST_F(TensorAllocatorTest, ArangeDoesNotAccumulateErrors) {
  auto tensor = allocator_->arange<float>(0, 1000, 0.1f);
  const double step = static_cast<double>(0.1f);
  EXPECT_EQ(tensor->get_num_elements(), 10000u);
  EXPECT_EQ(tensor->flat()[9999], static_cast<float>(9999 * step));
}

TEST_F(TensorAllocatorTest, ArangeIsExactAtTheEndsOfIntegers) {
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min();
  constexpr int64_t kHigh = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(allocator_->arange<int64_t>(kHigh - 2, kHigh, 1)->get_data_as_vector(),
            (std::vector<int64_t>{kHigh - 2, kHigh - 1}));
  EXPECT_EQ(allocator_->arange<int64_t>(kLow, kHigh, kHigh)->get_data_as_vector(),
            (std::vector<int64_t>{kLow, -1, kHigh - 1}));
  EXPECT_EQ(allocator_->arange<int64_t>(kHigh, kLow, kLow)->get_data_as_vector(),
            (std::vector<int64_t>{kHigh, -1}));
  EXPECT_EQ(allocator_->arange<uint8_t>(250, 255, 2)->get_data_as_vector(),
            (std::vector<uint8_t>{250, 252, 254}));
}

TEST_F(TensorAllocatorTest, ArangeOfNothingIsEmpty) {
  EXPECT_EQ(allocator_->arange<float>(0)->get_num_elements(), 0u);
  EXPECT_EQ(allocator_->arange<float>(1, 5, -1)->get_num_elements(), 0u);
  EXPECT_EQ(allocator_->arange<uint8_t>(5, 1)->get_num_elements(), 0u);
}

TEST_F(TensorAllocatorTest, ArangeRefusesStepZeroInfinityAndTooMany) {
  EXPECT_THROW(allocator_->arange<float>(0, 1, 0), Error);
  EXPECT_THROW(allocator_->arange<int32_t>(0, 1, 0), Error);
  EXPECT_THROW(allocator_->arange<double>(std::numeric_limits<double>::infinity()), Error);
  EXPECT_THROW(allocator_->arange<double>(0, 1, std::nan("")), Error);
  EXPECT_THROW(allocator_->arange<double>(0, 1e300), Error);
}

TEST_F(TensorAllocatorTest, EyeHasOnesOnTheDiagonal) {
  EXPECT_EQ(allocator_->eye<int32_t>(2, 3)->get_data_as_vector(),
            (std::vector<int32_t>{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(allocator_->eye<float>(3, 2)->get_data_as_vector(),
            (std::vector<float>{1, 0, 0, 1, 0, 0}));
  EXPECT_EQ(allocator_->eye<float>(0, 2)->get_num_elements(), 0u);
  EXPECT_THROW(allocator_->eye<float>(-1, 2), Error);
}

TEST_F(TensorAllocatorTest, RandnHasItsMeanAndDeviation) {
  auto tensor = allocator_->randn<float>({100, 1000}, 5, 2);
  const std::vector<float> values = tensor->get_data_as_vector();
  double sum = 0;
  double squares = 0;
  for (const float value : values) {
    sum += value;
    squares += (value - 5.0) * (value - 5.0);
  }
  // Twenty standard errors: wrong once in more runs than there will be.
  EXPECT_NEAR(sum / 1e5, 5, 20 * 2 / std::sqrt(1e5));
  EXPECT_NEAR(std::sqrt(squares / 1e5), 2, 20 * 2 / std::sqrt(2e5));
  EXPECT_FALSE(*tensor == *allocator_->randn<float>({100, 1000}, 5, 2));
  EXPECT_EQ(allocator_->randn<double>({0})->get_num_elements(), 0u);
}

}  // namespace
}  // namespace neuropod
