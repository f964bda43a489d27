#include "neuropod/internal/tensor_accessor.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "neuropod/core/generic_tensor.hh"

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

class TensorAccessorTest : public ::testing::Test {
 protected:
  std::unique_ptr<NeuropodTensorAllocator> allocator_ = get_generic_tensor_allocator();
};

TEST_F(TensorAccessorTest, IndexesRowMajorAndWrites) {
  auto tensor = allocator_->arange<int32_t>(24);
  auto cube = tensor->view(2, 3, 4);
  EXPECT_EQ(cube[1][2][3], 23);
  EXPECT_EQ(cube[0][1][0], 4);
  cube[1][0][2] = -7;
  EXPECT_EQ(tensor->get_raw_data_ptr()[14], -7);
  EXPECT_EQ(&cube[0][0][0], tensor->get_raw_data_ptr());
}

TEST_F(TensorAccessorTest, RangeForYieldsRowsThenElements) {
  auto tensor = allocator_->allocate_tensor<float>({3, 2});
  float next = 0;
  for (auto row : tensor->accessor<2>()) {
    for (float& element : row) element = next++;
  }
  EXPECT_EQ(tensor->get_data_as_vector(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  float sum = 0;
  for (const auto& row : tensor->accessor<2>()) {
    for (const auto& element : row) sum += element;
  }
  EXPECT_EQ(sum, 15);
}

TEST_F(TensorAccessorTest, RowsOutliveTheAccessorTheyCameFrom) {
  auto tensor = allocator_->arange<int64_t>(6);
  auto row = tensor->view(2, 3)[1];
  EXPECT_EQ(row.size(), 3);
  EXPECT_EQ(row[0], 3);
}

TEST_F(TensorAccessorTest, RankOneOfNumbersWorksWithAlgorithms) {
  auto tensor = allocator_->allocate_tensor<double>({4});
  tensor->copy_from({3, 1, 4, 1});
  auto flat = tensor->flat();
  std::sort(flat.begin(), flat.end());
  EXPECT_EQ(tensor->get_data_as_vector(), (std::vector<double>{1, 1, 3, 4}));
}

TEST_F(TensorAccessorTest, OfAConstTensorOnlyReads) {
  const std::shared_ptr<const TypedNeuropodTensor<float>> tensor = allocator_->ones<float>({2, 2});
  static_assert(std::is_same_v<decltype(tensor->accessor<1>()[0]), const float&>);
  static_assert(std::is_same_v<decltype(tensor->view(2, 2)[0][0]), const float&>);
  EXPECT_EQ(tensor->accessor<2>()[1][1], 1);
}

TEST_F(TensorAccessorTest, AWrongRankNamesBothRanks) {
  auto tensor = allocator_->ones<float>({2, 3});
  EXPECT_NE(message_of([&] {
              tensor->accessor<3>();
            }).find("accessor<3>() on a tensor of rank 2, shape [2, 3]; use accessor<2>()"),
            std::string::npos);
  auto scalar = allocator_->full<float>({}, 1);
  EXPECT_NE(message_of([&] { scalar->accessor<1>(); }).find("as_scalar()"), std::string::npos);
}

TEST_F(TensorAccessorTest, AViewNeedsTheSameNumberOfElements) {
  auto tensor = allocator_->arange<int32_t>(12);
  EXPECT_EQ(tensor->view(3, 4)[2][3], 11);
  EXPECT_EQ(tensor->view(1, 12, 1)[0][11][0], 11);
  EXPECT_NE(message_of([&] { tensor->view(3, 5); }).find("view(3, 5) on a tensor of 12 elements"),
            std::string::npos);
  EXPECT_THROW(tensor->view(-1, 12), Error);
  EXPECT_THROW(tensor->view(-3, -4), Error);
  EXPECT_THROW(tensor->view(0), Error);
}

TEST_F(TensorAccessorTest, AViewWhoseProductOverflowsIsRefused) {
  auto tensor = allocator_->zeros<int8_t>({0});
  EXPECT_THROW(tensor->view(int64_t{1} << 32, int64_t{1} << 32), Error);
  EXPECT_THROW(tensor->view(int64_t{1} << 32, int64_t{1} << 32, 0), Error);
}

TEST_F(TensorAccessorTest, EmptyTensorsHaveAccessorsAndFlatViews) {
  auto tensor = allocator_->zeros<float>({0, 4});
  int visited = 0;
  for (auto row : tensor->accessor<2>()) visited += static_cast<int>(row.size());
  for (float element : tensor->flat()) visited += static_cast<int>(element) + 1;
  EXPECT_EQ(visited, 0);
  EXPECT_EQ(tensor->flat().size(), 0);
  EXPECT_EQ(tensor->view(7, 0, 2).dims()[0], 7);
  auto strings = allocator_->allocate_tensor<std::string>({0});
  EXPECT_EQ(strings->flat().size(), 0);
}

TEST_F(TensorAccessorTest, StringElementsReadWriteAndCompare) {
  auto tensor = allocator_->allocate_tensor<std::string>({2, 2});
  auto strings = tensor->accessor<2>();
  strings[0][0] = "literal";
  strings[0][1] = std::string("std\0string", 10);
  strings[1][0] = std::string_view("view");
  strings[1][1] = strings[0][0];
  const std::string copied = strings[0][1];
  EXPECT_EQ(copied.size(), 10u);
  EXPECT_EQ(strings[1][0].size(), 4u);
  EXPECT_FALSE(strings[1][0].empty());
  EXPECT_TRUE(strings[1][1] == strings[0][0]);
  EXPECT_TRUE(strings[1][1] == "literal");
  EXPECT_TRUE("literal" == strings[1][1]);
  const std::string before = "a";
  EXPECT_TRUE(strings[1][1] != before);
  EXPECT_TRUE(before < strings[1][1]);
  EXPECT_TRUE(strings[1][1] < strings[1][0]);
  std::ostringstream out;
  out << strings[1][0];
  EXPECT_EQ(out.str(), "view");
}

TEST_F(TensorAccessorTest, RangeForOverStringsWrites) {
  auto tensor = allocator_->allocate_tensor<std::string>({2, 2});
  int next = 0;
  for (auto row : tensor->accessor<2>()) {
    for (auto element : row) element = std::to_string(next++);
  }
  EXPECT_EQ(tensor->get_data_as_vector(), (std::vector<std::string>{"0", "1", "2", "3"}));
}

TEST_F(TensorAccessorTest, StringsOfAConstTensorOnlyRead) {
  auto tensor = allocator_->full<std::string>({2}, "x");
  const TypedNeuropodTensor<std::string>& read_only = *tensor;
  static_assert(std::is_same_v<decltype(read_only.flat()[0]),
                               StringProxy<const TypedNeuropodTensor<std::string>>>);
  EXPECT_EQ(read_only.accessor<1>()[1], "x");
  EXPECT_TRUE(read_only.flat()[0] == tensor->flat()[1]);
  tensor->flat()[0] = read_only.flat()[1];
  EXPECT_EQ(std::string(read_only.view(2, 1)[0][0]), "x");
}

}  // namespace
}  // namespace neuropod
