// C12xx: what a model says of its own calls.
#include <atomic>
#include <thread>
#include <vector>

#include "neuropod/testing/contract_suite/contract.hh"

namespace neuropod {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr int kThreads = 8;
constexpr int kCalls = 100;

TEST_F(Contract, C1201_CallsAndTheirBytesAreCounted) {
  if (!has("addition")) return;
  const Neuropod model = load("addition");
  const auto x = floats(model, {1, 2, 3});
  model.infer({{"x", x}, {"y", x}});
  model.infer({{"x", x}, {"y", x}});
  const ModelStats stats = model.stats();
  EXPECT_EQ(stats.calls, 2u);
  EXPECT_THAT(stats.errors, IsEmpty());
  EXPECT_EQ(stats.input_bytes, 2u * 2 * 3 * sizeof(float));
  EXPECT_EQ(stats.output_bytes, 2u * 3 * sizeof(float));
  EXPECT_EQ(stats.copied_bytes, 0u);
  EXPECT_EQ(stats.calls_in_flight, 0u);
}

TEST_F(Contract, C1202_FailedCallsAreCountedByCode) {
  if (!has("failing")) return;
  const Neuropod model = load("failing");
  error_of([&] { model.infer({{"x", floats(model, {-1})}}); });
  error_of([&] { model.infer({}); });
  error_of([&] { model.infer({{"x", floats(model, {1})}}, {"out_wrong"}); });
  model.infer({{"x", floats(model, {1})}});
  const ModelStats stats = model.stats();
  EXPECT_EQ(stats.calls, 4u);
  EXPECT_THAT(stats.errors, UnorderedElementsAre(Pair(ErrorCode::kModelError, 1u),
                                                 Pair(ErrorCode::kSpecMismatch, 1u),
                                                 Pair(ErrorCode::kNotFound, 1u)));
  EXPECT_EQ(stats.total.count, 1u);
}

TEST_F(Contract, C1203_TheTimeOfACallIsThatOfItsParts) {
  if (!has("identity")) return;
  const Neuropod model = load("identity");
  for (int call = 0; call < kCalls; ++call) model.infer({{"x", floats(model, {1})}});
  const ModelStats stats = model.stats();
  const double parts = stats.checks.total_seconds + stats.sealing.total_seconds +
                       stats.framework.total_seconds + stats.outputs.total_seconds +
                       stats.queue.total_seconds + stats.transport.total_seconds;
  EXPECT_EQ(stats.transport.count, out_of_process() ? uint64_t(kCalls) : 0);
  EXPECT_EQ(stats.framework.count, uint64_t(kCalls));
  EXPECT_GT(stats.framework.total_seconds, 0);
  EXPECT_GT(stats.cpu_seconds, 0);
  EXPECT_GT(stats.load_seconds, 0);
  EXPECT_NEAR(stats.total.total_seconds, parts, 0.01 * parts);
}

TEST_F(Contract, C1204_CountsOfEightThreadsAreExact) {
  if (!has("failing")) return;
  const Neuropod model = load("failing");
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&model, thread] {
      const auto x = floats(model, {thread % 2 == 0 ? 1.0f : -1.0f});
      for (int call = 0; call < kCalls; ++call) {
        try {
          model.infer({{"x", x}});
        } catch (const Error&) {
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const ModelStats stats = model.stats();
  EXPECT_EQ(stats.calls, uint64_t(kThreads * kCalls));
  EXPECT_THAT(stats.errors,
              UnorderedElementsAre(Pair(ErrorCode::kModelError, kThreads * kCalls / 2)));
  EXPECT_EQ(stats.input_bytes, uint64_t(kThreads * kCalls) * sizeof(float));
  EXPECT_EQ(stats.output_bytes, uint64_t(kThreads * kCalls / 2) * sizeof(float));
}

TEST_F(Contract, C1205_CountingCanBeSwitchedOff) {
  if (!has("identity")) return;
  RuntimeOptions options = on_cpu();
  options.collect_metrics = false;
  const Neuropod model = load("identity", options);
  model.infer({{"x", floats(model, {1})}});
  EXPECT_FALSE(model.stats().collected);
  EXPECT_EQ(model.stats().calls, 0u);
}

TEST_F(Contract, C1206_AMovedInputIsCountedAsCopied) {
  if (!able("device") || !has("identity")) return;
  const Neuropod model = load("identity", on_gpu());
  model.infer({{"x", floats(model, {1, 2, 3})}});
  EXPECT_EQ(model.stats().copied_bytes, 3 * sizeof(float));
}

}  // namespace
}  // namespace neuropod
