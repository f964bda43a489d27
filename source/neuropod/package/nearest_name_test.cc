#include "neuropod/package/nearest_name.hh"

#include <gtest/gtest.h>

#include <string>

namespace neuropod {
namespace {

TEST(NearestNameTest, FindsSlipsOfTheKeyboard) {
  const std::vector<std::string> known = {"image", "image_size", "scores", "x", "y"};
  EXPECT_EQ(nearest_name("imgae", known), "image");
  EXPECT_EQ(nearest_name("Image", known), "image");
  EXPECT_EQ(nearest_name("images", known), "image");
  EXPECT_EQ(nearest_name("imagesize", known), "image_size");
  EXPECT_EQ(nearest_name("score", known), "scores");
  EXPECT_EQ(nearest_name("X", known), "x");
}

TEST(NearestNameTest, FindsNothingWhereNothingIsNear) {
  EXPECT_EQ(nearest_name("probability", {"image", "scores"}), "");
  EXPECT_EQ(nearest_name("z", {"x", "y"}), "");
  EXPECT_EQ(nearest_name("", {"x"}), "");
  EXPECT_EQ(nearest_name("image", {}), "");
}

TEST(NearestNameTest, LeavesVeryLongNamesAlone) {
  const std::string a(100000, 'a');
  EXPECT_EQ(nearest_name(a, {a + "b"}), "");
  EXPECT_EQ(nearest_name("a", {a}), "");
}

}  // namespace
}  // namespace neuropod
