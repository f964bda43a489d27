// C09xx: threads.
#include <atomic>
#include <memory>
#include <thread>

#include "neuropod/testing/contract_suite/contract.hh"

namespace neuropod {
namespace {

using ::testing::ElementsAre;

constexpr int kThreads = 8;
constexpr int kCalls = 100;

// Runs `work(thread)` in eight threads at once; an exception in one is a failure.
template <typename Work>
void run_threads(Work&& work) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&work, thread] {
      try {
        work(thread);
      } catch (const std::exception& exception) {
        ADD_FAILURE() << exception.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Contract, C0901_EightThreadsOnOneModel) {
  if (!has("addition")) return;
  const Neuropod model = load("addition");
  run_threads([&](int thread) {
    for (int call = 0; call < kCalls; ++call) {
      const float value = float(thread * 1000 + call);
      const auto x = floats(model, {value, 1});
      ASSERT_THAT(values(*model.infer({{"x", x}, {"y", x}}), "out"), ElementsAre(2 * value, 2));
    }
  });
}

TEST_F(Contract, C0902_EightModelsInEightThreads) {
  if (!has("addition")) return;
  run_threads([](int thread) {
    const Neuropod model = load("addition");
    for (int call = 0; call < kCalls; ++call) {
      const float value = float(thread * 1000 + call);
      const auto x = floats(model, {value});
      ASSERT_THAT(values(*model.infer({{"x", x}, {"y", x}}), "out"), ElementsAre(2 * value));
    }
  });
}

TEST_F(Contract, C0903_ErrorsInSomeThreadsDoNotDisturbOthers) {
  if (!has("failing")) return;
  const Neuropod model = load("failing");
  std::atomic<int> raised{0};
  run_threads([&](int thread) {
    for (int call = 0; call < kCalls; ++call) {
      const float value = thread % 2 == 0 ? float(call) : -1.0f;
      try {
        const auto outputs = model.infer({{"x", floats(model, {value})}});
        ASSERT_THAT(values(*outputs, "y"), ElementsAre(value));
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::kModelError);
        ++raised;
      }
    }
  });
  EXPECT_EQ(raised, kThreads / 2 * kCalls);
}

TEST_F(Contract, C0904_CallsOfAStatefulModelRunOneAfterTheOther) {
  if (!has("stateful")) return;
  const Neuropod model = load("stateful");
  run_threads([&](int) {
    for (int call = 0; call < kCalls; ++call) model.infer({{"x", floats(model, {1})}});
  });
  EXPECT_THAT(values(*model.infer({{"x", floats(model, {1})}}), "y"),
              ElementsAre(kThreads * kCalls + 1));
}

TEST_F(Contract, C0905_AThreadMayDropTheModelWhileOthersUseIt) {
  if (!has("identity")) return;
  std::vector<std::unique_ptr<Neuropod>> copies;
  {
    const Neuropod model = load("identity");
    for (int i = 0; i < kThreads; ++i) copies.push_back(std::make_unique<Neuropod>(model));
  }
  run_threads([&](int thread) {
    std::unique_ptr<Neuropod>& mine = copies[size_t(thread)];
    for (int call = 0; call < kCalls * (thread + 1) / kThreads; ++call) {
      ASSERT_THAT(values(*mine->infer({{"x", floats(*mine, {1})}}), "y"), ElementsAre(1));
    }
    mine.reset();
  });
}

TEST_F(Contract, C0906_AnOutputMayDieOnAnotherThread) {
  if (!has("parameter") || !has("identity")) return;
  const Neuropod model = load("identity");
  const Neuropod parameter = load("parameter");
  for (int call = 0; call < kCalls; ++call) {
    auto outputs = model.infer({{"x", floats(model, {1})}});
    auto more = parameter.infer({{"x", floats(parameter, {1})}});
    std::thread([one = std::move(outputs), other = std::move(more)]() mutable {
      one.reset();
      other.reset();
    }).join();
  }
  EXPECT_EQ(model.get_tensor_allocator()->stats().live_bytes, 0u);
}

}  // namespace
}  // namespace neuropod
