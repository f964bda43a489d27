#include "neuropod/internal/tensor_types.hh"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <sstream>
#include <string>

namespace neuropod {
namespace {

constexpr TensorType kAllTypes[] = {
#define NEUROPOD_LIST(enumerator, value, name, cpp_type) enumerator,
    NEUROPOD_FOR_EACH_DTYPE(NEUROPOD_LIST)
#undef NEUROPOD_LIST
};

TEST(TensorTypesTest, OldEnumeratorsKeepTheirValues) {
  EXPECT_EQ(FLOAT_TENSOR, 0);
  EXPECT_EQ(DOUBLE_TENSOR, 1);
  EXPECT_EQ(STRING_TENSOR, 2);
  EXPECT_EQ(INT8_TENSOR, 3);
  EXPECT_EQ(INT16_TENSOR, 4);
  EXPECT_EQ(INT32_TENSOR, 5);
  EXPECT_EQ(INT64_TENSOR, 6);
  EXPECT_EQ(UINT8_TENSOR, 7);
  EXPECT_EQ(UINT16_TENSOR, 8);
  EXPECT_EQ(UINT32_TENSOR, 9);
  EXPECT_EQ(UINT64_TENSOR, 10);
}

TEST(TensorTypesTest, NamesLeadBackToTheirTypes) {
  std::set<std::string> names;
  for (const TensorType type : kAllTypes) {
    names.insert(get_dtype_name(type));
    TensorType found = type == FLOAT_TENSOR ? DOUBLE_TENSOR : FLOAT_TENSOR;
    EXPECT_TRUE(get_tensor_type_from_name(get_dtype_name(type), &found));
    EXPECT_EQ(found, type);
  }
  EXPECT_EQ(names.size(), 16u);
}

TEST(TensorTypesTest, AnUnknownNameChangesNothing) {
  TensorType type = INT8_TENSOR;
  for (const char* name : {"", "float", "Float32", "float32 ", "object"}) {
    EXPECT_FALSE(get_tensor_type_from_name(name, &type)) << name;
  }
  EXPECT_EQ(type, INT8_TENSOR);
}

TEST(TensorTypesTest, SizesAreThoseOfTheElements) {
  EXPECT_EQ(get_bytes_per_element(STRING_TENSOR), 0u);
  EXPECT_EQ(get_bytes_per_element(BOOL_TENSOR), 1u);
  EXPECT_EQ(get_bytes_per_element(FLOAT16_TENSOR), 2u);
  EXPECT_EQ(get_bytes_per_element(BFLOAT16_TENSOR), 2u);
  EXPECT_EQ(get_bytes_per_element(FLOAT_TENSOR), 4u);
  EXPECT_EQ(get_bytes_per_element(COMPLEX64_TENSOR), 8u);
  EXPECT_EQ(get_bytes_per_element(COMPLEX128_TENSOR), 16u);
  EXPECT_EQ(get_bytes_per_element(static_cast<TensorType>(99)), 0u);
}

TEST(TensorTypesTest, PrintsTheEnumerator) {
  std::ostringstream out;
  out << FLOAT_TENSOR << ' ' << BFLOAT16_TENSOR << ' ' << static_cast<TensorType>(99);
  EXPECT_EQ(out.str(), "FLOAT_TENSOR BFLOAT16_TENSOR TensorType(99)");
}

TEST(TensorTypesTest, ListsEveryNameForMessages) {
  const std::string list = list_dtype_names();
  EXPECT_EQ(list.substr(0, 18), "float32, float64, ");
  for (const TensorType type : kAllTypes) {
    EXPECT_NE(list.find(get_dtype_name(type)), std::string::npos);
  }
}

TEST(TensorTypesTest, CppTypesKnowTheirEnumerator) {
  static_assert(get_tensor_type_from_cpp<float>() == FLOAT_TENSOR);
  static_assert(get_tensor_type_from_cpp<std::string>() == STRING_TENSOR);
  static_assert(get_tensor_type_from_cpp<uint64_t>() == UINT64_TENSOR);
#define NEUROPOD_CHECK(cpp_type, enumerator) \
  static_assert(get_tensor_type_from_cpp<cpp_type>() == enumerator);
  FOR_EACH_TYPE_MAPPING_INCLUDING_STRING(NEUROPOD_CHECK)
#undef NEUROPOD_CHECK
}

template <typename Half>
Half from_bits(uint32_t bits) {
  Half half;
  half.bits = static_cast<uint16_t>(bits);
  return half;
}

template <typename Half>
class HalfTest : public ::testing::Test {};
using Halves = ::testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(HalfTest, Halves);

TYPED_TEST(HalfTest, EveryPatternComesBackFromFloat) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = from_bits<TypeParam>(bits);
    const auto back = TypeParam(static_cast<float>(half));
    if (std::isnan(static_cast<float>(half))) {
      EXPECT_TRUE(std::isnan(static_cast<float>(back))) << bits;
    } else {
      EXPECT_EQ(back.bits, half.bits);
    }
  }
}

TYPED_TEST(HalfTest, RoundsToNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7fff; ++bits) {
    const auto low = static_cast<double>(static_cast<float>(from_bits<TypeParam>(bits)));
    const auto high = static_cast<double>(static_cast<float>(from_bits<TypeParam>(bits + 1)));
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    // Halfway between two halves is a float, except below the smallest subnormals of bfloat16.
    const auto middle = static_cast<float>((low + high) / 2);
    if (static_cast<double>(middle) != (low + high) / 2) continue;
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    EXPECT_EQ(TypeParam(middle).bits, even) << bits;
    EXPECT_EQ(TypeParam(-middle).bits, even | 0x8000u) << bits;
    EXPECT_EQ(TypeParam(std::nextafter(middle, -INFINITY)).bits, bits);
    EXPECT_EQ(TypeParam(std::nextafter(middle, INFINITY)).bits, bits + 1);
  }
}

TYPED_TEST(HalfTest, KeepsInfinityAndOverflowsToIt) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(static_cast<float>(TypeParam(infinity)), infinity);
  EXPECT_EQ(static_cast<float>(TypeParam(-infinity)), -infinity);
  EXPECT_EQ(static_cast<float>(TypeParam(std::numeric_limits<float>::max())), infinity);
  EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(std::nanf("")))));
}

TYPED_TEST(HalfTest, ComparesAsANumber) {
  EXPECT_EQ(TypeParam(0.0f), TypeParam(-0.0f));
  EXPECT_NE(TypeParam(std::nanf("")), TypeParam(std::nanf("")));
  EXPECT_EQ(TypeParam(1.5f), TypeParam(1.5f));
}

TEST(Float16Test, KnowsItsLimits) {
  EXPECT_EQ(static_cast<float>(float16(65504.0f)), 65504.0f);
  EXPECT_EQ(static_cast<float>(float16(65519.0f)), 65504.0f);
  EXPECT_TRUE(std::isinf(static_cast<float>(float16(65520.0f))));
  EXPECT_EQ(float16(0x1p-24f).bits, 1);
  EXPECT_EQ(float16(0x1p-25f).bits, 0);
  EXPECT_EQ(float16(1.0f).bits, 0x3c00);
  EXPECT_EQ(bfloat16(1.0f).bits, 0x3f80);
}

}  // namespace
}  // namespace neuropod
