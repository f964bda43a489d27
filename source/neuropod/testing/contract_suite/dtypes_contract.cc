// C03xx: dtypes and shapes. C04xx: strings.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "neuropod/core/generic_tensor.hh"
#include "neuropod/internal/neuropod_tensor_raw_data_access.hh"
#include "neuropod/testing/contract_suite/contract.hh"

namespace neuropod {
namespace {

using contract::fixtures;
using internal::RawDataAccess;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<TensorType> all_numeric_types() {
  return {
#define NEUROPOD_TYPE(enumerator, value, name, cpp_type) enumerator,
      NEUROPOD_FOR_EACH_NUMERIC_DTYPE(NEUROPOD_TYPE)
#undef NEUROPOD_TYPE
  };
}

// 2, 3, 1, 2, 3, 1, … : dimensions that can't be taken for one another.
std::vector<int64_t> dims_of_rank(size_t rank) {
  std::vector<int64_t> dims;
  for (size_t i = 0; i < rank; ++i) dims.push_back(std::vector<int64_t>{2, 3, 1}[i % 3]);
  return dims;
}

// Bytes that are values of any dtype, each element different where that can be.
void fill(NeuropodTensor& tensor) {
  auto* bytes = static_cast<unsigned char*>(RawDataAccess::get_untyped_data_ptr(tensor));
  const size_t count = RawDataAccess::get_num_bytes(tensor);
  for (size_t i = 0; i < count; ++i) {
    bytes[i] = tensor.get_tensor_type() == BOOL_TENSOR ? i % 2 : static_cast<unsigned char>(i % 63);
  }
}

void expect_same_content(const NeuropodTensor& actual, const NeuropodTensor& expected) {
  ASSERT_EQ(actual.get_tensor_type(), expected.get_tensor_type());
  ASSERT_EQ(actual.get_dims(), expected.get_dims());
  const size_t bytes = RawDataAccess::get_num_bytes(expected);
  if (bytes == 0) return;
  EXPECT_EQ(std::memcmp(RawDataAccess::get_untyped_data_ptr(actual),
                        RawDataAccess::get_untyped_data_ptr(expected), bytes),
            0);
}

// Sends tensors of `dims` through the identity model and compares.
void expect_carried(const Neuropod& model, TensorType type, const std::vector<int64_t>& dims) {
  const std::shared_ptr<NeuropodTensor> input =
      model.get_tensor_allocator()->allocate_tensor(dims, type);
  fill(*input);
  const std::shared_ptr<NeuropodTensor> copy =
      get_generic_tensor_allocator()->copy_to_device(*input, Device::CPU);
  const auto outputs = model.infer({{"x", input}});
  ASSERT_EQ(outputs->count("y"), 1u);
  expect_same_content(*outputs->at("y")->as_tensor(), *copy);
}

TEST_F(Contract, C0301_CarriesEveryDtypeAndRank) {
  if (!has("identity")) return;
  for (TensorType type : all_numeric_types()) {
    if (!carries(get_dtype_name(type))) continue;
    for (size_t rank = 0; rank <= size_t(fixtures().capabilities().max_rank); ++rank) {
      SCOPED_TRACE(std::string(get_dtype_name(type)) + ", rank " + std::to_string(rank));
      expect_carried(load_identity(get_dtype_name(type), rank), type, dims_of_rank(rank));
    }
  }
}

TEST_F(Contract, C0302_CarriesEmptyTensorsOfEveryDtypeAndRank) {
  if (!has("identity") || !able("zero_size")) return;
  for (TensorType type : all_numeric_types()) {
    if (!carries(get_dtype_name(type))) continue;
    for (size_t rank = 1; rank <= size_t(fixtures().capabilities().max_rank); ++rank) {
      const Neuropod model = load_identity(get_dtype_name(type), rank);
      for (size_t empty = 0; empty < rank; ++empty) {
        SCOPED_TRACE(std::string(get_dtype_name(type)) + ", rank " + std::to_string(rank) +
                     ", dimension " + std::to_string(empty));
        std::vector<int64_t> dims = dims_of_rank(rank);
        dims[empty] = 0;
        expect_carried(model, type, dims);
      }
    }
  }
}

TEST_F(Contract, C0303_RefusesADtypeThatItDoesNotCarry) {
  if (!has("identity")) return;
  std::set<std::string> refused;
  std::set<std::string> expected;
  for (TensorType type : all_numeric_types()) {
    if (carries(get_dtype_name(type))) continue;
    expected.insert(get_dtype_name(type));
    try {
      expect_carried(load_identity(get_dtype_name(type), 1), type, {2});
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(get_dtype_name(type)));
      refused.insert(get_dtype_name(type));
    }
  }
  EXPECT_EQ(refused, expected) << "what isn't refused belongs into the table of capabilities";
}

TEST_F(Contract, C0304_NanInfinitiesAndNegativeZeroPass) {
  if (!has("identity")) return;
  const Neuropod model = load("identity");
  const float infinity = std::numeric_limits<float>::infinity();
  const auto outputs =
      model.infer({{"x", floats(model, {std::nanf(""), infinity, -infinity, -0.0f,
                                        std::numeric_limits<float>::denorm_min()})}});
  const std::vector<float> y = values(*outputs, "y");
  ASSERT_EQ(y.size(), 5u);
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], infinity);
  EXPECT_EQ(y[2], -infinity);
  EXPECT_TRUE(std::signbit(y[3]));
  EXPECT_EQ(y[4], std::numeric_limits<float>::denorm_min());
}

template <typename T>
void expect_limits_pass(const Neuropod& model) {
  auto input = model.allocate_tensor<T>({2});
  input->copy_from({std::numeric_limits<T>::min(), std::numeric_limits<T>::max()});
  const auto outputs = model.infer({{"x", input}});
  EXPECT_THAT(outputs->at("y")->template as_typed_tensor<T>()->get_data_as_vector(),
              ElementsAre(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

TEST_F(Contract, C0305_TheLargestAndSmallestIntegersPass) {
  if (!has("identity")) return;
  if (carries("int64")) expect_limits_pass<int64_t>(load_identity("int64", 1));
  if (carries("uint64")) expect_limits_pass<uint64_t>(load_identity("uint64", 1));
  if (carries("int8")) expect_limits_pass<int8_t>(load_identity("int8", 1));
  if (carries("uint8")) expect_limits_pass<uint8_t>(load_identity("uint8", 1));
}

TEST_F(Contract, C0306_LargeTensorsPass) {
  if (!has("identity")) return;
  expect_carried(load_identity("float32", 3), FLOAT_TENSOR, {1200, 1920, 3});
}

// Strings.

std::vector<std::string> numbered(size_t count) {
  std::vector<std::string> list;
  for (size_t i = 0; i < count; ++i) list.push_back("text " + std::to_string(i));
  return list;
}

TEST_F(Contract, C0401_CarriesStringsOfEveryRank) {
  if (!has("identity")) return;
  for (int rank : fixtures().capabilities().string_ranks) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    ASSERT_TRUE(carries("string"));
    const Neuropod model = load_identity("string", size_t(rank));
    const std::vector<int64_t> dims = dims_of_rank(size_t(rank));
    auto input = model.allocate_tensor<std::string>(dims);
    input->copy_from(numbered(input->get_num_elements()));
    const auto outputs = model.infer({{"x", input}});
    EXPECT_EQ(outputs->at("y")->as_tensor()->get_dims(), dims);
    EXPECT_EQ(texts(*outputs, "y"), numbered(input->get_num_elements()));
  }
}

TEST_F(Contract, C0402_RefusesStringsOfOtherRanks) {
  if (!has("identity")) return;
  const std::vector<int>& ranks = fixtures().capabilities().string_ranks;
  for (int rank = 0; rank <= 6; ++rank) {
    if (std::find(ranks.begin(), ranks.end(), rank) != ranks.end()) continue;
    SCOPED_TRACE("rank " + std::to_string(rank));
    error_of([&] {
      const Neuropod model = load_identity("string", size_t(rank));
      model.infer({{"x", model.allocate_tensor<std::string>(dims_of_rank(size_t(rank)))}});
    });
  }
}

TEST_F(Contract, C0403_CarriesEmptyAndUnicodeStrings) {
  if (!has("identity") || !has("strings")) return;
  const std::vector<std::string> list{"", "a", "ü",       "模型", "😀👩‍👩‍👧",
                                      "", " ", "\n\t\"\\"};
  const Neuropod model = load_identity("string", 1);
  const auto input = strings(model, {int64_t(list.size())}, list);
  EXPECT_EQ(texts(*model.infer({{"x", input}}), "y"), list);
}

TEST_F(Contract, C0404_CarriesNulBytes) {
  if (!has("strings") || !able("string_nul")) return;
  const std::vector<std::string> list{std::string("a\0b", 3), std::string("\0", 1),
                                      std::string("c\0", 2)};
  const Neuropod model = load_identity("string", 1);
  EXPECT_EQ(texts(*model.infer({{"x", strings(model, {3}, list)}}), "y"), list);
}

TEST_F(Contract, C0405_CarriesAMegabyteInOneString) {
  if (!has("strings")) return;
  const std::vector<std::string> list{"short", std::string(1 << 20, 'x') + "end", "short too"};
  const Neuropod model = load_identity("string", 1);
  EXPECT_EQ(texts(*model.infer({{"x", strings(model, {3}, list)}}), "y"), list);
}

TEST_F(Contract, C0406_CarriesManyStrings) {
  if (!has("strings")) return;
  const Neuropod model = load_identity("string", 1);
  EXPECT_EQ(texts(*model.infer({{"x", strings(model, {10000}, numbered(10000))}}), "y"),
            numbered(10000));
}

TEST_F(Contract, C0407_CarriesNoStrings) {
  if (!has("strings") || !able("zero_size")) return;
  const Neuropod model = load("strings");
  const auto none = model.allocate_tensor<std::string>({0});
  const auto outputs = model.infer({{"x", none}, {"y", none}});
  EXPECT_EQ(outputs->at("out")->as_tensor()->get_dims(), std::vector<int64_t>{0});
}

TEST_F(Contract, C0408_ModelsComputeWithStrings) {
  if (!has("strings")) return;
  const Neuropod model = load("strings");
  const auto outputs = model.infer({{"x", strings(model, {3}, {"apple", "", "😀"})},
                                    {"y", strings(model, {3}, {"sauce", "b", "ü"})}});
  EXPECT_THAT(texts(*outputs, "out"), ElementsAre("apple sauce", " b", "😀 ü"));
}

TEST_F(Contract, C0409_AStringWhereANumberBelongsIsNamed) {
  if (!has("identity")) return;
  const Neuropod model = load("identity");
  const auto text = get_generic_tensor_allocator()->full<std::string>({1}, "1.5");
  const Error error = error_of([&] { model.infer({{"x", text}}); });
  EXPECT_EQ(error.code(), ErrorCode::kSpecMismatch);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("'x'"), HasSubstr("string"), HasSubstr("float32")));
}

}  // namespace
}  // namespace neuropod
