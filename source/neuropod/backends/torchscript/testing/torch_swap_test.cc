// A model that is swapped between torch and a platform without a framework, under threads.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "neuropod/base/temporary_folder.hh"
#include "neuropod/swappable_neuropod.hh"

namespace neuropod {
namespace {

constexpr int kSwaps = 50;
constexpr int kThreads = 8;

// The problem API of the fixture `identity`, without a framework.
class EchoIdentity {
 public:
  EchoIdentity() {
    const std::filesystem::path root = folder_.path();
    std::filesystem::create_directories(root / "0" / "data");
    std::filesystem::copy_file(std::string(FIXTURES) + "/identity/config.json",
                               root / "config.json");
    std::ifstream file(root / "config.json");
    std::string config(std::istreambuf_iterator<char>(file), {});
    const std::string platform = "\"torchscript\"";
    config.replace(config.find(platform), platform.size(), "\"echo\"");
    std::ofstream(root / "config.json") << config;
    std::ofstream(root / "0" / "data" / "echo.json")
        << R"({"outputs": {"y": {"op": "identity", "input": "x"}}})";
  }
  const std::string& path() const { return folder_.path(); }

 private:
  const TemporaryFolder folder_;
};

std::vector<float> infer(const SwappableNeuropod& model, const std::vector<float>& values) {
  auto x = model.allocate_tensor<float>({static_cast<int64_t>(values.size())});
  x->copy_from(values);
  return model.infer({{"x", x}})->at("y")->as_typed_tensor<float>()->get_data_as_vector();
}

TEST(TorchSwapTest, SwapsBetweenFrameworksUnderThreadsFailNoCallAndLeaveNoModel) {
  const std::string torch = std::string(FIXTURES) + "/identity";
  const EchoIdentity echo;
  SwappableNeuropod model(torch);

  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::atomic<int> calls{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      const std::vector<float> values(static_cast<size_t>(thread) + 1, 3.5f);
      while (!stop) {
        try {
          wrong += infer(model, values) != values;
        } catch (const Error& error) {
          ++wrong;
          ADD_FAILURE() << error.what();
        }
        ++calls;
      }
    });
  }
  std::vector<std::weak_ptr<NeuropodTensorAllocator>> replaced;
  for (int swap = 0; swap < kSwaps; ++swap) {
    replaced.push_back(model.get_tensor_allocator());
    model.swap(swap % 2 == 0 ? echo.path() : torch);
    for (const int before = calls; calls < before + kThreads;) std::this_thread::yield();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(model.get_platform(), "torchscript");
  for (const auto& allocator : replaced) EXPECT_TRUE(allocator.expired());
  EXPECT_EQ(model.get_tensor_allocator()->stats().live_bytes, 0u);
}

TEST(TorchSwapTest, TensorsOfTheReplacedModelAreTakenByTheOther) {
  const std::string torch = std::string(FIXTURES) + "/identity";
  const EchoIdentity echo;
  SwappableNeuropod model(torch);
  const auto outputs = model.infer({{"x", model.get_tensor_allocator()->ones<float>({2})}});
  model.swap(echo.path());
  const auto again = model.infer({{"x", outputs->at("y")}});
  EXPECT_EQ(again->at("y"), outputs->at("y"));
  model.swap(torch);
  EXPECT_EQ(*model.infer({{"x", again->at("y")}})->at("y"), *outputs->at("y"));
}

}  // namespace
}  // namespace neuropod
