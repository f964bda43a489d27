// C05xx: whose memory it is. C10xx: pools and statistics.
#include <algorithm>
#include <map>

#include "neuropod/core/generic_tensor.hh"
#include "neuropod/internal/neuropod_tensor_raw_data_access.hh"
#include "neuropod/testing/contract_suite/contract.hh"

namespace neuropod {
namespace {

using contract::set_spec;
using internal::RawDataAccess;
using ::testing::ElementsAre;

const void* address_of(const NeuropodValueMap& outputs, const std::string& name) {
  return RawDataAccess::get_untyped_data_ptr(
      const_cast<const NeuropodTensor&>(*outputs.at(name)->as_tensor()));
}

// Memory that a test lends, aligned for every framework.
struct alignas(64) Lent {
  float data[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
};

TEST_F(Contract, C0501_ADeleterRunsOnceWhenEverybodyIsFinished) {
  if (!has("addition")) return;
  Lent x;
  Lent y;
  std::vector<void*> deleted;
  const Deleter deleter = [&](void* data) { deleted.push_back(data); };
  {
    const Neuropod model = load("addition");
    {
      const auto outputs =
          model.infer({{"x", model.tensor_from_memory<float>({16}, x.data, deleter)},
                       {"y", model.tensor_from_memory<float>({16}, y.data, deleter)}});
      EXPECT_EQ(values(*outputs, "out")[15], 30);
    }
  }
  std::sort(deleted.begin(), deleted.end());
  std::vector<void*> expected{x.data, y.data};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(deleted, expected);
}

TEST_F(Contract, C0502_ADeleterRunsOnceWhenTheTensorIsRefused) {
  if (!has("identity")) return;
  const Neuropod model = load("identity");
  Lent memory;
  int deleted = 0;
  const Deleter deleter = [&](void*) { ++deleted; };
  error_of([&] {
    model.get_tensor_allocator()->tensor_from_memory({2}, STRING_TENSOR, memory.data, deleter);
  });
  EXPECT_EQ(deleted, 1);
  error_of([&] { model.tensor_from_memory<float>({-1}, memory.data, deleter); });
  EXPECT_EQ(deleted, 2);
}

TEST_F(Contract, C0503_LentMemoryStaysWhileAnOutputIsItsAlias) {
  if (!has("identity") || !able("zero_copy_out")) return;
  Lent memory;
  int deleted = 0;
  const Neuropod model = load("identity");
  auto input = model.tensor_from_memory<float>({16}, memory.data, [&](void*) { ++deleted; });
  auto outputs = model.infer({{"x", input}});
  input.reset();
  if (out_of_process()) {
    // A worker reads a copy, which the output is an alias of.
    EXPECT_EQ(deleted, 1);
    EXPECT_NE(address_of(*outputs, "y"), memory.data);
    EXPECT_EQ(values(*outputs, "y")[15], 15);
    return;
  }
  EXPECT_EQ(deleted, 0);
  EXPECT_EQ(address_of(*outputs, "y"), memory.data);
  outputs.reset();
  EXPECT_EQ(deleted, 1);
}

TEST_F(Contract, C0504_InputsAreNotCopied) {
  if (!has("inplace") || !able("zero_copy_in")) return;
  const Neuropod model = load("inplace");
  const auto input = floats(model, {1, 2, 3});
  model.infer({{"x", input}});
  EXPECT_THAT(input->get_data_as_vector(), ElementsAre(2, 3, 4));
}

TEST_F(Contract, C0505_LentMemoryIsNotCopied) {
  if (!has("inplace") || !able("zero_copy_in")) return;
  const Neuropod model = load("inplace");
  Lent memory;
  model.infer({{"x", model.tensor_from_memory<float>({4}, memory.data, [](void*) {})}});
  // A worker can't reach it: it gets a copy, made once.
  const float changed = out_of_process() ? 0 : 1;
  EXPECT_EQ(model.stats().copied_bytes, out_of_process() ? 4 * sizeof(float) : 0);
  EXPECT_EQ(memory.data[0], 0 + changed);
  EXPECT_EQ(memory.data[3], 3 + changed);
  EXPECT_EQ(memory.data[4], 4) << "outside the tensor";
}

TEST_F(Contract, C0506_OutputsAreNotCopied) {
  if (!has("identity") || !able("zero_copy_out")) return;
  const Neuropod model = load("identity");
  const auto input = floats(model, {1, 2, 3});
  EXPECT_EQ(address_of(*model.infer({{"x", input}}), "y"), input->get_raw_data_ptr());
}

TEST_F(Contract, C0507_UnalignedLentMemoryWorks) {
  if (!has("addition")) return;
  const Neuropod model = load("addition");
  Lent memory;
  const auto x = model.tensor_from_memory<float>({3}, memory.data + 1, [](void*) {});
  EXPECT_THAT(values(*model.infer({{"x", x}, {"y", x}}), "out"), ElementsAre(2, 4, 6));
}

TEST_F(Contract, C0508_TensorsOfNoModelWork) {
  if (!has("addition")) return;
  const Neuropod model = load("addition");
  const auto generic = get_generic_tensor_allocator();
  const auto outputs =
      model.infer({{"x", generic->arange<float>(3)}, {"y", generic->full<float>({3}, 10)}});
  EXPECT_THAT(values(*outputs, "out"), ElementsAre(10, 11, 12));
  EXPECT_EQ(model.stats().copied_bytes, out_of_process() ? 2 * 3 * sizeof(float) : 0);
}

TEST_F(Contract, C0509_AnOutputFeedsAnotherModel) {
  if (!has("identity") || !has("addition")) return;
  const Neuropod first = load("addition");
  const Neuropod second = load("identity");
  const auto input = floats(first, {1, 2});
  const auto sums = first.infer({{"x", input}, {"y", input}});
  const auto outputs = second.infer({{"x", sums->at("out")}});
  EXPECT_THAT(values(*outputs, "y"), ElementsAre(2, 4));
  const auto& switches = contract::fixtures().capabilities().switches;
  if (switches.at("zero_copy_in") && switches.at("zero_copy_out") && !out_of_process()) {
    EXPECT_EQ(address_of(*outputs, "y"), address_of(*sums, "out"));
  }
  if (out_of_process()) {
    // The other's worker doesn't see the first one's memory.
    EXPECT_EQ(second.stats().copied_bytes, 2 * sizeof(float));
  }
}

TEST_F(Contract, C0510_InputsAreUnchanged) {
  if (!has("addition")) return;
  const Neuropod model = load("addition");
  const auto x = floats(model, {1, 2});
  const auto y = floats(model, {3, 4});
  const NeuropodValueMap inputs{{"x", x}, {"y", y}};
  const auto outputs = model.infer(inputs);
  EXPECT_EQ(inputs.size(), 2u);
  EXPECT_THAT(x->get_data_as_vector(), ElementsAre(1, 2));
  EXPECT_THAT(y->get_data_as_vector(), ElementsAre(3, 4));
  EXPECT_EQ(x.use_count(), 2);
}

TEST_F(Contract, C0511_AllocatedMemoryIsAligned) {
  if (!has("identity")) return;
  const Neuropod model = load("identity");
  std::vector<std::shared_ptr<NeuropodTensor>> kept;
  for (int64_t size = 1; size < 100000; size = size * 2 + 1) {
    kept.push_back(model.allocate_tensor<float>({size}));
    const void* data = RawDataAccess::get_untyped_data_ptr(*kept.back());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u) << size;
  }
}

TEST_F(Contract, C0512_OutputsMayBeTheSameMemory) {
  if (!has("alias")) return;
  const Neuropod model = load("alias");
  auto outputs = model.infer({{"x", floats(model, {1, 2})}});
  EXPECT_THAT(values(*outputs, "y"), ElementsAre(1, 2));
  outputs->erase("y");
  EXPECT_THAT(values(*outputs, "z"), ElementsAre(1, 2));
}

TEST_F(Contract, C0513_OutputsAreRowMajorWhateverTheModelReturns) {
  if (!has("transpose")) return;
  const Neuropod model = load("transpose");
  auto input = model.allocate_tensor<float>({2, 3});
  input->copy_from({1, 2, 3, 4, 5, 6});
  const auto outputs = model.infer({{"x", input}});
  EXPECT_EQ(outputs->at("y")->as_tensor()->get_dims(), (std::vector<int64_t>{3, 2}));
  EXPECT_THAT(values(*outputs, "y"), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST_F(Contract, C0514_OutputsOutliveTheModel) {
  if (!has("parameter") || !has("identity") || !has("transpose")) return;
  std::vector<std::unique_ptr<NeuropodValueMap>> kept;
  {
    const Neuropod parameter = load("parameter");
    kept.push_back(parameter.infer({{"x", floats(parameter, {1})}}));
    const Neuropod identity = load("identity");
    kept.push_back(identity.infer({{"x", floats(identity, {4, 5})}}));
    const Neuropod transpose = load("transpose");
    kept.push_back(transpose.infer({{"x", transpose.get_tensor_allocator()->ones<float>({1, 2})}}));
  }
  EXPECT_THAT(values(*kept[0], "y"), ElementsAre(1, 2, 3));
  EXPECT_THAT(values(*kept[1], "y"), ElementsAre(4, 5));
  EXPECT_THAT(values(*kept[2], "y"), ElementsAre(1, 1));
}

TEST_F(Contract, C0515_InputsAndTheAllocatorOutliveTheModel) {
  if (!has("identity")) return;
  std::shared_ptr<NeuropodTensorAllocator> allocator;
  std::shared_ptr<TypedNeuropodTensor<float>> tensor;
  {
    const Neuropod model = load("identity");
    allocator = model.get_tensor_allocator();
    tensor = floats(model, {7});
  }
  EXPECT_EQ(tensor->as_scalar(), 7);
  EXPECT_EQ(allocator->full<float>({1}, 8)->as_scalar(), 8);
  allocator.reset();
  const Neuropod another = load("identity");
  EXPECT_THAT(values(*another.infer({{"x", tensor}}), "y"), ElementsAre(7));
}

// The outputs of one call, and what they were when it returned.
struct HeldResult {
  std::unique_ptr<NeuropodValueMap> outputs;
  std::map<std::string, std::vector<float>> content;
};

TEST_F(Contract, C0516_ResultsStayWhatTheyWereOverLaterCalls) {
  constexpr int kHeldCalls = 100;
  constexpr int64_t kSize = 4096;  // more than a worker's answer carries in itself
  for (const char* package : {"identity", "alias", "failing", "parameter", "inplace"}) {
    if (!has(package)) return;
    const Neuropod model = load(package);
    std::vector<HeldResult> held;
    for (int call = 0; call < kHeldCalls; ++call) {
      const auto x = model.get_tensor_allocator()->full<float>({kSize}, float(call));
      HeldResult result{model.infer({{"x", x}}), {}};
      for (const auto& output : *result.outputs) {
        result.content[output.first] = values(*result.outputs, output.first);
      }
      held.push_back(std::move(result));
    }
    if (std::string(package) == "identity") {
      EXPECT_EQ(held.back().content.at("y").back(), kHeldCalls - 1);
    }
    for (const HeldResult& result : held) {
      for (const auto& [name, content] : result.content) {
        ASSERT_EQ(values(*result.outputs, name), content) << package;
      }
    }
  }
}

TEST_F(Contract, C0517_AllocatedMemoryIsNotCopied) {
  if (!has("addition") || !able("zero_copy_in")) return;
  const Neuropod model = load("addition");
  for (const int64_t size : {int64_t(1), int64_t(100), int64_t(100000)}) {
    const auto ones = model.get_tensor_allocator()->ones<float>({size});
    const auto outputs = model.infer({{"x", ones}, {"y", ones}});
    EXPECT_EQ(values(*outputs, "out").back(), 2);
  }
  EXPECT_EQ(model.stats().copied_bytes, 0u);
}

TEST_F(Contract, C1001_LaterCallsOfTheSameShapeAllocateNothingForInputs) {
  if (!has("addition")) return;
  const Neuropod model = load_variant("addition", [](contract::Json& config) {
    for (const char* name : {"x", "y"}) {
      set_spec(config, "input_spec", name, "float32", {"n", "m"});
    }
    set_spec(config, "output_spec", "out", "float32", {"n", "m"});
  });
  const auto infer = [&] {
    const auto x = model.get_tensor_allocator()->full<float>({100, 100}, 1);
    const auto y = model.get_tensor_allocator()->full<float>({100, 100}, 2);
    return values(*model.infer({{"x", x}, {"y", y}}), "out")[9999];
  };
  EXPECT_EQ(infer(), 3);
  const AllocatorStats first = model.get_tensor_allocator()->stats();
  for (int i = 1; i < 1000; ++i) ASSERT_EQ(infer(), 3);
  const AllocatorStats last = model.get_tensor_allocator()->stats();
  EXPECT_EQ(last.system_allocations, first.system_allocations);
  EXPECT_GE(last.reused, first.reused + 2 * 999);
}

TEST_F(Contract, C1002_StatisticsCountWhatIsLive) {
  if (!has("identity")) return;
  const Neuropod model = load("identity");
  const uint64_t before = model.get_tensor_allocator()->stats().live_bytes;
  {
    const auto tensor = model.allocate_tensor<float>({1000});
    const AllocatorStats stats = model.get_tensor_allocator()->stats();
    EXPECT_GE(stats.live_bytes, before + 4000);
    EXPECT_LE(stats.live_bytes, before + 4000 * 5 / 4 + 64);
    EXPECT_GE(stats.peak_live_bytes, stats.live_bytes);
  }
  EXPECT_EQ(model.get_tensor_allocator()->stats().live_bytes, before);
  EXPECT_GE(model.get_tensor_allocator()->stats().peak_live_bytes, before + 4000);
}

TEST_F(Contract, C1003_TrimGivesBackWhatIsKept) {
  if (!has("identity")) return;
  const Neuropod model = load("identity");
  model.allocate_tensor<float>({1000});
  EXPECT_GE(model.get_tensor_allocator()->stats().kept_bytes, 4000u);
  model.get_tensor_allocator()->trim();
  EXPECT_EQ(model.get_tensor_allocator()->stats().kept_bytes, 0u);
}

TEST_F(Contract, C1004_EachModelHasStatisticsOfItsOwn) {
  if (!has("identity")) return;
  const Neuropod first = load("identity");
  const Neuropod second = load("identity");
  const auto tensor = first.allocate_tensor<float>({1000});
  EXPECT_EQ(second.get_tensor_allocator()->stats().live_bytes, 0u);
}

}  // namespace
}  // namespace neuropod
