// Whose memory a tensor of torch is, seen by addresses. That nothing else is copied, and when
// deleters run, is the contract suite's.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "neuropod/core/generic_tensor.hh"
#include "neuropod/internal/neuropod_tensor_raw_data_access.hh"
#include "neuropod/neuropod.hh"

namespace neuropod {
namespace {

// On the CPU, also where there is a GPU: what comes back from there is a copy.
Neuropod load(const std::string& name) {
  RuntimeOptions options;
  options.visible_device = Device::CPU;
  return Neuropod(std::string(FIXTURES) + "/" + name, options);
}

std::shared_ptr<NeuropodTensor> infer(const Neuropod& model, const std::string& output,
                                      const NeuropodValueMap& inputs) {
  const auto outputs = model.infer(inputs);
  const std::shared_ptr<NeuropodValue> value = outputs->at(output);
  return {value, value->as_tensor()};
}

const void* address(const NeuropodTensor& tensor) {
  return internal::RawDataAccess::get_untyped_data_ptr(tensor);
}

TEST(TorchMemoryTest, ResultIsSolelyOwned) {
  const Neuropod model = load("addition");
  const auto x = model.get_tensor_allocator()->ones<float>({4});
  EXPECT_TRUE(infer(model, "out", {{"x", x}, {"y", x}})->sole_owner());
}

TEST(TorchMemoryTest, InputThatIsReturnedIsNotSolelyOwned) {
  const Neuropod model = load("identity");
  auto x = model.get_tensor_allocator()->ones<float>({4});
  const auto y = infer(model, "y", {{"x", x}});
  EXPECT_EQ(address(*y), address(*x));
  EXPECT_FALSE(y->sole_owner());
  x.reset();
  EXPECT_FALSE(y->sole_owner()) << "the memory was lent to torch";
}

TEST(TorchMemoryTest, ResultThatIsFedBackIsSharedUntilItIsDropped) {
  const Neuropod addition = load("addition");
  const Neuropod identity = load("identity");
  const auto ones = addition.get_tensor_allocator()->ones<float>({4});
  auto sum = infer(addition, "out", {{"x", ones}, {"y", ones}});
  const auto same = infer(identity, "y", {{"x", sum}});
  EXPECT_EQ(address(*same), address(*sum));
  EXPECT_FALSE(same->sole_owner());
  sum.reset();
  EXPECT_TRUE(same->sole_owner());
}

TEST(TorchMemoryTest, ParameterIsHandedOutAsACopy) {
  const Neuropod model = load("parameter");
  const auto x = model.get_tensor_allocator()->ones<float>({1});
  const auto first = infer(model, "y", {{"x", x}});
  EXPECT_TRUE(first->sole_owner());
  first->as_typed_tensor<float>()->get_raw_data_ptr()[0] = 100;
  const auto second = infer(model, "y", {{"x", x}});
  EXPECT_EQ(second->as_typed_tensor<float>()->get_data_as_vector(), (std::vector<float>{1, 2, 3}));
}

TEST(TorchMemoryTest, ViewOfAnInputKeepsItsMemory) {
  const Neuropod model = load("transpose");
  const auto column = model.get_tensor_allocator()->ones<float>({5, 1});
  EXPECT_EQ(address(*infer(model, "y", {{"x", column}})), address(*column)) << "dense: no copy";
  const auto matrix = model.get_tensor_allocator()->ones<float>({5, 2});
  EXPECT_NE(address(*infer(model, "y", {{"x", matrix}})), address(*matrix)) << "not dense: a copy";
}

TEST(TorchMemoryTest, TensorOfAnotherLibraryIsUsedInPlaceAndKeptAlive) {
  const auto allocator = get_generic_tensor_allocator();
  int deleted = 0;
  std::vector<float> memory(16, 7);
  std::shared_ptr<NeuropodTensor> y;
  {
    const Neuropod model = load("identity");
    const auto x =
        allocator->tensor_from_memory<float>({16}, memory.data(), [&deleted](void*) { ++deleted; });
    y = infer(model, "y", {{"x", x}});
  }
  EXPECT_EQ(address(*y), memory.data());
  EXPECT_EQ(deleted, 0) << "the output still refers to it";
  y.reset();
  EXPECT_EQ(deleted, 1);
}

TEST(TorchMemoryTest, MemoryOfTorchIsUsedInPlaceByAnotherModel) {
  const Neuropod first = load("addition");
  const Neuropod second = load("inplace");
  const auto ones = first.get_tensor_allocator()->ones<float>({4});
  const auto sum = infer(first, "out", {{"x", ones}, {"y", ones}});
  const auto more = infer(second, "y", {{"x", sum}});
  EXPECT_EQ(address(*more), address(*sum));
  EXPECT_EQ(sum->as_typed_tensor<float>()->get_data_as_vector(), std::vector<float>(4, 3));
}

}  // namespace
}  // namespace neuropod
