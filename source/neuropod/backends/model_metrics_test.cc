#include "neuropod/backends/model_metrics.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "neuropod/backends/metrics.hh"
#include "neuropod/backends/neuropod_backend.hh"
#include "neuropod/base/tick_clock.hh"
#include "neuropod/core/generic_tensor.hh"
#include "neuropod/neuropod.hh"
#include "neuropod/testing/package_on_disk.hh"

namespace neuropod {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// A model that is one function.
class FunctionBackend : public NeuropodBackendWithDefaultAllocator<GenericNeuropodTensor> {
 public:
  using Function = std::function<void()>;

  FunctionBackend(const std::string& path, const RuntimeOptions& options, Function function)
      : NeuropodBackendWithDefaultAllocator<GenericNeuropodTensor>(path, options),
        function_(std::move(function)) {}

 protected:
  void load_model_internal() override {}
  std::unique_ptr<NeuropodValueMap> infer_internal(const BoundInputs& inputs) override {
    function_();
    return std::make_unique<NeuropodValueMap>(NeuropodValueMap{{"y", *inputs[0]}});
  }

 private:
  const Function function_;
};

// Loaded models whose output "y" is their input "x", float32 (n).
class ModelMetricsTest : public ::testing::Test {
 protected:
  void TearDown() override { set_metrics_observer(nullptr); }

  std::shared_ptr<NeuropodBackend> load(
      const FunctionBackend::Function& function = [] {}, const std::string& more = "",
      const RuntimeOptions& options = {}) {
    const PackageOnDisk package(one_input_config(more, "function"));
    auto backend = std::make_shared<FunctionBackend>(package.path(), options, function);
    backend->load_model();
    return backend;
  }

  static NeuropodValueMap floats(int64_t count) {
    return {{"x", get_generic_tensor_allocator()->ones<float>({count})}};
  }

  static void fail(NeuropodBackend& backend, const NeuropodValueMap& inputs) {
    EXPECT_THROW(backend.infer(inputs), Error);
  }
};

TEST_F(ModelMetricsTest, AModelThatWasJustLoadedHasDoneNothing) {
  const ModelStats stats = load()->stats();
  EXPECT_TRUE(stats.collected);
  EXPECT_EQ(stats.calls, 0u);
  EXPECT_TRUE(stats.errors.empty());
  EXPECT_EQ(stats.total.count, 0u);
  EXPECT_EQ(stats.total.p99_seconds, 0);
  EXPECT_EQ(stats.cpu_seconds, 0);
  EXPECT_GT(stats.load_seconds, 0);
}

TEST_F(ModelMetricsTest, CountsCallsAndBytes) {
  const auto model = load();
  model->infer(floats(3));
  model->infer(floats(5));
  const ModelStats stats = model->stats();
  EXPECT_EQ(stats.calls, 2u);
  EXPECT_EQ(stats.calls_in_flight, 0u);
  EXPECT_EQ(stats.input_bytes, 4u * (3 + 5));
  EXPECT_EQ(stats.output_bytes, 4u * (3 + 5));
  EXPECT_EQ(stats.copied_bytes, 0u);
  for (const LatencyStats* part :
       {&stats.total, &stats.checks, &stats.sealing, &stats.framework, &stats.outputs}) {
    EXPECT_EQ(part->count, 2u);
    EXPECT_EQ(part->up_to.back(), 2u);
  }
}

TEST_F(ModelMetricsTest, CountsTheBytesOfUncheckedTensorsToo) {
  RuntimeOptions options;
  options.disable_shape_and_type_checking = true;
  const auto model = load([] {}, "", options);
  model->infer({{"x", get_generic_tensor_allocator()->ones<double>({3, 2})}});
  EXPECT_EQ(model->stats().input_bytes, 8u * 6);
  EXPECT_EQ(model->stats().output_bytes, 8u * 6);
}

TEST_F(ModelMetricsTest, CountsTheBytesOfStrings) {
  const PackageOnDisk package(R"({"name": "m", "platform": "function", "format_version": 1,
      "input_spec": [{"name": "x", "dtype": "string", "shape": [2]}],
      "output_spec": [{"name": "y", "dtype": "string", "shape": [2]}]})");
  FunctionBackend model(package.path(), {}, [] {});
  model.load_model();
  auto strings = get_generic_tensor_allocator()->allocate_tensor<std::string>({2});
  strings->copy_from({"four", "seven77"});
  model.infer({{"x", strings}});
  EXPECT_EQ(model.stats().input_bytes, 11u);
  EXPECT_EQ(model.stats().output_bytes, 11u);
}

TEST_F(ModelMetricsTest, MayBeAskedWhileTheModelIsLoaded) {
  const PackageOnDisk package(one_input_config("", "function"));
  FunctionBackend model(package.path(), {}, [] {});
  std::atomic<bool> done{false};
  std::thread asking([&] {
    while (!done) EXPECT_GE(model.stats().load_seconds, 0);
  });
  model.load_model();
  done = true;
  asking.join();
  EXPECT_GT(model.stats().load_seconds, 0);
}

TEST_F(ModelMetricsTest, EveryCodeThatACallCanEndWithIsCounted) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::kCancelled); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    const auto model = load([code] { throw_error(code, "as the test wants it"); });
    fail(*model, floats(1));
    fail(*model, floats(1));
    const ModelStats stats = model->stats();
    EXPECT_EQ(stats.calls, 2u);
    EXPECT_THAT(stats.errors, UnorderedElementsAre(Pair(code, 2u))) << to_string(code);
    EXPECT_EQ(stats.total.count, 0u) << "failed calls have no place in the latencies";
    EXPECT_EQ(stats.output_bytes, 0u);
  }
}

TEST_F(ModelMetricsTest, RefusedCallsAndForeignExceptionsAreErrorsToo) {
  const auto model = load([] { throw std::runtime_error("raised by the framework"); });
  fail(*model, floats(1));
  fail(*model, {});
  fail(*model, {{"z", floats(1)["x"]}});
  EXPECT_THROW(model->infer(floats(1), {"no output"}), Error);
  const ModelStats stats = model->stats();
  EXPECT_EQ(stats.calls, 4u);
  EXPECT_THAT(stats.errors, UnorderedElementsAre(Pair(ErrorCode::kModelError, 1u),
                                                 Pair(ErrorCode::kSpecMismatch, 2u),
                                                 Pair(ErrorCode::kNotFound, 1u)));
  EXPECT_EQ(stats.input_bytes, 4u) << "refused inputs have no bytes";
}

TEST_F(ModelMetricsTest, ACallThatIsTriedTwiceIsOneCall) {
  bool full = true;
  const auto model = load([&] {
    if (std::exchange(full, false)) throw std::bad_alloc();
  });
  model->infer(floats(2));
  const ModelStats stats = model->stats();
  EXPECT_EQ(stats.calls, 1u);
  EXPECT_TRUE(stats.errors.empty());
  EXPECT_EQ(stats.input_bytes, 8u);
  EXPECT_EQ(stats.total.count, 1u);
}

TEST_F(ModelMetricsTest, TheFrameworksTimeIsInItsOwnPart) {
  const auto model = load([] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
  for (int i = 0; i < 3; ++i) model->infer(floats(1));
  const ModelStats stats = model->stats();
  EXPECT_GE(stats.framework.total_seconds, 3 * 5e-3);
  EXPECT_GE(stats.framework.p50_seconds, 0.93 * 5e-3);
  EXPECT_GE(stats.framework.max_seconds, 5e-3);
  EXPECT_EQ(stats.framework.up_to[9], 0u) << "none took a millisecond or less";
  const double parts = stats.checks.total_seconds + stats.sealing.total_seconds +
                       stats.framework.total_seconds + stats.outputs.total_seconds;
  EXPECT_NEAR(parts, stats.total.total_seconds, 1e-3 * stats.total.total_seconds);
}

uint64_t ticks_of(std::chrono::milliseconds time) { return TickClock::rough_ticks(time); }

TEST_F(ModelMetricsTest, WhatAWorkerDidNotTakeIsTransport) {
  const auto model = load([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    internal::report_remote_times(ticks_of(std::chrono::milliseconds(4)),
                                  ticks_of(std::chrono::milliseconds(10)));
  });
  model->infer(floats(1));
  const ModelStats stats = model->stats();
  EXPECT_EQ(stats.queue.count, 1u);
  EXPECT_EQ(stats.framework.count, 1u);
  EXPECT_EQ(stats.transport.count, 1u);
  EXPECT_NEAR(stats.queue.total_seconds, 4e-3, 1e-3);
  EXPECT_NEAR(stats.framework.total_seconds, 10e-3, 2e-3);
  EXPECT_GE(stats.transport.total_seconds, 5e-3);
  const double parts = stats.checks.total_seconds + stats.sealing.total_seconds +
                       stats.framework.total_seconds + stats.outputs.total_seconds +
                       stats.queue.total_seconds + stats.transport.total_seconds;
  EXPECT_NEAR(parts, stats.total.total_seconds, 1e-3 * stats.total.total_seconds);
}

TEST_F(ModelMetricsTest, NoWorkerTakesMoreThanTheCall) {
  constexpr uint64_t kAbsurd = uint64_t(-1);
  uint64_t queue = 0;
  uint64_t run = 0;
  const auto model = load([&] { internal::report_remote_times(queue, run); });
  for (queue = 0; queue < 2; ++queue) {
    for (const uint64_t each : {uint64_t(0), uint64_t(1), kAbsurd / 2, kAbsurd}) {
      run = each;
      model->infer(floats(1));
    }
  }
  queue = kAbsurd;
  model->infer(floats(1));
  const ModelStats stats = model->stats();
  EXPECT_EQ(stats.transport.count, 9u);
  for (const LatencyStats* part : {&stats.queue, &stats.framework, &stats.transport}) {
    EXPECT_LE(part->max_seconds, stats.total.max_seconds);
    EXPECT_LE(part->total_seconds, stats.total.total_seconds);
  }
}

TEST_F(ModelMetricsTest, AModelInThisProcessHasNoQueueAndNoTransport) {
  const auto model = load();
  model->infer(floats(1));
  EXPECT_FALSE(model->stats().has_workers);
  EXPECT_EQ(model->stats().queue.count, 0u);
  EXPECT_EQ(model->stats().transport.count, 0u);
  internal::report_remote_times(1, 1);  // outside of any call: nobody's
  internal::report_copied_bytes(1);
  EXPECT_EQ(model->stats().copied_bytes, 0u);
}

TEST_F(ModelMetricsTest, WhatIsReportedIsOfTheInnermostCall) {
  const auto inner = load([] { internal::report_copied_bytes(3); });
  const auto outer = load([&] {
    internal::report_copied_bytes(5);
    inner->infer(floats(1));
    internal::report_copied_bytes(7);
  });
  outer->infer(floats(1));
  EXPECT_EQ(inner->stats().copied_bytes, 3u);
  EXPECT_EQ(outer->stats().copied_bytes, 12u);
}

TEST_F(ModelMetricsTest, WaitingForAStatefulModelsTurnIsInTheTotalOnly) {
  std::shared_ptr<NeuropodBackend> model;
  std::atomic<bool> first_is_inside{false};
  model = load(
      [&] {
        if (first_is_inside.exchange(true)) return;
        while (model->stats().calls_in_flight < 2) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      },
      R"("stateful": true,)");
  std::thread first([&] { model->infer(floats(1)); });
  while (!first_is_inside) std::this_thread::yield();
  model->infer(floats(1));  // waits for the first
  first.join();
  const ModelStats stats = model->stats();
  const double parts = stats.checks.total_seconds + stats.sealing.total_seconds +
                       stats.framework.total_seconds + stats.outputs.total_seconds;
  EXPECT_GE(stats.total.total_seconds - parts, 0.0199);
}

TEST_F(ModelMetricsTest, ACallUnderWayIsInFlight) {
  std::shared_ptr<NeuropodBackend> model;
  ModelStats inside;
  model = load([&] { inside = model->stats(); });
  model->infer(floats(1));
  EXPECT_EQ(inside.calls, 0u);
  EXPECT_EQ(inside.calls_in_flight, 1u);
  EXPECT_EQ(model->stats().calls_in_flight, 0u);
}

TEST_F(ModelMetricsTest, TotalsOfManyThreadsAreExact) {
  const auto model = load([] {
    static thread_local int calls = 0;
    if (++calls % 5 == 0) throw_error(ErrorCode::kUnavailable, "each fifth");
  });
  constexpr int kThreads = 8;
  constexpr int kCalls = 2000;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      const NeuropodValueMap inputs = floats(7);
      for (int call = 0; call < kCalls; ++call) {
        try {
          model->infer(inputs);
        } catch (const Error&) {
        }
      }
    });
  }
  // Somebody who looks meanwhile sees whole calls only.
  uint64_t before = 0;
  for (int look = 0; look < 50; ++look) {
    const ModelStats stats = model->stats();
    EXPECT_GE(stats.calls, before);
    EXPECT_LE(stats.calls_in_flight, uint64_t(kThreads * kCalls));
    before = stats.calls;
  }
  for (std::thread& thread : threads) thread.join();
  const ModelStats stats = model->stats();
  EXPECT_EQ(stats.calls, uint64_t(kThreads * kCalls));
  EXPECT_THAT(stats.errors,
              UnorderedElementsAre(Pair(ErrorCode::kUnavailable, kThreads * kCalls / 5)));
  EXPECT_EQ(stats.total.count, uint64_t(kThreads * kCalls / 5 * 4));
  EXPECT_EQ(stats.input_bytes, uint64_t(kThreads * kCalls * 28));
  EXPECT_EQ(stats.output_bytes, uint64_t(kThreads * kCalls / 5 * 4 * 28));
  EXPECT_EQ(stats.calls_in_flight, 0u);
}

TEST_F(ModelMetricsTest, ThreadsThatEndTakeNothingWithThem) {
  const auto model = load();
  for (int round = 0; round < 10; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 20; ++i) threads.emplace_back([&] { model->infer(floats(1)); });
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(model->stats().calls, 200u);
  EXPECT_EQ(model->stats().input_bytes, 800u);
}

uint64_t thread_cpu_nanoseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return uint64_t(time.tv_sec) * 1'000'000'000u + uint64_t(time.tv_nsec);
}

TEST_F(ModelMetricsTest, TellsWorkingFromSleeping) {
  const auto working = load([] {
    const uint64_t begin = thread_cpu_nanoseconds();
    while (thread_cpu_nanoseconds() - begin < 3'000'000) {
    }
  });
  const auto sleeping = load([] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
  for (int i = 0; i < 4; ++i) working->infer(floats(1));
  for (int i = 0; i < 4; ++i) sleeping->infer(floats(1));
  EXPECT_GE(working->stats().cpu_seconds, 4 * 0.003);
  EXPECT_LT(sleeping->stats().cpu_seconds, 0.5 * sleeping->stats().total.total_seconds);
}

TEST_F(ModelMetricsTest, NoModelUsesMoreCpuThanTime) {
  const auto model = load();
  for (int i = 0; i < 2000; ++i) model->infer(floats(1));
  const ModelStats stats = model->stats();
  EXPECT_GT(stats.cpu_seconds, 0);
  EXPECT_LE(stats.cpu_seconds, stats.total.total_seconds * 1.0001);
}

TEST_F(ModelMetricsTest, SwitchedOffItCountsNothing) {
  RuntimeOptions options;
  options.collect_metrics = false;
  const auto model = load([] {}, R"("version": "switched off",)", options);
  int observed = 0;
  set_metrics_observer([&](const CallRecord&) { ++observed; });
  model->infer(floats(1));
  const auto kept = model->get_tensor_allocator()->allocate_tensor<float>({100});
  const ModelStats stats = model->stats();
  EXPECT_FALSE(stats.collected);
  EXPECT_EQ(stats.calls, 0u);
  EXPECT_EQ(observed, 0);
  EXPECT_GT(stats.load_seconds, 0);
  EXPECT_GE(stats.allocator.live_bytes, 400u);
  EXPECT_EQ(metrics_text().find("switched off"), std::string::npos);
}

TEST_F(ModelMetricsTest, AnInputThatMovesToADeviceIsCopiedAndSealingTakesTime) {
  const PackageOnDisk package(
      one_input_config(),
      R"({"device": true, "outputs": {"y": {"op": "identity", "input": "x"}}})");
  const Neuropod model(package.path());
  const auto x = model.get_tensor_allocator()->ones<float>({100});
  model.infer({{"x", x}});
  const ModelStats stats = model.stats();
  EXPECT_EQ(stats.copied_bytes, 400u);
  EXPECT_EQ(stats.input_bytes, 400u);
  EXPECT_EQ(stats.output_bytes, 400u);
  EXPECT_GT(stats.sealing.total_seconds, 0);
  EXPECT_EQ(stats.allocator.transferred_bytes, 400u);
}

class StringMetricsTest : public ModelMetricsTest {
 protected:
  uint64_t bytes_of(const std::vector<std::string>& strings) {
    const PackageOnDisk package(R"({"name": "texts", "platform": "function", "format_version": 1,
        "input_spec": [{"name": "x", "dtype": "string", "shape": ["n"]}],
        "output_spec": [{"name": "y", "dtype": "string", "shape": ["n"]}]})");
    FunctionBackend model(package.path(), {}, [] {});
    model.load_model();
    const std::shared_ptr<NeuropodTensor> tensor =
        get_generic_tensor_allocator()->allocate_tensor({int64_t(strings.size())}, STRING_TENSOR);
    tensor->as_typed_tensor<std::string>()->copy_from(strings);
    model.infer({{"x", tensor}});
    EXPECT_EQ(model.stats().input_bytes, model.stats().output_bytes);
    return model.stats().input_bytes;
  }
};

TEST_F(StringMetricsTest, StringsCountByTheirContent) {
  EXPECT_EQ(bytes_of({"one", "", "three"}), 8u);
  EXPECT_EQ(bytes_of({}), 0u);
}

TEST_F(StringMetricsTest, ManyStringsAreEstimatedFromSome) {
  EXPECT_EQ(bytes_of(std::vector<std::string>(1000, "four")), 4000u);
}

TEST_F(ModelMetricsTest, TheObserverIsToldOfEachCall) {
  const auto model = load();
  std::vector<CallRecord> records;
  set_metrics_observer([&](const CallRecord& record) {
    EXPECT_EQ(record.model, "tested");
    EXPECT_EQ(record.platform, "function");
    EXPECT_GT(record.load_id, 0u);
    records.push_back(record);
  });
  model->infer(floats(2));
  fail(*model, {});
  set_metrics_observer(nullptr);
  model->infer(floats(2));
  ASSERT_EQ(records.size(), 2u);
  EXPECT_FALSE(records[0].error);
  EXPECT_EQ(records[0].input_bytes, 8u);
  EXPECT_EQ(records[0].output_bytes, 8u);
  EXPECT_GT(records[0].framework_seconds, 0);
  EXPECT_GE(records[0].total_seconds, records[0].framework_seconds);
  EXPECT_EQ(records[1].error, ErrorCode::kSpecMismatch);
  EXPECT_EQ(records[1].framework_seconds, 0);
}

TEST_F(ModelMetricsTest, AnObserverThatThrowsDisturbsNoCallAndIsLoggedOnce) {
  const auto model = load();
  set_metrics_observer([](const CallRecord&) { throw std::runtime_error("no connection"); });
  ::testing::internal::CaptureStderr();
  model->infer(floats(1));
  model->infer(floats(1));
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("the metrics observer threw: no connection"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_EQ(model->stats().calls, 2u);
  EXPECT_TRUE(model->stats().errors.empty());
}

TEST_F(ModelMetricsTest, AnObserverMayRunModelsItself) {
  const auto model = load([] {}, R"("stateful": true,)");
  int observed = 0;
  set_metrics_observer([&](const CallRecord&) {
    ++observed;
    model->infer(floats(1));
  });
  model->infer(floats(1));
  EXPECT_EQ(observed, 1);
  EXPECT_EQ(model->stats().calls, 2u);
}

TEST_F(ModelMetricsTest, TheObserverMayBeReplacedUnderEightThreads) {
  const auto model = load();
  std::atomic<int> observed{0};
  const auto observer = [&](const CallRecord&) { ++observed; };
  set_metrics_observer(observer);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < 500; ++call) model->infer(floats(1));
    });
  }
  for (int i = 0; i < 50; ++i) set_metrics_observer(observer);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(observed, 4000);
}

}  // namespace
}  // namespace neuropod
