#include "neuropod/internal/neuropod_tensor.hh"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "neuropod/core/generic_tensor.hh"
#include "neuropod/internal/neuropod_tensor_raw_data_access.hh"

namespace neuropod {
namespace {

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.message();
  }
  ADD_FAILURE() << "no error";
  return {};
}

template <typename T>
std::string printed(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

class Opaque : public NeuropodValue {
 public:
  Opaque() : NeuropodValue(false) {}
  const char* get_serialize_tag() const override { return "opaque"; }
};

// A tensor on a device that the CPU can't read: touching its data pointer would crash.
class FarTensor : public TypedNeuropodTensor<float> {
 public:
  FarTensor() : TypedNeuropodTensor<float>({2, 2}, reinterpret_cast<float*>(8), Device::GPU1) {}
};

class NeuropodTensorTest : public ::testing::Test {
 protected:
  std::unique_ptr<NeuropodTensorAllocator> allocator_ = get_generic_tensor_allocator();
};

TEST_F(NeuropodTensorTest, KnowsShapeCountAndStrides) {
  auto tensor = allocator_->allocate_tensor<int16_t>({2, 3, 4});
  EXPECT_EQ(tensor->get_num_elements(), 24u);
  EXPECT_EQ(tensor->get_strides(), (std::vector<int64_t>{12, 4, 1}));
  EXPECT_EQ(tensor->get_device(), Device::CPU);
  auto scalar = allocator_->allocate_tensor<int16_t>({});
  EXPECT_EQ(scalar->get_num_elements(), 1u);
  EXPECT_TRUE(scalar->get_strides().empty());
  auto empty = allocator_->allocate_tensor<int16_t>({3, 0});
  EXPECT_EQ(empty->get_num_elements(), 0u);
}

// Every dtype with every rank from 0 to 6, empty ones included: write, read, compare, print.
template <typename T>
void check_dtype(NeuropodTensorAllocator& allocator, const T& value) {
  for (size_t rank = 0; rank <= 6; ++rank) {
    for (const int64_t last : {2, 0}) {
      std::vector<int64_t> dims(rank, 2);
      if (rank > 0) dims.back() = last;
      auto tensor = allocator.full<T>(dims, value);
      EXPECT_EQ(tensor->get_dims(), dims);
      EXPECT_EQ(tensor->get_tensor_type(), get_tensor_type_from_cpp<T>());
      const std::vector<T> content = tensor->get_data_as_vector();
      EXPECT_EQ(content, std::vector<T>(tensor->get_num_elements(), value));
      auto copy = allocator.allocate_tensor<T>(dims);
      copy->copy_from(content);
      EXPECT_TRUE(*copy == *tensor);
      EXPECT_FALSE(printed(*tensor).empty());
      EXPECT_EQ(internal::RawDataAccess::get_num_bytes(*tensor),
                tensor->get_num_elements() * get_bytes_per_element(tensor->get_tensor_type()));
    }
  }
}

TEST_F(NeuropodTensorTest, HoldsEveryDtypeAtEveryRank) {
  check_dtype<float>(*allocator_, 1.5f);
  check_dtype<double>(*allocator_, -2.5);
  check_dtype<std::string>(*allocator_, std::string("a\0b", 3));
  check_dtype<int8_t>(*allocator_, -8);
  check_dtype<int16_t>(*allocator_, -16);
  check_dtype<int32_t>(*allocator_, -32);
  check_dtype<int64_t>(*allocator_, std::numeric_limits<int64_t>::min());
  check_dtype<uint8_t>(*allocator_, 200);
  check_dtype<uint16_t>(*allocator_, 65535);
  check_dtype<uint32_t>(*allocator_, 4000000000u);
  check_dtype<uint64_t>(*allocator_, std::numeric_limits<uint64_t>::max());
  check_dtype<bool>(*allocator_, true);
  check_dtype<float16>(*allocator_, float16(0.5f));
  check_dtype<bfloat16>(*allocator_, bfloat16(3.0f));
  check_dtype<std::complex<float>>(*allocator_, {1, -1});
  check_dtype<std::complex<double>>(*allocator_, {0, 2});
}

TEST_F(NeuropodTensorTest, RefusesNegativeAndOverflowingShapes) {
  EXPECT_NE(message_of([&] { allocator_->allocate_tensor<float>({2, -3}); }).find("dimension -3"),
            std::string::npos);
  const int64_t big = int64_t{1} << 32;
  EXPECT_NE(message_of([&] { allocator_->allocate_tensor<float>({big, big}); }).find("2^63"),
            std::string::npos);
  EXPECT_THROW(allocator_->allocate_tensor<float>({big, big, 0}), Error);
  EXPECT_THROW(allocator_->allocate_tensor<double>({int64_t{1} << 60}), Error);
  EXPECT_THROW(allocator_->allocate_tensor<std::string>({-1}), Error);
}

TEST_F(NeuropodTensorTest, DowncastsNameBothDtypes) {
  std::shared_ptr<NeuropodValue> value = allocator_->ones<float>({1});
  EXPECT_EQ(value->as_tensor()->get_tensor_type(), FLOAT_TENSOR);
  EXPECT_EQ(value->as_typed_tensor<float>()->get_num_elements(), 1u);
  const std::string message = message_of([&] { value->as_typed_tensor<double>(); });
  EXPECT_NE(message.find("float32"), std::string::npos);
  EXPECT_NE(message.find("float64"), std::string::npos);
  EXPECT_THROW(value->as_typed_tensor<std::string>(), Error);
}

TEST_F(NeuropodTensorTest, AValueThatIsNoTensorSaysWhatItIs) {
  auto opaque = std::make_shared<Opaque>();
  EXPECT_NE(message_of([&] { opaque->as_tensor(); }).find("'opaque'"), std::string::npos);
  auto tensor = allocator_->ones<float>({1});
  EXPECT_THROW((void)(*opaque == *tensor), Error);
  EXPECT_THROW((void)(*tensor == *opaque), Error);
}

TEST_F(NeuropodTensorTest, ScalarsHaveOneElementOfAnyRank) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{}, {1}, {1, 1}}) {
    auto tensor = allocator_->full<double>(dims, 4.5);
    EXPECT_EQ(tensor->as_scalar(), 4.5);
    tensor->as_scalar() = 5.5;
    const NeuropodTensor& untyped = *tensor;
    EXPECT_EQ(untyped.as_scalar<double>(), 5.5);
  }
  EXPECT_NE(message_of([&] { allocator_->ones<float>({2})->as_scalar(); }).find("has 2"),
            std::string::npos);
  EXPECT_THROW(allocator_->ones<float>({0})->as_scalar(), Error);
  EXPECT_THROW(std::shared_ptr<NeuropodTensor>(allocator_->ones<float>({}))->as_scalar<int8_t>(),
               Error);
}

TEST_F(NeuropodTensorTest, EqualityLooksAtDtypeShapeAndNumbers) {
  auto a = allocator_->ones<float>({2, 2});
  EXPECT_TRUE(*a == *allocator_->ones<float>({2, 2}));
  EXPECT_TRUE(*a != *allocator_->zeros<float>({2, 2}));
  EXPECT_TRUE(*a != *allocator_->ones<float>({4}));
  EXPECT_TRUE(*a != *allocator_->ones<int32_t>({2, 2}));
  auto nan = allocator_->full<float>({1}, std::nanf(""));
  EXPECT_TRUE(*nan != *nan);
  EXPECT_TRUE(*allocator_->full<float>({1}, 0.0f) == *allocator_->full<float>({1}, -0.0f));
  EXPECT_TRUE(*allocator_->full<std::string>({2}, "x") != *allocator_->full<std::string>({2}, "y"));
}

TEST_F(NeuropodTensorTest, CopyFromNamesBothCounts) {
  auto numbers = allocator_->allocate_tensor<float>({2, 2});
  const std::string message = message_of([&] { numbers->copy_from({1, 2, 3}); });
  EXPECT_NE(message.find("3 elements for a tensor of 4"), std::string::npos) << message;
  EXPECT_THROW(allocator_->allocate_tensor<bool>({1})->copy_from({true, false}), Error);
  EXPECT_THROW(allocator_->allocate_tensor<std::string>({2})->copy_from({"a"}), Error);
}

TEST_F(NeuropodTensorTest, PrintsFiveElementsInFullAndTheEndsOfMore) {
  auto five = allocator_->arange<float>(0.5f, 5.0f);
  EXPECT_EQ(printed(*five), "[0.5, 1.5, 2.5, 3.5, 4.5]");
  auto eight = allocator_->arange<float>(0.5f, 8.0f);
  EXPECT_EQ(printed(*eight), "[0.5, 1.5, 2.5 ... 5.5, 6.5, 7.5]");
  const NeuropodTensor& untyped = *eight;
  EXPECT_EQ(printed(untyped), "float32 (8) [0.5, 1.5, 2.5 ... 5.5, 6.5, 7.5]");
}

TEST_F(NeuropodTensorTest, PrintsEachDtypeReadably) {
  EXPECT_EQ(printed(*allocator_->full<int8_t>({2}, -5)), "[-5, -5]");
  EXPECT_EQ(printed(*allocator_->full<uint8_t>({1}, 65)), "[65]");
  EXPECT_EQ(printed(*allocator_->full<bool>({1}, true)), "[true]");
  EXPECT_EQ(printed(*allocator_->full<float16>({1}, float16(0.25f))), "[0.25]");
  EXPECT_EQ(printed(*allocator_->zeros<float>({0})), "[]");
  EXPECT_EQ(printed(*allocator_->full<std::string>({1}, "a\"\n\xC3\xA4")),
            "[\"a\\\"\\x0a\xC3\xA4\"]");
  const std::string longest = printed(*allocator_->full<std::string>({1}, std::string(1000, 'x')));
  EXPECT_LT(longest.size(), 100u);
  EXPECT_NE(longest.find("(1000 bytes)"), std::string::npos);
}

TEST_F(NeuropodTensorTest, ContentOnAnotherDeviceIsRefusedButPrintable) {
  auto far = std::make_shared<FarTensor>();
  EXPECT_NE(message_of([&] { far->get_raw_data_ptr(); }).find(".to(CPU)"), std::string::npos);
  EXPECT_THROW(far->accessor<2>(), Error);
  EXPECT_THROW(far->flat(), Error);
  EXPECT_THROW(far->get_data_as_vector(), Error);
  EXPECT_THROW(far->copy_from({1, 2, 3, 4}), Error);
  EXPECT_THROW((void)(*far == *far), Error);
  const NeuropodTensor& untyped = *far;
  EXPECT_EQ(printed(untyped), "float32 (2, 2) (on device 1)");
}

TEST_F(NeuropodTensorTest, ToItsOwnDeviceIsItself) {
  std::shared_ptr<NeuropodTensor> tensor = allocator_->ones<float>({1});
  EXPECT_EQ(tensor->to(Device::CPU), tensor);
  EXPECT_NE(message_of([&] { tensor->to(Device::GPU0); }).find("device 0"), std::string::npos);
  GenericNeuropodTensor<std::string> unshared({1});
  EXPECT_NE(message_of([&] { unshared.to(Device::CPU); }).find("shared_ptr"), std::string::npos);
}

TEST_F(NeuropodTensorTest, ByDefaultNobodyIsSoleOwnerAndNoFrameworkKnowsIt) {
  auto tensor = allocator_->ones<float>({1});
  static const int key = 0;
  EXPECT_FALSE(tensor->sole_owner());
  EXPECT_EQ(tensor->native_tensor(&key), nullptr);
  EXPECT_STREQ(tensor->get_serialize_tag(), "neuropodtensor");
}

// The simplest tensor: shape only.
template <typename T>
class ShapeOnly : public TypedNeuropodTensor<T> {
 public:
  explicit ShapeOnly(std::vector<int64_t> dims)
      : TypedNeuropodTensor<T>(std::move(dims), nullptr) {}
};
template <>
class ShapeOnly<std::string> : public GenericNeuropodTensor<std::string> {
 public:
  using GenericNeuropodTensor<std::string>::GenericNeuropodTensor;
};

TEST_F(NeuropodTensorTest, ATensorClassIsMadeForAnyDtypeAtRunTime) {
  const std::vector<int64_t> dims{0, 2};
#define NEUROPOD_CHECK(enumerator, value, name, cpp_type) \
  EXPECT_EQ(make_tensor<ShapeOnly>(enumerator, dims)->get_tensor_type(), enumerator);
  NEUROPOD_FOR_EACH_DTYPE(NEUROPOD_CHECK)
#undef NEUROPOD_CHECK
  EXPECT_EQ(make_tensor_no_string<ShapeOnly>(INT8_TENSOR, dims)->get_dims(), dims);
  EXPECT_THROW(make_tensor_no_string<ShapeOnly>(STRING_TENSOR, dims), Error);
  EXPECT_THROW(make_tensor<ShapeOnly>(static_cast<TensorType>(99), dims), Error);
}

TEST_F(NeuropodTensorTest, RawAccessSeesBytesAndStrings) {
  auto numbers = allocator_->arange<int32_t>(3);
  EXPECT_EQ(internal::RawDataAccess::get_untyped_data_ptr(*numbers), numbers->get_raw_data_ptr());
  EXPECT_EQ(internal::RawDataAccess::get_num_bytes(*numbers), 12u);
  EXPECT_THROW(internal::RawDataAccess::get_string_views(*numbers), Error);
  auto strings = allocator_->full<std::string>({2}, "ab");
  EXPECT_EQ(internal::RawDataAccess::get_untyped_data_ptr(*strings), nullptr);
  EXPECT_EQ(internal::RawDataAccess::get_num_bytes(*strings), 0u);
  EXPECT_EQ(internal::RawDataAccess::get_string_views(*strings),
            (std::vector<std::string_view>{"ab", "ab"}));
}

}  // namespace
}  // namespace neuropod
