// Kills workers at random moments under eight threads: every call ends, in a right answer or a
// clear error, and nothing is left. Usage: kill_test [ROUNDS [PACKAGE]]; a package has y = 2 x;
// without one, echo is used.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "neuropod/neuropod.hh"
#include "neuropod/testing/package_on_disk.hh"

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
  Left left;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++left.descriptors;
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    left.mappings += line.find("memfd:neuropod") != std::string::npos;
  }
  std::ifstream children("/proc/self/task/" + std::to_string(::getpid()) + "/children");
  for (pid_t pid = 0; children >> pid;) ++left.children;
  return left;
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

int run(int rounds, const std::vector<std::string>& packages) {
  set_log_level(LogLevel::kError);
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
