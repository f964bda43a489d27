#include "neuropod/conversions/eigen.hh"

#include <gtest/gtest.h>

#include <complex>
#include <memory>

#include "neuropod/core/generic_tensor.hh"

namespace neuropod {
namespace {

class EigenTest : public ::testing::Test {
 protected:
  std::unique_ptr<NeuropodTensorAllocator> allocator_ = get_generic_tensor_allocator();
};

TEST_F(EigenTest, MapsAMatrixInPlaceRowByRow) {
  auto tensor = allocator_->allocate_tensor<float>({2, 3});
  tensor->copy_from({1, 2, 3, 4, 5, 6});
  auto matrix = as_eigen(*tensor);
  ASSERT_EQ(matrix.rows(), 2);
  ASSERT_EQ(matrix.cols(), 3);
  EXPECT_EQ(matrix(1, 0), 4);
  matrix(0, 2) = 30;
  EXPECT_EQ(tensor->get_data_as_vector()[2], 30);
  EXPECT_EQ(matrix.data(), tensor->get_raw_data_ptr());
}

TEST_F(EigenTest, SeesAVectorAsAColumnAndAScalarAsOneByOne) {
  auto column = as_eigen(*allocator_->arange<int32_t>(4));
  EXPECT_EQ(column.rows(), 4);
  EXPECT_EQ(column.cols(), 1);
  auto scalar = allocator_->full<double>({}, 2.5);
  EXPECT_EQ(as_eigen(*scalar).size(), 1);
  EXPECT_EQ(as_eigen(*scalar)(0, 0), 2.5);
}

TEST_F(EigenTest, MapsAnUntypedTensorOfTheRightDtypeOnly) {
  std::shared_ptr<NeuropodTensor> untyped = allocator_->ones<double>({2, 2});
  EXPECT_EQ(as_eigen<double>(*untyped).sum(), 4);
  EXPECT_THROW(as_eigen<float>(*untyped), Error);
}

TEST_F(EigenTest, OfAConstTensorOnlyReads) {
  const std::shared_ptr<const TypedNeuropodTensor<float>> typed = allocator_->ones<float>({2, 2});
  const std::shared_ptr<const NeuropodTensor> untyped = typed;
  static_assert(std::is_same_v<decltype(as_eigen(*typed)), Eigen::Map<const EigenMatrix<float>>>);
  EXPECT_EQ(as_eigen(*typed).sum(), 4);
  EXPECT_EQ(as_eigen<float>(*untyped).sum(), 4);
}

TEST_F(EigenTest, RefusesRankThree) {
  auto cube = allocator_->zeros<float>({1, 1, 1});
  try {
    as_eigen(*cube);
    FAIL() << "rank 3 was mapped";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(error.message().find("rank 3"), std::string::npos) << error.message();
  }
}

TEST_F(EigenTest, MapsEmptyAndComplexTensors) {
  EXPECT_EQ(as_eigen(*allocator_->zeros<float>({0, 4})).size(), 0);
  auto complex = allocator_->ones<std::complex<float>>({2, 2});
  EXPECT_EQ(as_eigen(*complex).sum(), std::complex<float>(4, 0));
}

}  // namespace
}  // namespace neuropod
