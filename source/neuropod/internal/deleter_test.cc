#include "neuropod/internal/deleter.hh"

#include <gtest/gtest.h>

namespace neuropod {
namespace {

TEST(DeleterTest, RunsWithItsData) {
  int data = 0;
  void* seen = nullptr;
  int runs = 0;
  void* handle = register_deleter(
      [&](void* given) {
        seen = given;
        ++runs;
      },
      &data);
  EXPECT_EQ(runs, 0);
  run_deleter(handle);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(seen, &data);
}

TEST(DeleterTest, AnEmptyDeleterDoesNothing) { run_deleter(register_deleter(Deleter(), nullptr)); }

}  // namespace
}  // namespace neuropod
