// Kills workers at random moments under eight threads: every call ends, in a right answer or a
// clear error, and nothing is left. Then kills hosts at random moments, while they load or call,
// some of which have forked a child that lives on: their workers end. Usage: worker_kill_test
// [ROUNDS [PACKAGE]]; a package has y = 2 x; without one, echo is used.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "neuropod/neuropod.hh"
#include "neuropod/testing/package_on_disk.hh"
#include "neuropod/testing/process_probe.hh"

namespace neuropod {
namespace {

using std::chrono::milliseconds;

struct Left {
  size_t descriptors = 0;
  size_t mappings = 0;
  size_t children = 0;
  bool operator==(const Left& other) const {
    return descriptors == other.descriptors && mappings == other.mappings &&
           children == other.children;
  }
};

Left what_is_there() {
  // The supervisor lets go of what it was told to a moment later.
  std::this_thread::sleep_for(milliseconds(200));
  return {open_descriptors(), shared_mappings(), children()};
}

struct Counts {
  std::atomic<uint64_t> right{0};
  std::atomic<uint64_t> died{0};
  std::atomic<uint64_t> unavailable{0};
  std::atomic<uint64_t> wrong{0};
};

// Calls until `stop`; the answer must be twice the input.
void call(const Neuropod& model, float value, const std::atomic<bool>& stop, Counts* counts) {
  auto x = model.allocate_tensor<float>({64});
  while (!stop) {
    std::fill_n(x->get_raw_data_ptr(), 64, value);
    try {
      const auto outputs = model.infer({{"x", x}});
      const std::vector<float> y = outputs->at("y")->as_typed_tensor<float>()->get_data_as_vector();
      (y == std::vector<float>(64, 2 * value) ? counts->right : counts->wrong)++;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kWorkerDied) {
        ++counts->died;
      } else if (error.code() == ErrorCode::kUnavailable) {
        ++counts->unavailable;
        std::this_thread::sleep_for(milliseconds(5));
      } else {
        std::fprintf(stderr, "%s\n", error.what());
        ++counts->wrong;
      }
    }
    value += 1;
  }
}

// One model per round, so that back-off doesn't slow the rounds down.
void round(const std::string& package, std::mt19937* random, Counts* counts) {
  RuntimeOptions options;
  options.use_ope = true;
  options.visible_device = Device::CPU;
  options.ope_options.concurrency = 1 + int((*random)() % 2);
  const Neuropod model(package, options);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] { call(model, float(100 * i), stop, counts); });
  }
  for (int kill = 0; kill < 2; ++kill) {
    std::this_thread::sleep_for(std::chrono::microseconds((*random)() % 4000));
    const auto pid = static_cast<pid_t>(model.workers()[0].pid);
    if (pid > 0) ::kill(pid, SIGKILL);
  }
  std::this_thread::sleep_for(std::chrono::microseconds((*random)() % 4000));
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

// What a host does until it is killed.
[[noreturn]] void be_a_host(const std::string& package, bool forks) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // when this test is killed
  RuntimeOptions options;
  options.use_ope = true;
  options.visible_device = Device::CPU;
  options.ope_options.num_workers = 2;
  const Neuropod model(package, options);
  if (forks && ::fork() == 0) {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    ::_exit(0);
  }
  Counts counts;
  const std::atomic<bool> never{false};
  std::thread other([&] { call(model, 1, never, &counts); });
  call(model, 2, never, &counts);
  ::_exit(1);
}

// How long a killed host's workers lived on, in milliseconds.
double host_round(const std::string& package, std::mt19937* random) {
  const bool forks = (*random)() % 2 == 0;
  const pid_t host = ::fork();
  if (host == 0) be_a_host(package, forks);
  std::this_thread::sleep_for(std::chrono::microseconds((*random)() % 60'000));
  ::kill(host, SIGKILL);
  ::waitpid(host, nullptr, 0);
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
        .count();
  };
  while (!workers_of(host).empty() && elapsed() < 10'000) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  return elapsed();
}

int kill_hosts(int rounds, const std::vector<std::string>& packages) {
  std::mt19937 random(1012);
  double longest = 0;
  for (int i = 0; i < rounds; ++i) {
    longest = std::max(longest, host_round(packages[size_t(i) % packages.size()], &random));
  }
  std::printf("%d hosts killed: the last of their workers was gone after at most %.1f ms\n", rounds,
              longest);
  return longest < 10'000 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int kill_workers(int rounds, const std::vector<std::string>& packages) {
  std::mt19937 random(2026);
  Counts counts;
  {
    Counts warm;
    round(packages[0], &random, &warm);
  }
  const Left before = what_is_there();
  for (int i = 0; i < rounds; ++i) {
    round(packages[size_t(i) % packages.size()], &random, &counts);
  }
  const Left after = what_is_there();
  std::printf(
      "%d rounds: %lu right, %lu worker_died, %lu unavailable, %lu wrong; descriptors %zu -> %zu, "
      "mappings %zu -> %zu, children %zu -> %zu\n",
      rounds, counts.right.load(), counts.died.load(), counts.unavailable.load(),
      counts.wrong.load(), before.descriptors, after.descriptors, before.mappings, after.mappings,
      before.children, after.children);
  return counts.wrong == 0 && counts.right > 0 && before == after ? EXIT_SUCCESS : EXIT_FAILURE;
}

int run(int rounds, const std::vector<std::string>& packages) {
  set_log_level(LogLevel::kError);
  const int hosts = kill_hosts(std::max(rounds / 3, 1), packages);  // forks: before any thread
  const int workers = kill_workers(rounds, packages);
  return hosts == EXIT_SUCCESS ? workers : hosts;
}

}  // namespace
}  // namespace neuropod

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 100;
  if (argc > 2) return neuropod::run(rounds, {argv[2]});
  const std::string config = neuropod::one_input_config();
  const std::string outputs = R"("outputs": {"y": {"op": "scale", "input": "x", "by": 2}}})";
  const neuropod::PackageOnDisk quick(config, "{" + outputs);
  const neuropod::PackageOnDisk slow(config, R"({"sleep_ms": 1, )" + outputs);
  return neuropod::run(rounds, {quick.path(), slow.path()});
}
