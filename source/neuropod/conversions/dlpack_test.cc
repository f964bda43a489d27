#include "neuropod/conversions/dlpack.hh"

#include <gtest/gtest.h>

#include <complex>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "neuropod/core/generic_tensor.hh"

namespace neuropod::dlpack {
namespace {

// The layout is another library's contract: it is checked against the numbers of its C header on
// 64-bit machines.
static_assert(sizeof(Tensor) == 48);
static_assert(offsetof(Tensor, device) == 8);
static_assert(offsetof(Tensor, ndim) == 16);
static_assert(offsetof(Tensor, dtype) == 20);
static_assert(offsetof(Tensor, shape) == 24);
static_assert(offsetof(Tensor, strides) == 32);
static_assert(offsetof(Tensor, byte_offset) == 40);
static_assert(sizeof(ManagedTensor) == 64);
static_assert(offsetof(ManagedTensor, manager_ctx) == 48);
static_assert(sizeof(ManagedTensorVersioned) == 80);
static_assert(offsetof(ManagedTensorVersioned, manager_ctx) == 8);
static_assert(offsetof(ManagedTensorVersioned, deleter) == 16);
static_assert(offsetof(ManagedTensorVersioned, flags) == 24);
static_assert(offsetof(ManagedTensorVersioned, dl_tensor) == 32);

// A tensor of another library: 2 × 3 floats, with a deleter that counts.
template <typename Managed>
struct Foreign {
  Foreign() {
    managed.dl_tensor = {values.data(), {kCpuDevice, 0}, 2, {2, 32, 1}, shape, strides, 0};
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<Foreign*>(self->manager_ctx)->deletions; };
  }

  std::vector<float> values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  int64_t shape[2] = {2, 3};
  int64_t strides[2] = {3, 1};
  int deletions = 0;
  Managed managed{};
};

class DlpackTest : public ::testing::Test {
 protected:
  std::string refusal() {
    const int before = foreign_.deletions;
    try {
      from_dlpack(&foreign_.managed, *allocator_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_EQ(foreign_.deletions, before + 1) << "a refused tensor is given back once";
      return error.message();
    }
    ADD_FAILURE() << "it was taken";
    return {};
  }

  std::unique_ptr<NeuropodTensorAllocator> allocator_ = get_generic_tensor_allocator();
  Foreign<ManagedTensor> foreign_;
};

TEST_F(DlpackTest, ExportSharesMemoryAndKeepsTheTensorAlive) {
  auto tensor = allocator_->arange<float>(6);
  const float* data = tensor->get_raw_data_ptr();
  const std::weak_ptr<NeuropodTensor> watch = tensor;
  ManagedTensor* managed = to_dlpack(std::move(tensor));
  EXPECT_EQ(managed->dl_tensor.data, data);
  EXPECT_EQ(managed->dl_tensor.ndim, 1);
  EXPECT_EQ(managed->dl_tensor.shape[0], 6);
  EXPECT_EQ(managed->dl_tensor.strides[0], 1);
  EXPECT_EQ(managed->dl_tensor.device.type, kCpuDevice);
  EXPECT_EQ(managed->dl_tensor.byte_offset, 0u);
  EXPECT_FALSE(watch.expired());
  managed->deleter(managed);
  EXPECT_TRUE(watch.expired());
}

TEST_F(DlpackTest, VersionedExportSaysWhetherItMayBeWritten) {
  auto tensor = allocator_->arange<float>(6);
  ManagedTensorVersioned* writable = to_dlpack_versioned(tensor, Access::kReadWrite);
  EXPECT_EQ(writable->version.major, 1u);
  EXPECT_EQ(writable->flags, 0u);
  writable->deleter(writable);
  ManagedTensorVersioned* read_only = to_dlpack_versioned(tensor, Access::kReadOnly);
  EXPECT_EQ(read_only->flags, kReadOnlyFlag);
  read_only->deleter(read_only);
}

template <typename T>
void check_round_trip(NeuropodTensorAllocator& allocator, T value, uint8_t code) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{}, {3}, {2, 1, 3}, {0, 2}}) {
    std::shared_ptr<NeuropodTensor> tensor = allocator.full<T>(dims, value);
    const T* data = tensor->as_typed_tensor<T>()->get_raw_data_ptr();
    ManagedTensorVersioned* managed = to_dlpack_versioned(tensor, Access::kReadWrite);
    EXPECT_EQ(managed->dl_tensor.dtype.code, code);
    EXPECT_EQ(managed->dl_tensor.dtype.bits, sizeof(T) * 8);
    EXPECT_EQ(managed->dl_tensor.dtype.lanes, 1);
    auto back = from_dlpack(managed, allocator);
    EXPECT_TRUE(*back == *tensor);
    EXPECT_EQ(back->as_typed_tensor<T>()->get_raw_data_ptr(), data) << "no copy";
    EXPECT_EQ(tensor.use_count(), 2);
    back.reset();
    EXPECT_EQ(tensor.use_count(), 1);
  }
}

TEST_F(DlpackTest, EveryNumericDtypeMakesTheRoundTripInPlace) {
  check_round_trip<int8_t>(*allocator_, -1, 0);
  check_round_trip<int16_t>(*allocator_, -2, 0);
  check_round_trip<int32_t>(*allocator_, -3, 0);
  check_round_trip<int64_t>(*allocator_, -4, 0);
  check_round_trip<uint8_t>(*allocator_, 1, 1);
  check_round_trip<uint16_t>(*allocator_, 2, 1);
  check_round_trip<uint32_t>(*allocator_, 3, 1);
  check_round_trip<uint64_t>(*allocator_, 4, 1);
  check_round_trip<float16>(*allocator_, float16(0.5f), 2);
  check_round_trip<float>(*allocator_, 0.5f, 2);
  check_round_trip<double>(*allocator_, 0.5, 2);
  check_round_trip<bfloat16>(*allocator_, bfloat16(0.5f), 4);
  check_round_trip<std::complex<float>>(*allocator_, {1, 2}, 5);
  check_round_trip<std::complex<double>>(*allocator_, {1, 2}, 5);
  check_round_trip<bool>(*allocator_, true, 6);
}

TEST_F(DlpackTest, StringsAndOtherDevicesAreNotExported) {
  class Far : public TypedNeuropodTensor<float> {
   public:
    Far() : TypedNeuropodTensor<float>({1}, nullptr, Device::GPU0) {}
  };
  EXPECT_THROW(to_dlpack(allocator_->full<std::string>({1}, "s")), Error);
  EXPECT_THROW(to_dlpack(std::make_shared<Far>()), Error);
}

TEST_F(DlpackTest, ImportTakesOverAndGivesBackOnce) {
  auto tensor = from_dlpack(&foreign_.managed, *allocator_);
  EXPECT_EQ(tensor->as_typed_tensor<float>()->accessor<2>()[1][2], 5);
  EXPECT_EQ(tensor->as_typed_tensor<float>()->get_raw_data_ptr(), foreign_.values.data());
  EXPECT_EQ(foreign_.deletions, 0);
  tensor.reset();
  EXPECT_EQ(foreign_.deletions, 1);
}

TEST_F(DlpackTest, ImportHonoursTheByteOffset) {
  foreign_.managed.dl_tensor.byte_offset = 6 * sizeof(float);
  auto tensor = from_dlpack(&foreign_.managed, *allocator_);
  EXPECT_EQ(tensor->as_typed_tensor<float>()->accessor<2>()[0][0], 6);
}

TEST_F(DlpackTest, ImportTakesMissingStridesAndStridesThatMeanNothing) {
  foreign_.managed.dl_tensor.strides = nullptr;
  from_dlpack(&foreign_.managed, *allocator_);
  foreign_.managed.dl_tensor.strides = foreign_.strides;
  foreign_.shape[0] = 1;
  foreign_.strides[0] = 77;
  from_dlpack(&foreign_.managed, *allocator_);
  foreign_.shape[0] = 0;
  foreign_.strides[1] = 88;
  EXPECT_EQ(from_dlpack(&foreign_.managed, *allocator_)->get_num_elements(), 0u);
  EXPECT_EQ(foreign_.deletions, 3);
}

TEST_F(DlpackTest, ImportTakesPinnedHostMemory) {
  foreign_.managed.dl_tensor.device = {kCudaHostDevice, 0};
  EXPECT_EQ(from_dlpack(&foreign_.managed, *allocator_)->get_device(), Device::CPU);
}

TEST_F(DlpackTest, ATensorWithoutDeleterIsFine) {
  foreign_.managed.deleter = nullptr;
  EXPECT_EQ(from_dlpack(&foreign_.managed, *allocator_)->get_num_elements(), 6u);
}

TEST_F(DlpackTest, ATransposedTensorIsRefusedWithItsStrides) {
  foreign_.strides[0] = 1;
  foreign_.strides[1] = 2;
  const std::string message = refusal();
  EXPECT_NE(message.find("[2, 3]"), std::string::npos) << message;
  EXPECT_NE(message.find("[1, 2]"), std::string::npos) << message;
  EXPECT_NE(message.find("contiguous copy"), std::string::npos) << message;
}

TEST_F(DlpackTest, NegativeAndBroadcastStridesAreRefused) {
  foreign_.strides[1] = -1;
  EXPECT_NE(refusal().find("strides"), std::string::npos);
  foreign_.strides[1] = 1;
  foreign_.strides[0] = 0;
  EXPECT_NE(refusal().find("strides"), std::string::npos);
}

TEST_F(DlpackTest, AnotherDeviceIsRefused) {
  foreign_.managed.dl_tensor.device = {kCudaDevice, 3};
  EXPECT_NE(refusal().find("device type 2, index 3"), std::string::npos);
}

TEST_F(DlpackTest, AnUnknownDtypeIsRefusedWithTheKnownOnes) {
  foreign_.managed.dl_tensor.dtype = {2, 8, 1};
  EXPECT_NE(refusal().find("bfloat16"), std::string::npos);
  foreign_.managed.dl_tensor.dtype = {2, 32, 4};
  EXPECT_NE(refusal().find("4 lanes"), std::string::npos);
}

TEST_F(DlpackTest, MisalignedMemoryIsRefused) {
  foreign_.managed.dl_tensor.byte_offset = 1;
  EXPECT_NE(refusal().find("aligned"), std::string::npos);
}

TEST_F(DlpackTest, AMalformedTensorIsRefused) {
  foreign_.managed.dl_tensor.ndim = -1;
  EXPECT_NE(refusal().find("malformed"), std::string::npos);
  foreign_.managed.dl_tensor.ndim = 2;
  foreign_.managed.dl_tensor.shape = nullptr;
  EXPECT_NE(refusal().find("malformed"), std::string::npos);
  foreign_.managed.dl_tensor.shape = foreign_.shape;
  foreign_.shape[0] = -2;
  EXPECT_NE(refusal().find("negative"), std::string::npos);
  foreign_.shape[0] = 2;
  foreign_.managed.dl_tensor.data = nullptr;
  EXPECT_NE(refusal().find("null pointer"), std::string::npos);
}

TEST_F(DlpackTest, ReadOnlyMemoryNeedsTheCallersPromise) {
  Foreign<ManagedTensorVersioned> foreign;
  foreign.managed.version = {1, 3};
  foreign.managed.flags = kReadOnlyFlag;
  EXPECT_THROW(from_dlpack(&foreign.managed, *allocator_), Error);
  EXPECT_EQ(foreign.deletions, 1);
  auto tensor = from_dlpack(&foreign.managed, *allocator_, Access::kReadOnly);
  EXPECT_EQ(tensor->get_num_elements(), 6u);
  tensor.reset();
  EXPECT_EQ(foreign.deletions, 2);
}

TEST_F(DlpackTest, AnotherMajorVersionIsGivenBackUnread) {
  Foreign<ManagedTensorVersioned> foreign;
  foreign.managed.version = {2, 0};
  foreign.managed.dl_tensor = {};
  foreign.managed.dl_tensor.ndim = 1000;  // reading the shape would crash
  EXPECT_THROW(from_dlpack(&foreign.managed, *allocator_), Error);
  EXPECT_EQ(foreign.deletions, 1);
}

}  // namespace
}  // namespace neuropod::dlpack
