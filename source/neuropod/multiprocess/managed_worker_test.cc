// A worker as its host sees it. Most of these workers are threads of this test that listen at a
// socket and say what no real worker would.
#include "neuropod/multiprocess/managed_worker.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "neuropod/base/temporary_folder.hh"
#include "neuropod/multiprocess/control_socket.hh"
#include "neuropod/multiprocess/worker_process.hh"
#include "neuropod/testing/package_on_disk.hh"
#include "neuropod/testing/process_probe.hh"
#include "neuropod/testing/wait_until.hh"
#include "neuropod/version.hh"

namespace neuropod::multiprocess {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using State = ManagedWorker::State;

WorkerSpec spec_of(const std::string& path) {
  WorkerSpec spec;
  spec.model = "m";
  spec.platform = "echo";
  spec.load.version = std::string(NEUROPOD_VERSION);
  spec.load.abi = std::string(NEUROPOD_ABI_VERSION);
  spec.load.host_pid = ::getpid();
  spec.load.path = path;
  spec.load.options.visible_device = Device::CPU;
  spec.options.visible_device = Device::CPU;
  spec.input_arena = Arena::create("test", 1 << 20);
  return spec;
}

// Answers each host's first message with `answers`, then closes the connection if told to.
class TalkingWorker {
 public:
  TalkingWorker(const std::string& path, std::vector<std::string> answers, bool closes)
      : listening_(path), thread_([this, answers = std::move(answers), closes] {
          std::vector<ControlSocket> open;
          while (!stop_) {
            pollfd waiting{listening_.descriptor(), POLLIN, 0};
            if (::poll(&waiting, 1, 20) <= 0) continue;
            ControlSocket host = listening_.accept();
            if (!host.receive()) continue;
            ++hosts_;
            for (const std::string& answer : answers) host.send(answer);
            if (!closes) open.push_back(std::move(host));
          }
        }) {}
  ~TalkingWorker() {
    stop_ = true;
    thread_.join();
  }
  int hosts() const { return hosts_; }

 private:
  ListeningSocket listening_;
  std::atomic<bool> stop_{false};
  std::atomic<int> hosts_{0};
  std::thread thread_;
};

// What a host is left with that joins a worker which says `answers`.
Error problem_with(std::vector<std::string> answers, bool closes = false,
                   milliseconds startup = milliseconds(20'000)) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/socket";
  const TalkingWorker talking(path, std::move(answers), closes);
  WorkerSpec spec = spec_of("/package");
  spec.options.ope_options.control_queue_name = path;
  spec.options.ope_options.startup_timeout = startup;
  ManagedWorker worker(spec, [] {});
  worker.start();
  EXPECT_TRUE(wait_until([&] { return worker.state() == State::kFailed; }));
  EXPECT_EQ(worker.current(), nullptr);
  const Error problem = worker.problem();
  worker.stop();
  EXPECT_EQ(worker.state(), State::kStopped);
  return problem;
}

TEST(ManagedWorkerTest, AWorkerOfAnotherVersionIsRefusedWithBothVersions) {
  const Error problem = problem_with({serialize(VersionRefusal{7, "9.8.7", "42"})});
  EXPECT_EQ(problem.code(), ErrorCode::kVersionConflict);
  EXPECT_THAT(problem.message(),
              AllOf(HasSubstr("9.8.7"), HasSubstr("protocol 7"), HasSubstr("ABI 42"),
                    HasSubstr(NEUROPOD_VERSION), HasSubstr("/socket")));
}

TEST(ManagedWorkerTest, WhatTheWorkerSaysBeforeItEndsIsTheReason) {
  const Error problem =
      problem_with({serialize(LoadFailure{ErrorCode::kInvalidPackage, "no such thing"})}, true);
  EXPECT_EQ(problem.code(), ErrorCode::kInvalidPackage);
  EXPECT_EQ(problem.message(), "no such thing");
}

TEST(ManagedWorkerTest, NonsenseIsQuoted) {
  for (const std::string& nonsense :
       {std::string("{\"type\": \"no such\"}"), std::string("\x01\x02\xff"),
        serialize(ShutdownRequest{}), serialize(TrimRequest{})}) {
    const Error problem = problem_with({nonsense});
    EXPECT_EQ(problem.code(), ErrorCode::kUnavailable) << nonsense;
    EXPECT_THAT(problem.message(), HasSubstr("worker")) << nonsense;
  }
}

TEST(ManagedWorkerTest, AWorkerThatNeverAnswersIsLate) {
  const Error problem = problem_with({}, false, milliseconds(200));
  EXPECT_EQ(problem.code(), ErrorCode::kTimeout);
  EXPECT_THAT(problem.message(), HasSubstr("startup_timeout"));
}

TEST(ManagedWorkerTest, AWorkerThatAlwaysHangsUpIsGivenUp) {
  const Error problem = problem_with({}, true);
  EXPECT_EQ(problem.code(), ErrorCode::kLoadFailed);
  EXPECT_THAT(problem.message(), AllOf(HasSubstr("five times"), HasSubstr("closed")));
}

TEST(ManagedWorkerTest, SaysOfAReadyWorkerWhatItIs) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/socket";
  const TalkingWorker talking(path, {serialize(LoadReply{"v", 1, {}})}, false);
  WorkerSpec spec = spec_of("/package");
  spec.options.ope_options.control_queue_name = path;
  ManagedWorker worker(spec, [] {});
  worker.start();
  ASSERT_TRUE(wait_until([&] { return worker.state() == State::kReady; }));
  const WorkerInfo info = worker.info();
  EXPECT_EQ(info.model, "m");
  EXPECT_EQ(info.platform, "echo");
  EXPECT_EQ(info.package, "/package");
  EXPECT_EQ(info.pid, ::getpid());
  EXPECT_EQ(info.state, "ready");
}

// The real program.
class RealWorkerTest : public ::testing::Test {
 protected:
  RealWorkerTest()
      : package_(one_input_config(),
                 R"({"outputs": {"y": {"op": "scale", "input": "x", "by": 2}}})"),
        program_("NEUROPOD_WORKER", NEUROPOD_TEST_WORKER) {}
  ~RealWorkerTest() override { without_pidfds = false; }

  PackageOnDisk package_;
  ScopedEnvironment program_;
};

TEST_F(RealWorkerTest, WithoutPidfdsDeathsAreNoticedAllTheSame) {
  without_pidfds = true;
  ManagedWorker worker(spec_of(package_.path()), [] {});
  worker.start();
  ASSERT_TRUE(wait_until([&] { return worker.state() == State::kReady; }));
  const auto first = worker.current();
  ::kill(first->pid, SIGKILL);
  ASSERT_TRUE(wait_until([&] { return first->channel->lost(); }));
  EXPECT_THAT(first->cause, HasSubstr("SIGKILL"));
  ASSERT_TRUE(wait_until([&] { return worker.restarts() == 1; }));
  const pid_t second = worker.current()->pid;
  worker.stop();
  EXPECT_NE(::kill(second, 0), 0);
}

TEST_F(RealWorkerTest, AWorkerThatCannotHearThatItIsToEndIsKilled) {
  ManagedWorker worker(spec_of(package_.path()), [] {});
  worker.start();
  ASSERT_TRUE(wait_until([&] { return worker.state() == State::kReady; }));
  const pid_t pid = worker.current()->pid;
  ASSERT_TRUE(stop_process(pid));
  worker.stop();
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST_F(RealWorkerTest, WithoutADescriptorLeftNothingStartsAndLaterItDoes) {
  const WorkerSpec spec = spec_of(package_.path());
  {
    ManagedWorker warm(spec, [] {});  // the supervisor's own descriptors
    warm.start();
    ASSERT_TRUE(wait_until([&] { return warm.state() == State::kReady; }));
  }
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::dup(0);
  ::close(next);
  for (int spare = 0; spare < 8; ++spare) {
    const rlimit scarce{static_cast<rlim_t>(next + spare), before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &scarce), 0);
    ManagedWorker worker(spec, [] {});
    worker.start();
    const bool settled = wait_until(
        [&] { return worker.state() == State::kFailed || worker.state() == State::kReady; });
    const bool failed = worker.state() == State::kFailed;
    const Error problem = worker.problem();
    worker.stop();
    ::setrlimit(RLIMIT_NOFILE, &before);
    ASSERT_TRUE(settled) << spare;
    if (spare < 3) {
      ASSERT_TRUE(failed) << spare;
      EXPECT_EQ(problem.code(), ErrorCode::kUnavailable) << problem.message();
      EXPECT_THAT(problem.message(), HasSubstr("ulimit -n")) << spare;
    }
    const int now = ::dup(0);
    ::close(now);
    EXPECT_EQ(now, next) << "what was opened is closed, " << spare;
  }
  ManagedWorker worker(spec, [] {});
  worker.start();
  EXPECT_TRUE(wait_until([&] { return worker.state() == State::kReady; }));
}

}  // namespace
}  // namespace neuropod::multiprocess
