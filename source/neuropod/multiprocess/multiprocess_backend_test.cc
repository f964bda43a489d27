// A model in a worker, by the real program neuropod-worker and the echo plug-in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <thread>
#include <utility>

#include "neuropod/backends/call_control.hh"
#include "neuropod/internal/neuropod_tensor_raw_data_access.hh"
#include "neuropod/multiprocess/channel/channel_layout.hh"
#include "neuropod/neuropod.hh"
#include "neuropod/testing/error_of.hh"
#include "neuropod/testing/package_on_disk.hh"
#include "neuropod/testing/process_probe.hh"
#include "neuropod/testing/wait_until.hh"

namespace neuropod {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr const char* kDouble = R"("outputs": {"y": {"op": "scale", "input": "x", "by": 2}})";

RuntimeOptions in_worker() {
  RuntimeOptions options;
  options.use_ope = true;
  options.visible_device = Device::CPU;
  return options;
}

// A package that doubles x; `more` is what happens besides.
PackageOnDisk doubling(const std::string& more = "") {
  return PackageOnDisk(one_input_config(), "{" + more + kDouble + "}");
}

PackageOnDisk failing(const std::string& action) {
  return doubling(R"("fail_if_negative": {"input": "x", "action": ")" + action + R"("}, )");
}

NeuropodValueMap input(const Neuropod& model, const std::vector<float>& values) {
  auto x = model.allocate_tensor<float>({static_cast<int64_t>(values.size())});
  x->copy_from(values);
  return {{"x", x}};
}

std::vector<float> values(const NeuropodValueMap& outputs) {
  return outputs.at("y")->as_typed_tensor<float>()->get_data_as_vector();
}

const void* address_of(const std::shared_ptr<NeuropodValue>& value) {
  return internal::RawDataAccess::get_untyped_data_ptr(*value->as_tensor());
}

pid_t worker_of(const Neuropod& model) { return static_cast<pid_t>(model.workers().at(0).pid); }

// Under sanitizers each start takes a second.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kMany = 10;
#else
constexpr int kMany = 100;
#endif

bool is_gone(pid_t pid) { return ::kill(pid, 0) != 0; }

// The memory of the channel to a worker.
multiprocess::ChannelLayout* channel_of(pid_t worker) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:neuropod-channel") == std::string::npos) continue;
    auto* channel = reinterpret_cast<multiprocess::ChannelLayout*>(std::stoull(line, nullptr, 16));
    if (channel->status.worker_pid == static_cast<uint64_t>(worker)) return channel;
  }
  return nullptr;
}

TEST(MultiprocessBackendTest, RunsTheModelInAnotherProcess) {
  const PackageOnDisk package = doubling();
  const Neuropod model(package.path(), in_worker());
  EXPECT_THAT(values(*model.infer(input(model, {1, 2}))), ElementsAre(2, 4));
  ASSERT_EQ(model.workers().size(), 1u);
  EXPECT_NE(worker_of(model), ::getpid());
  EXPECT_EQ(model.workers()[0].model, "tested");
}

TEST(MultiprocessBackendTest, AReturnedInputIsTheCallersOwnMemory) {
  const PackageOnDisk package(one_input_config(),
                              R"({"outputs": {"y": {"op": "identity", "input": "x"}}})");
  const Neuropod model(package.path(), in_worker());
  const auto inputs = input(model, std::vector<float>(100'000, 3));
  const auto outputs = model.infer(inputs);
  EXPECT_EQ(address_of(outputs->at("y")), address_of(inputs.at("x")));
  EXPECT_EQ(model.stats().copied_bytes, 0u);
}

TEST(MultiprocessBackendTest, ResultsStayWhatTheyWereWhateverTheWorkerDoesLater) {
  const PackageOnDisk package = doubling();
  std::vector<std::unique_ptr<NeuropodValueMap>> kept;
  {
    const Neuropod model(package.path(), in_worker());
    for (int i = 0; i < 50; ++i)
      kept.push_back(model.infer(input(model, std::vector<float>(5000, i))));
    ::kill(worker_of(model), SIGKILL);
    for (int i = 0; i < 50; ++i) model.infer(input(model, std::vector<float>(5000, -1)));
  }
  for (int i = 0; i < 50; ++i) EXPECT_THAT(values(*kept[size_t(i)]), Each(2 * i));
}

TEST(MultiprocessBackendTest, AWorkerThatDiesFailsItsCallWithTheCause) {
  const std::pair<const char*, const char*> faults[] = {{"segv", "SIGSEGV"},
                                                        {"abort", "SIGABRT"},
                                                        {"exit", "exited with code 3"},
                                                        {"kill", "SIGKILL"}};
  for (const auto& [action, cause] : faults) {
    const PackageOnDisk package = failing(action);
    const Neuropod model(package.path(), in_worker());
    const Error error = error_of([&] { model.infer(input(model, {-1})); });
    EXPECT_EQ(error.code(), ErrorCode::kWorkerDied) << action;
    EXPECT_THAT(error.message(), AllOf(HasSubstr("model 'tested'"), HasSubstr(cause)));
    EXPECT_THAT(values(*model.infer(input(model, {4}))), ElementsAre(8)) << action;
    EXPECT_EQ(model.stats().worker_deaths, 1u);
  }
}

TEST(MultiprocessBackendTest, RetriesRunACallAgainWhoseWorkerDied) {
  const PackageOnDisk package = doubling(R"("sleep_ms": 300, )");
  RuntimeOptions options = in_worker();
  options.ope_options.retries = 1;
  const Neuropod model(package.path(), options);
  const pid_t worker = worker_of(model);
  std::thread killer([worker] {
    std::this_thread::sleep_for(milliseconds(100));
    ::kill(worker, SIGKILL);
  });
  EXPECT_THAT(values(*model.infer(input(model, {4}))), ElementsAre(8));
  killer.join();
  EXPECT_EQ(model.stats().worker_deaths, 1u);
}

TEST(MultiprocessBackendTest, CallsThatHadNotBegunMoveToTheNextWorker) {
  const PackageOnDisk package = doubling(R"("sleep_ms": 200, )");
  const Neuropod model(package.path(), in_worker());
  const pid_t worker = worker_of(model);
  std::atomic<int> right{0};
  std::atomic<int> died{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      try {
        right += values(*model.infer(input(model, {4}))) == std::vector<float>{8};
      } catch (const Error& error) {
        died += error.code() == ErrorCode::kWorkerDied;
      }
    });
  }
  std::this_thread::sleep_for(milliseconds(100));
  ::kill(worker, SIGKILL);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(died, 1);
  EXPECT_EQ(right, 3);
}

TEST(MultiprocessBackendTest, AnEndlessCallIsLateAndItsWorkerReplaced) {
  const PackageOnDisk package = failing("hang");
  RuntimeOptions options = in_worker();
  options.ope_options.timeout = milliseconds(200);
  options.ope_options.kill_grace = milliseconds(100);
  const Neuropod model(package.path(), options);
  const pid_t worker = worker_of(model);
  const Error error = error_of([&] { model.infer(input(model, {-1})); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("ope_options.timeout"), HasSubstr("kill_grace")));
  EXPECT_TRUE(wait_until([&] { return is_gone(worker); }));
  EXPECT_TRUE(wait_until([&] { return model.workers()[0].state == "ready"; }));
  EXPECT_THAT(values(*model.infer(input(model, {4}))), ElementsAre(8));
}

TEST(MultiprocessBackendTest, ALateCallThatHadNotBegunChangesNothing) {
  const PackageOnDisk package = doubling(R"("sleep_ms": 500, )");
  RuntimeOptions options = in_worker();
  options.ope_options.timeout = milliseconds(800);
  const Neuropod model(package.path(), options);
  std::thread first([&] { EXPECT_THAT(values(*model.infer(input(model, {1}))), ElementsAre(2)); });
  std::this_thread::sleep_for(milliseconds(50));
  const Error error = error_of([&] { model.infer(input(model, {2})); });
  first.join();
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_EQ(model.stats().worker_deaths, 0u);
}

TEST(MultiprocessBackendTest, AStatefulModelsFirstCallAfterARestartSaysThatTheStateIsGone) {
  const PackageOnDisk package(one_input_config(R"("stateful": true,)"),
                              R"({"outputs": {"y": {"op": "running_sum", "input": "x"}}})");
  Neuropod model(package.path(), in_worker());
  model.infer(input(model, {1}));
  EXPECT_THAT(values(*model.infer(input(model, {2}))), ElementsAre(3));
  const pid_t worker = worker_of(model);
  ::kill(worker, SIGKILL);
  ASSERT_TRUE(wait_until(
      [&] { return worker_of(model) != worker && model.workers()[0].state == "ready"; }));
  const Error error = error_of([&] { model.infer(input(model, {2})); });
  EXPECT_EQ(error.code(), ErrorCode::kWorkerDied);
  EXPECT_THAT(error.message(), HasSubstr("state"));
  EXPECT_THAT(values(*model.infer(input(model, {5}))), ElementsAre(5));
  model.reset();
  EXPECT_THAT(values(*model.infer(input(model, {7}))), ElementsAre(7));
}

TEST(MultiprocessBackendTest, AWorkerThatDiesAgainAndAgainIsUnavailableForAWhile) {
  const PackageOnDisk package = failing("exit");
  const Neuropod model(package.path(), in_worker());
  std::set<ErrorCode> codes;
  for (int i = 0; i < 8; ++i)
    codes.insert(error_of([&] { model.infer(input(model, {-1})); }).code());
  EXPECT_THAT(codes, ElementsAre(ErrorCode::kUnavailable, ErrorCode::kWorkerDied));
  EXPECT_TRUE(wait_until([&] { return model.workers()[0].state == "ready"; }));
  EXPECT_THAT(values(*model.infer(input(model, {4}))), ElementsAre(8));
}

TEST(MultiprocessBackendTest, AModelThatForksLeavesNothing) {
  const PackageOnDisk package = failing("fork");
  const size_t before = children();
  {
    const Neuropod model(package.path(), in_worker());
    EXPECT_THAT(values(*model.infer(input(model, {-1}))), ElementsAre(-2));
    EXPECT_THAT(values(*model.infer(input(model, {4}))), ElementsAre(8));
  }
  EXPECT_EQ(children(), before);
}

TEST(MultiprocessBackendTest, ForkedChildrenGetWorkersOfTheirOwn) {
  const PackageOnDisk package = doubling();
  const Neuropod model(package.path(), in_worker());
  const auto inherited = input(model, {1, 2});
  const auto held = model.infer(input(model, std::vector<float>(5000, 3)));
  std::vector<pid_t> pids;
  for (int i = 0; i < 4; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      bool right = values(*held)[4999] == 6;
      for (int call = 0; call < 20 && right; ++call) {
        right = values(*model.infer(inherited)) == std::vector<float>{2, 4} &&
                values(*model.infer(input(model, {float(call)})))[0] == float(2 * call);
      }
      ::_exit(right && model.workers().at(0).host_pid == ::getpid() ? 0 : 1);
    }
    pids.push_back(pid);
  }
  for (int call = 0; call < 200; ++call) {
    ASSERT_THAT(values(*model.infer(input(model, {float(call)}))), ElementsAre(2 * call));
  }
  for (const pid_t pid : pids) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_THAT(values(*held), Each(6));
}

TEST(MultiprocessBackendTest, AThreadThatLoadedMayEnd) {
  const PackageOnDisk package = doubling();
  std::optional<Neuropod> model;
  std::thread([&] { model.emplace(package.path(), in_worker()); }).join();
  const pid_t worker = worker_of(*model);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&] {
      const auto end = Clock::now() + std::chrono::seconds(10);
      while (Clock::now() < end) {
        EXPECT_THAT(values(*model->infer(input(*model, {1}))), ElementsAre(2));
        std::this_thread::sleep_for(milliseconds(5));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(worker_of(*model), worker);
}

TEST(MultiprocessBackendTest, AStoppedWorkerIsNotTakenForDead) {
  const PackageOnDisk package = doubling();
  const Neuropod model(package.path(), in_worker());
  ASSERT_TRUE(stop_process(worker_of(model)));
  std::thread waiting(
      [&] { EXPECT_THAT(values(*model.infer(input(model, {1}))), ElementsAre(2)); });
  std::this_thread::sleep_for(milliseconds(1500));
  EXPECT_EQ(model.workers()[0].state, "stopped");
  ::kill(worker_of(model), SIGCONT);
  waiting.join();
  EXPECT_EQ(model.stats().worker_deaths, 0u);
}

TEST(MultiprocessBackendTest, SeveralWorkersShareTheCalls) {
  const PackageOnDisk package = doubling(R"("sleep_ms": 50, )");
  RuntimeOptions options = in_worker();
  options.ope_options.num_workers = 2;
  const Neuropod model(package.path(), options);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < 4; ++call) model.infer(input(model, {1}));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const WorkerInfo& worker : model.workers()) EXPECT_GE(worker.calls, 4u);
}

TEST(MultiprocessBackendTest, AsynchronousCallsEndAndCanBeWithdrawn) {
  const PackageOnDisk package = doubling(R"("sleep_ms": 100, )");
  const Neuropod model(package.path(), in_worker());
  auto future = model.infer_async(input(model, {3}));
  std::promise<Error> cancelled;
  const AsyncCall second = model.infer_async(
      input(model, {4}), {}, [&](std::unique_ptr<NeuropodValueMap>, std::exception_ptr error) {
        cancelled.set_value(error_of([&] { std::rethrow_exception(error); }));
      });
  EXPECT_TRUE(second.cancel());
  EXPECT_THAT(values(*future.get()), ElementsAre(6));
  EXPECT_EQ(cancelled.get_future().get().code(), ErrorCode::kCancelled);
}

TEST(MultiprocessBackendTest, AnAsynchronousCallThatRunsOrIsOverCannotBeWithdrawn) {
  const PackageOnDisk package = doubling(R"("sleep_ms": 300, )");
  for (const bool use_ope : {false, true}) {
    RuntimeOptions options = in_worker();
    options.use_ope = use_ope;
    const Neuropod model(package.path(), options);
    std::promise<std::unique_ptr<NeuropodValueMap>> ended;
    const AsyncCall call = model.infer_async(
        input(model, {3}), {},
        [&](std::unique_ptr<NeuropodValueMap> outputs, const std::exception_ptr& error) {
          error == nullptr ? ended.set_value(std::move(outputs)) : ended.set_exception(error);
        });
    std::this_thread::sleep_for(milliseconds(100));
    EXPECT_FALSE(call.cancel()) << use_ope;
    EXPECT_THAT(values(*ended.get_future().get()), ElementsAre(6));
    EXPECT_FALSE(call.cancel()) << use_ope;
  }
}

TEST(MultiprocessBackendTest, AWorkerThatBreaksTheStateOfACallIsReplaced) {
  const PackageOnDisk package = failing("hang");
  const Neuropod model(package.path(), in_worker());
  multiprocess::ChannelLayout* const channel = channel_of(worker_of(model));
  ASSERT_NE(channel, nullptr);
  std::thread breaking([channel] {
    std::this_thread::sleep_for(milliseconds(200));
    for (multiprocess::CallSlot& slot : channel->slots) {
      if (slot.state == multiprocess::CallState::kRunning) slot.state = multiprocess::CallState{77};
    }
  });
  const Error error = error_of([&] { model.infer(input(model, {-1})); });
  breaking.join();
  EXPECT_EQ(error.code(), ErrorCode::kWorkerDied);
  EXPECT_THAT(error.message(), HasSubstr("state"));
  EXPECT_TRUE(wait_until([&] { return model.stats().worker_restarts == 1; }));
  EXPECT_THAT(values(*model.infer(input(model, {4}))), ElementsAre(8));
}

TEST(MultiprocessBackendTest, AWorkerThatFillsTheQueueOfCallsIsReplacedAndTheCallRuns) {
  const PackageOnDisk package = failing("hang");
  const Neuropod model(package.path(), in_worker());
  const pid_t worker = worker_of(model);
  multiprocess::ChannelLayout* const channel = channel_of(worker);
  ASSERT_NE(channel, nullptr);
  ASSERT_TRUE(stop_process(worker));
  while (channel->submitted.push(0)) {
  }
  EXPECT_THAT(values(*model.infer(input(model, {4}))), ElementsAre(8));
  EXPECT_NE(worker_of(model), worker);
  EXPECT_EQ(model.stats().worker_deaths, 1u);
}

TEST(MultiprocessBackendTest, WhatTheModelOfAnInterruptedCallKeepsIsNotGivenToOthers) {
  const PackageOnDisk package(one_input_config(),
                              R"({"fail_if_negative": {"input": "x", "action": "sleep"},
          "outputs": {"y": {"op": "previous", "input": "x"}}})");
  RuntimeOptions options = in_worker();
  options.ope_options.kill_grace = milliseconds(2500);
  const Neuropod model(package.path(), options);
  {
    const Clock::time_point begin = Clock::now();
    CallControl control([begin] { return Clock::now() - begin > milliseconds(200); });
    const CallControl::Scope scope(control);
    const Error error = error_of([&] { model.infer(input(model, std::vector<float>(1000, -1))); });
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
    EXPECT_THAT(error.message(), HasSubstr("while it ran"));
  }
  // By now the call is over, and its inputs are free but for what the model has kept.
  std::this_thread::sleep_for(milliseconds(2700));
  EXPECT_THAT(values(*model.infer(input(model, std::vector<float>(1000, 1)))), Each(-1));
  EXPECT_THAT(values(*model.infer(input(model, std::vector<float>(1000, 2)))), Each(1));
  EXPECT_EQ(model.stats().worker_deaths, 0u);
  // What it has let go of is free again.
  model.infer(input(model, std::vector<float>(1000, 3)));
  EXPECT_LE(model.get_tensor_allocator()->stats().live_bytes, 3 * 4096u);
}

TEST(MultiprocessBackendTest, AModelThatCannotBeLoadedAnyMoreIsTriedAgainUntilItCan) {
  const PackageOnDisk package = doubling();
  const Neuropod model(package.path(), in_worker());
  const std::string away = package.path() + ".away";
  std::filesystem::rename(package.path(), away);
  ::kill(worker_of(model), SIGKILL);
  Error error(ErrorCode::kModelError, "");
  ASSERT_TRUE(wait_until([&] {
    error = error_of([&] { model.infer(input(model, {4})); });
    return error.code() == ErrorCode::kUnavailable;
  }));
  EXPECT_THAT(error.message(), AllOf(HasSubstr("starts again"), HasSubstr(package.path())));
  std::filesystem::rename(away, package.path());
  ASSERT_TRUE(wait_until([&] { return model.workers()[0].state == "ready"; }));
  EXPECT_THAT(values(*model.infer(input(model, {4}))), ElementsAre(8));
}

TEST(MultiprocessBackendTest, AForkedChildsFirstCallEndsByItsDeadlineWhileItsWorkerLoads) {
  const PackageOnDisk package = doubling();
  RuntimeOptions options = in_worker();
  options.ope_options.timeout = milliseconds(300);
  const Neuropod model(package.path(), options);
  model.infer(input(model, {1}));
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("NEUROPOD_TEST_FAULT", "before_load:hang", 1);
    const Clock::time_point begin = Clock::now();
    const Error error = error_of([&] { model.infer(input(model, {1})); });
    const bool soon = Clock::now() - begin < std::chrono::seconds(10);
    ::_exit(error.code() == ErrorCode::kTimeout && soon ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(values(*model.infer(input(model, {4}))), ElementsAre(8));
}

TEST(MultiprocessBackendTest, MoreThanTheArenaIsOutOfMemoryAndTheModelStaysUsable) {
  const PackageOnDisk package = doubling();
  RuntimeOptions options = in_worker();
  options.ope_options.memory_limit = uint64_t{256} << 20;
  const Neuropod model(package.path(), options);
  const Error error = error_of([&] { model.allocate_tensor<float>({int64_t{1} << 30}); });
  EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(error.message(), HasSubstr("memory_limit"));
  EXPECT_THAT(values(*model.infer(input(model, {4}))), ElementsAre(8));
}

TEST(MultiprocessBackendTest, AMissingWorkerProgramSaysWhereItWasLookedFor) {
  const PackageOnDisk package = doubling();
  const ScopedEnvironment missing("NEUROPOD_WORKER", "/nonexistent/neuropod-worker");
  const Error error = error_of([&] { const Neuropod model(package.path(), in_worker()); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("NEUROPOD_WORKER"), HasSubstr("/nonexistent")));
}

TEST(MultiprocessBackendTest, AFailedLoadSaysWhatFailsInThisProcessAndLeavesNothing) {
  const PackageOnDisk package(one_input_config(), R"({"outputs": {"y": {"op": "no such"}}})");
  const size_t descriptors = open_descriptors();
  RuntimeOptions here = in_worker();
  here.use_ope = false;
  const Error expected = error_of([&] { const Neuropod model(package.path(), here); });
  const Error error = error_of([&] { const Neuropod model(package.path(), in_worker()); });
  EXPECT_EQ(error.code(), expected.code());
  EXPECT_EQ(error.message(), expected.message());
  EXPECT_EQ(children(), 0u);
  EXPECT_LE(open_descriptors(), descriptors + 2);  // the supervisor's own, once
}

TEST(MultiprocessBackendTest, FaultsAtEachStepOfStartingAreLoadErrors) {
  const PackageOnDisk package = doubling();
  for (const char* point :
       {"start", "connected", "before_adopt", "before_load", "after_load", "before_reply"}) {
    RuntimeOptions options = in_worker();
    options.ope_options.env["NEUROPOD_TEST_FAULT"] = std::string(point) + ":exit";
    const Error dead = error_of([&] { const Neuropod model(package.path(), options); });
    EXPECT_EQ(dead.code(), ErrorCode::kLoadFailed) << point;
    EXPECT_THAT(dead.message(), HasSubstr("exited with code 3")) << point;
    options.ope_options.env["NEUROPOD_TEST_FAULT"] = std::string(point) + ":hang";
    options.ope_options.startup_timeout = milliseconds(300);
    const Error late = error_of([&] { const Neuropod model(package.path(), options); });
    EXPECT_EQ(late.code(), ErrorCode::kTimeout) << point;
    EXPECT_EQ(children(), 0u) << point;
  }
}

TEST(MultiprocessBackendTest, FaultsInEachStateOfACallAreItsDeath) {
  const PackageOnDisk package = doubling();
  for (const char* point : {"taken", "before_infer", "after_infer", "before_finish"}) {
    RuntimeOptions options = in_worker();
    options.ope_options.env["NEUROPOD_TEST_FAULT"] = std::string(point) + ":kill";
    const Neuropod model(package.path(), options);
    EXPECT_EQ(error_of([&] { model.infer(input(model, {1})); }).code(), ErrorCode::kWorkerDied)
        << point;
  }
}

// A worker that runs by itself, as `neuropod-worker --listen` starts it.
class ListeningWorker {
 public:
  explicit ListeningWorker(std::string path) : path_(std::move(path)) { start(); }
  ~ListeningWorker() { end(SIGTERM); }
  ListeningWorker(const ListeningWorker&) = delete;

  void start(const std::string& fault = "") {
    pid_ = ::fork();
    if (pid_ == 0) {
      if (!fault.empty()) ::setenv("NEUROPOD_TEST_FAULT", fault.c_str(), 1);
      ::execl(NEUROPOD_TEST_WORKER, "neuropod-worker", "--listen", path_.c_str(), nullptr);
      ::_exit(127);
    }
    EXPECT_TRUE(wait_until([this] { return std::filesystem::exists(path_); }));
  }
  void end(int signal) {
    if (pid_ == 0) return;
    ::kill(pid_, signal);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  RuntimeOptions options() const {
    RuntimeOptions options = in_worker();
    options.ope_options.control_queue_name = path_;
    return options;
  }
  size_t connections() const {
    size_t count = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/fd")) {
      std::error_code ignored;
      const auto target = std::filesystem::read_symlink(entry.path(), ignored).string();
      count += target.rfind("/memfd:neuropod-channel", 0) == 0;
    }
    return count;
  }

 private:
  const std::string path_;
  pid_t pid_ = 0;
};

TEST(MultiprocessBackendTest, AWorkerThatListensServesSeveralHostsAndModels) {
  const PackageOnDisk package = doubling();
  const PackageOnDisk other_package(
      one_input_config(), R"({"outputs": {"y": {"op": "scale", "input": "x", "by": 3}}})");
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/socket";
  ListeningWorker worker(path);
  const RuntimeOptions options = worker.options();
  {
    const Neuropod one(package.path(), options);
    const Neuropod same(package.path(), options);
    const Neuropod other(other_package.path(), options);
    EXPECT_THAT(values(*one.infer(input(one, {1}))), ElementsAre(2));
    EXPECT_THAT(values(*same.infer(input(same, {2}))), ElementsAre(4));
    EXPECT_THAT(values(*other.infer(input(other, {2}))), ElementsAre(6));
    EXPECT_EQ(worker_of(one), worker.pid());
    EXPECT_EQ(worker.connections(), 3u);
  }
  {
    const Neuropod later(package.path(), options);
    EXPECT_THAT(values(*later.infer(input(later, {3}))), ElementsAre(6));
  }
  EXPECT_TRUE(wait_until([&] { return worker.connections() == 0; }));
  worker.end(SIGTERM);
  EXPECT_FALSE(std::filesystem::exists(path));
  const Error error = error_of([&] { const Neuropod model(package.path(), options); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.message(), HasSubstr("neuropod-worker --listen"));
}

TEST(MultiprocessBackendTest, ALostConnectionToAListeningWorkerIsMadeAgain) {
  const PackageOnDisk package = doubling();
  const TemporaryFolder folder;
  ListeningWorker worker(folder.path() + "/socket");
  const Neuropod model(package.path(), worker.options());
  EXPECT_THAT(values(*model.infer(input(model, {1}))), ElementsAre(2));
  worker.end(SIGKILL);
  Error error(ErrorCode::kModelError, "");
  ASSERT_TRUE(wait_until([&] {
    error = error_of([&] { model.infer(input(model, {1})); });
    return error.code() == ErrorCode::kUnavailable;
  }));
  EXPECT_THAT(error.message(), HasSubstr("socket"));
  worker.start();
  ASSERT_TRUE(wait_until([&] { return model.workers()[0].state == "ready"; }));
  EXPECT_THAT(values(*model.infer(input(model, {2}))), ElementsAre(4));
  EXPECT_EQ(worker_of(model), worker.pid());
}

TEST(MultiprocessBackendTest, AModelThatHangsWhenItIsLoadedKeepsNoOtherHostOfTheWorkerWaiting) {
  const PackageOnDisk package = doubling();
  const PackageOnDisk hanging = doubling(R"("print": "", )");
  const TemporaryFolder folder;
  ListeningWorker worker(folder.path() + "/socket");
  worker.end(SIGTERM);
  worker.start("before_load:hang_once");
  RuntimeOptions options = worker.options();
  options.ope_options.startup_timeout = milliseconds(4000);
  auto late = std::async(std::launch::async, [&] {
    return error_of([&] { const Neuropod model(hanging.path(), options); });
  });
  std::this_thread::sleep_for(milliseconds(300));
  const Neuropod model(package.path(), worker.options());
  EXPECT_EQ(late.wait_for(milliseconds(0)), std::future_status::timeout) << "it still waits";
  EXPECT_THAT(values(*model.infer(input(model, {2}))), ElementsAre(4));
  EXPECT_EQ(late.get().code(), ErrorCode::kTimeout);
}

TEST(MultiprocessBackendTest, AListeningWorkerLeavesAHostThatDiedThoughItsForkedChildLives) {
  const PackageOnDisk package = doubling();
  const TemporaryFolder folder;
  ListeningWorker worker(folder.path() + "/socket");
  std::array<int, 2> report{};
  ASSERT_EQ(::pipe(report.data()), 0);
  const pid_t host = ::fork();
  if (host == 0) {
    const Neuropod model(package.path(), worker.options());
    pid_t child = ::fork();
    if (child == 0) {
      ::sleep(60);
      ::_exit(0);
    }
    [[maybe_unused]] const ssize_t written = ::write(report[1], &child, sizeof child);
    ::pause();
  }
  pid_t child = 0;
  ASSERT_EQ(::read(report[0], &child, sizeof child), ssize_t{sizeof child});
  EXPECT_EQ(worker.connections(), 1u);
  ::kill(host, SIGKILL);
  ::waitpid(host, nullptr, 0);
  EXPECT_FALSE(is_gone(child));
  EXPECT_TRUE(wait_until([&] { return worker.connections() == 0; }));
  ::kill(child, SIGKILL);
  ::close(report[0]);
  ::close(report[1]);
}

TEST(MultiprocessBackendTest, WhatAModelPrintsGoesToTheLogWithItsName) {
  const PackageOnDisk package = doubling(R"("print": "hello", )");
  std::mutex mutex;
  std::vector<std::string> lines;
  set_log_sink([&](const LogLine& line) {
    std::lock_guard lock(mutex);
    lines.emplace_back(line.message);
  });
  {
    const Neuropod model(package.path(), in_worker());
    model.infer(input(model, {1}));
    EXPECT_TRUE(wait_until([&] {
      std::lock_guard lock(mutex);
      return lines.size() >= 2;
    }));
  }
  set_log_sink({});
  std::lock_guard lock(mutex);
  EXPECT_THAT(lines,
              ::testing::Contains(AllOf(HasSubstr("model 'tested'"), HasSubstr("hello (stdout)"))));
  EXPECT_THAT(lines, ::testing::Contains(HasSubstr("hello (stderr)")));
}

TEST(MultiprocessBackendTest, AHundredLoadsLeaveNothing) {
  const PackageOnDisk package = doubling();
  {
    const Neuropod warm(package.path(), in_worker());
  }
  const size_t descriptors = open_descriptors();
  const size_t mappings = shared_mappings();
  const PackageOnDisk broken(one_input_config(), R"({"outputs": {"y": {"op": "no such"}}})");
  const uint64_t memory = private_bytes(::getpid());
  for (int i = 0; i < kMany; ++i) {
    const Neuropod model(package.path(), in_worker());
    if (i % 10 == 0) model.infer(input(model, {1}));
    if (i % 4 == 0) {
      EXPECT_EQ(error_of([&] { const Neuropod never(broken.path(), in_worker()); }).code(),
                ErrorCode::kLoadFailed);
    }
  }
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  EXPECT_LE(private_bytes(::getpid()), memory + (8 << 20));
#endif
  // The supervisor lets go of the last one a moment later.
  EXPECT_TRUE(wait_until(
      [&] { return open_descriptors() <= descriptors && shared_mappings() <= mappings; }));
  EXPECT_EQ(children(), 0u);
}

TEST(MultiprocessBackendTest, AHundredWorkersTakeAtMostFiveDescriptorsAndNoThreadEach) {
  const PackageOnDisk package = doubling();
  {
    const Neuropod warm(package.path(), in_worker());
  }
  const auto threads = [] {
    size_t count = 0;
    for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
      ++count;
    return count;
  };
  const size_t descriptors_before = open_descriptors();
  const size_t threads_before = threads();
  std::vector<Neuropod> models;
  for (int i = 0; i < kMany; ++i) models.emplace_back(package.path(), in_worker());
  EXPECT_LE(open_descriptors(), descriptors_before + 5 * kMany);
  EXPECT_EQ(threads(), threads_before);
  for (const Neuropod& model : models) model.infer(input(model, {1}));
}

}  // namespace
}  // namespace neuropod
