#include "neuropod/swappable_neuropod.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "neuropod/testing/error_of.hh"
#include "neuropod/testing/package_on_disk.hh"

namespace neuropod {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Input `x` and output `y`, both (n), and two outputs that tell which model made them.
std::string marked_config(const std::string& name, const std::string& more_outputs = "") {
  return R"({"name": ")" + name + R"(", "platform": "echo", "format_version": 1,
    "input_spec": [{"name": "x", "dtype": "float32", "shape": ["n"]}],
    "output_spec": [{"name": "y", "dtype": "float32", "shape": ["n"]},)" +
         more_outputs + R"(
                    {"name": "first_mark", "dtype": "int64", "shape": [1]},
                    {"name": "last_mark", "dtype": "int64", "shape": [1]}]})";
}

// y = 2 x, by `operation`; both marks are `mark`.
std::string marked_model(const std::string& operation, int mark, const std::string& more = "") {
  const std::string constant = R"({"op": "constant", "dtype": "int64", "shape": [1], "values": [)" +
                               std::to_string(mark) + "]}";
  return R"({"outputs": {"first_mark": )" + constant + R"(, "y": )" + operation +
         R"(, "last_mark": )" + constant + "}" + more + "}";
}

constexpr char kScaled[] = R"({"op": "scale", "input": "x", "by": 2})";
constexpr char kSummed[] = R"({"op": "sum", "inputs": ["x", "x"]})";

class SwappableNeuropodTest : public ::testing::Test {
 protected:
  static RuntimeOptions on_cpu() {
    RuntimeOptions options;
    options.visible_device = Device::CPU;
    return options;
  }

  static std::shared_ptr<TypedNeuropodTensor<float>> floats(const SwappableNeuropod& model,
                                                            const std::vector<float>& values) {
    auto tensor = model.allocate_tensor<float>({int64_t(values.size())});
    tensor->copy_from(values);
    return tensor;
  }

  static int64_t number(const NeuropodValueMap& outputs, const std::string& name) {
    return outputs.at(name)->as_typed_tensor<int64_t>()->get_data_as_vector().at(0);
  }

  // Runs the model on {1, 2} and returns the mark, 0 if anything about the answer is wrong.
  static int64_t call(const SwappableNeuropod& model) {
    const auto outputs = model.infer({{"x", floats(model, {1, 2})}});
    const std::vector<float> y = outputs->at("y")->as_typed_tensor<float>()->get_data_as_vector();
    const int64_t mark = number(*outputs, "first_mark");
    const bool right = y == std::vector<float>{2, 4} && mark == number(*outputs, "last_mark");
    return right ? mark : 0;
  }

  PackageOnDisk first_{marked_config("first"), marked_model(kScaled, 1)};
  PackageOnDisk second_{marked_config("second"), marked_model(kSummed, 2)};
};

TEST_F(SwappableNeuropodTest, ServesTheOtherPackageAfterASwap) {
  SwappableNeuropod model(first_.path(), on_cpu());
  EXPECT_EQ(call(model), 1);
  EXPECT_EQ(model.generation(), 0u);
  model.swap(second_.path());
  EXPECT_EQ(call(model), 2);
  EXPECT_EQ(model.generation(), 1u);
  EXPECT_EQ(model.get_name(), "second");
  EXPECT_EQ(model.get_platform(), "echo");
  model.swap(first_.path());
  EXPECT_EQ(call(model), 1);
}

TEST_F(SwappableNeuropodTest, AHandleStaysOnItsModel) {
  SwappableNeuropod model(first_.path(), on_cpu());
  const Neuropod before = model.current();
  model.swap(second_.path());
  EXPECT_EQ(number(*before.infer({{"x", floats(model, {1})}}), "first_mark"), 1);
  EXPECT_EQ(before.get_name(), "first");
}

TEST_F(SwappableNeuropodTest, AReplacedModelIsFreedAfterItsOutputs) {
  SwappableNeuropod model(first_.path(), on_cpu());
  std::weak_ptr<NeuropodTensorAllocator> allocator = model.get_tensor_allocator();
  auto outputs = model.infer({{"x", floats(model, {3})}});
  model.swap(second_.path());
  EXPECT_TRUE(allocator.expired());
  EXPECT_THAT(outputs->at("y")->as_typed_tensor<float>()->get_data_as_vector(), ElementsAre(6));
}

TEST_F(SwappableNeuropodTest, ACallUnderWayEndsOnTheModelItBeganWith) {
  PackageOnDisk slow(marked_config("slow"), marked_model(kScaled, 3, R"(, "sleep_ms": 200)"));
  SwappableNeuropod model(slow.path(), on_cpu());
  std::weak_ptr<NeuropodTensorAllocator> allocator = model.get_tensor_allocator();
  const auto input = floats(model, {1, 2});
  std::atomic<int64_t> mark{-1};
  std::thread caller([&] { mark = number(*model.infer({{"x", input}}), "last_mark"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  model.swap(second_.path());
  EXPECT_EQ(call(model), 2);
  caller.join();
  EXPECT_EQ(mark, 3);
  EXPECT_TRUE(allocator.expired());
}

TEST_F(SwappableNeuropodTest, TakesInputsThatTheReplacedModelsAllocatorMade) {
  SwappableNeuropod model(first_.path(), on_cpu());
  const auto input = floats(model, {5});
  model.swap(second_.path());
  const auto outputs = model.infer({{"x", input}});
  EXPECT_EQ(number(*outputs, "first_mark"), 2);
  EXPECT_THAT(outputs->at("y")->as_typed_tensor<float>()->get_data_as_vector(), ElementsAre(10));
}

TEST_F(SwappableNeuropodTest, TakesInputsFromTheReplacedModelsDevice) {
  constexpr char kIdentity[] =
      R"({"device": true, "outputs": {"y": {"op": "identity", "input": "x"}}})";
  PackageOnDisk on_device(one_input_config(), kIdentity);
  PackageOnDisk doubling(one_input_config(),
                         R"({"outputs": {"y": {"op": "scale", "input": "x", "by": 2}}})");
  SwappableNeuropod model(on_device.path());
  const auto outputs = model.infer({{"x", floats(model, {4})}});
  ASSERT_EQ(outputs->at("y")->as_tensor()->get_device(), Device::GPU0);
  model.swap(doubling.path());
  EXPECT_THAT(model.infer({{"x", outputs->at("y")}})
                  ->at("y")
                  ->as_typed_tensor<float>()
                  ->get_data_as_vector(),
              ElementsAre(8));
}

TEST_F(SwappableNeuropodTest, AFailedSwapLeavesTheOldModelServing) {
  SwappableNeuropod model(first_.path(), on_cpu());
  PackageOnDisk broken(marked_config("broken"), "{");
  PackageOnDisk nothing("{");
  PackageOnDisk changed(marked_config("changed"), marked_model(kScaled, 1));
  changed.write("manifest.json", R"({"manifest_version": 1, "files": {"config.json": ")" +
                                     std::string(64, '0') + R"("}})");
  PackageOnDisk of_nobody(one_input_config("", "nobody"));
  struct Case {
    std::string path;
    ErrorCode code;
  };
  for (const Case& bad : std::vector<Case>{{"/nowhere/model.neuropod", ErrorCode::kNotFound},
                                           {nothing.path(), ErrorCode::kInvalidPackage},
                                           {changed.path(), ErrorCode::kCorruptPackage},
                                           {broken.path(), ErrorCode::kLoadFailed},
                                           {of_nobody.path(), ErrorCode::kBackendNotFound}}) {
    const Error error = error_of([&] { model.swap(bad.path); });
    EXPECT_EQ(error.code(), bad.code) << error.message();
    EXPECT_THAT(error.message(), AllOf(HasSubstr("model 'first' isn't swapped and keeps serving"),
                                       HasSubstr(bad.path)));
    EXPECT_EQ(call(model), 1);
    EXPECT_EQ(model.generation(), 0u);
  }
}

TEST_F(SwappableNeuropodTest, RefusesAPackageOfAnotherApiWithTheDifferences) {
  SwappableNeuropod model(first_.path(), on_cpu());
  PackageOnDisk other(one_input_config(),
                      R"({"outputs": {"y": {"op": "identity", "input": "x"}}})");
  const Error error = error_of([&] { model.swap(other.path()); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("doesn't fulfil the problem API"), HasSubstr(other.path()),
                    HasSubstr("output 'first_mark' is missing"),
                    HasSubstr("output 'last_mark' is missing")));
  EXPECT_EQ(call(model), 1);
}

TEST_F(SwappableNeuropodTest, AWiderPackageMayServeAndTheFirstMayComeBack) {
  PackageOnDisk wider(
      marked_config("wider", R"({"name": "z", "dtype": "float32", "shape": [null]},)"),
      R"({"outputs": {"y": )" + std::string(kScaled) + R"(, "z": )" + kScaled +
          R"(, "first_mark": {"op": "constant", "dtype": "int64", "shape": [1], "values": [4]},
             "last_mark": {"op": "constant", "dtype": "int64", "shape": [1], "values": [4]}}})");
  SwappableNeuropod model(first_.path(), on_cpu());
  model.swap(wider.path());
  EXPECT_EQ(call(model), 4);
  EXPECT_EQ(model.get_outputs().size(), 3u);
  EXPECT_EQ(model.current().get_outputs().size(), 4u);
  model.swap(first_.path());
  EXPECT_EQ(call(model), 1);
}

TEST_F(SwappableNeuropodTest, LoadsLaterIfAskedAndSwapsToALoadedModel) {
  RuntimeOptions options = on_cpu();
  options.load_model_at_construction = false;
  SwappableNeuropod model(first_.path(), options);
  const auto input = floats(model, {1});
  EXPECT_EQ(error_of([&] { model.infer({{"x", input}}); }).code(), ErrorCode::kInvalidArgument);
  model.load_model();
  EXPECT_EQ(call(model), 1);
  model.swap(second_.path());
  EXPECT_EQ(call(model), 2);
  EXPECT_EQ(error_of([&] { model.load_model(); }).code(), ErrorCode::kInvalidArgument);
}

TEST_F(SwappableNeuropodTest, AStatefulModelStartsAfreshAndResets) {
  const std::string config = one_input_config(R"("stateful": true, )");
  const std::string echo = R"({"outputs": {"y": {"op": "running_sum", "input": "x"}}})";
  PackageOnDisk one(config, echo);
  PackageOnDisk other(config, echo);
  SwappableNeuropod model(one.path(), on_cpu());
  const auto sum = [&] {
    return model.infer({{"x", floats(model, {1})}})->at("y")->as_tensor()->as_scalar<float>();
  };
  EXPECT_EQ(sum(), 1);
  EXPECT_EQ(sum(), 2);
  model.swap(other.path());
  EXPECT_EQ(sum(), 1);
  EXPECT_EQ(sum(), 2);
  model.reset();
  EXPECT_EQ(sum(), 1);
}

TEST_F(SwappableNeuropodTest, TwoSwapsAtOnceRunOneAfterTheOther) {
  SwappableNeuropod model(first_.path(), on_cpu());
  std::vector<std::thread> swappers;
  for (int thread = 0; thread < 4; ++thread) {
    swappers.emplace_back([&, thread] {
      for (int i = 0; i < 5; ++i) model.swap(thread % 2 == 0 ? first_.path() : second_.path());
    });
  }
  for (std::thread& swapper : swappers) swapper.join();
  EXPECT_EQ(model.generation(), 20u);
  EXPECT_NE(call(model), 0);
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kMemoryIsOurs = false;  // sanitizers keep memory of their own
#else
constexpr bool kMemoryIsOurs = true;
#endif

size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  size_t total = 0;
  size_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// Calls a model on 8 threads until it is destroyed.
class Callers {
 public:
  explicit Callers(const std::function<int64_t()>& call) {
    for (std::atomic<int>& calls : calls_) {
      threads_.emplace_back([this, call, &calls] {
        while (!stop_) {
          const int64_t mark = call();
          if (mark == 1 || mark == 2) {
            ++marks_[size_t(mark)];
          } else {
            ++wrong_;
          }
          ++calls;
        }
      });
    }
  }
  ~Callers() { stop(); }
  Callers(const Callers&) = delete;

  void stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  // Blocks until each thread has made a wider call that started after this one did.
  void wait_for_all() const {
    std::array<int, kThreads> before{};
    for (size_t i = 0; i < kThreads; ++i) before[i] = calls_[i];
    for (size_t i = 0; i < kThreads; ++i) {
      while (calls_[i] < before[i] + 2) std::this_thread::yield();
    }
  }

  int wrong() const { return wrong_; }
  int calls_of(size_t mark) const { return marks_.at(mark); }

 private:
  static constexpr size_t kThreads = 8;
  std::atomic<bool> stop_{false};
  std::atomic<int> wrong_{0};
  std::array<std::atomic<int>, 3> marks_{};
  std::array<std::atomic<int>, kThreads> calls_{};
  std::vector<std::thread> threads_;
};

TEST_F(SwappableNeuropodTest, FiftySwapsUnderEightThreadsFailNoCallAndLeaveNoMemory) {
  SwappableNeuropod model(first_.path(), on_cpu());
  Callers callers([&]() -> int64_t {
    try {
      return call(model);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
      return 0;
    }
  });
  std::vector<std::weak_ptr<NeuropodTensorAllocator>> replaced;
  size_t resident_after_warm_up = 0;
  for (int swap = 0; swap < 50; ++swap) {
    replaced.push_back(model.get_tensor_allocator());
    model.swap(swap % 2 == 0 ? second_.path() : first_.path());
    callers.wait_for_all();
    if (swap == 9) resident_after_warm_up = resident_bytes();
  }
  const size_t resident = resident_bytes();
  callers.stop();

  EXPECT_EQ(callers.wrong(), 0);
  EXPECT_GT(callers.calls_of(1), 0);
  EXPECT_GT(callers.calls_of(2), 0);
  EXPECT_EQ(model.generation(), 50u);
  for (const auto& allocator : replaced) EXPECT_TRUE(allocator.expired());
  EXPECT_EQ(model.get_tensor_allocator()->stats().live_bytes, 0u);
  if (kMemoryIsOurs) {
    EXPECT_LT(resident, resident_after_warm_up + (size_t{4} << 20));
  }
}

}  // namespace
}  // namespace neuropod
