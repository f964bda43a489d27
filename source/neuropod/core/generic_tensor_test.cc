#include "neuropod/core/generic_tensor.hh"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

namespace neuropod {
namespace {

TEST(GenericTensorTest, TensorsOutliveTheirAllocator) {
  auto allocator = get_generic_tensor_allocator();
  auto tensor = allocator->full<float>({16}, 3.0f);
  auto strings = allocator->full<std::string>({2}, "kept");
  allocator.reset();
  EXPECT_EQ(tensor->flat()[15], 3.0f);
  EXPECT_EQ(strings->flat()[1], "kept");
}

TEST(GenericTensorTest, AllocatorsShareNothing) {
  auto one = get_generic_tensor_allocator();
  auto two = get_generic_tensor_allocator();
  auto tensor = one->zeros<float>({1000});
  EXPECT_GT(one->stats().live_bytes, 0u);
  EXPECT_EQ(two->stats().live_bytes, 0u);
}

TEST(GenericTensorTest, MayDieOnAnotherThread) {
  auto allocator = get_generic_tensor_allocator();
  auto tensor = allocator->zeros<float>({1000});
  std::thread([taken = std::move(tensor)]() mutable { taken.reset(); }).join();
  EXPECT_EQ(allocator->stats().live_bytes, 0u);
}

TEST(GenericTensorTest, StringsHoldAnyBytes) {
  auto allocator = get_generic_tensor_allocator();
  auto tensor = allocator->allocate_tensor<std::string>({4});
  EXPECT_EQ(tensor->flat()[0], "") << "strings begin empty";
  tensor->copy_from({"", std::string("\0\0", 2), std::string(1 << 20, 'm'), "\xF0\x9F\x98\x80"});
  EXPECT_EQ(tensor->get_element(1), std::string_view("\0\0", 2));
  EXPECT_EQ(tensor->get_element(2).size(), size_t{1} << 20);
  EXPECT_EQ(tensor->get_element(3), "\xF0\x9F\x98\x80");
}

}  // namespace
}  // namespace neuropod
