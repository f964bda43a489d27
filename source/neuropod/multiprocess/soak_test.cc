// Calls a model in a worker very many times, with tensors of many sizes: every answer is right, and
// both sides' memory stays what it was. Usage: worker_soak_test [CALLS [PACKAGE]]; a package has
// y = 2 x; without one, echo is used.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "neuropod/neuropod.hh"
#include "neuropod/testing/package_on_disk.hh"
#include "neuropod/testing/process_probe.hh"

namespace neuropod {
namespace {

constexpr std::array<int64_t, 6> kSizes = {1, 16, 1000, 1500, 40'000, 200'000};
constexpr int kThreads = 2;
constexpr size_t kHeld = 8;  // results that a caller keeps
constexpr uint64_t kMostGrowth = 24 << 20;

// Right if [0] and [last] are twice what went in; the worker writes nothing there later.
bool is_right(const NeuropodValueMap& outputs, float value) {
  const auto* y = outputs.at("y")->as_typed_tensor<float>();
  const float* data = y->get_raw_data_ptr();
  return data[0] == 2 * value && data[y->get_num_elements() - 1] == 2 * value;
}

uint64_t run_calls(const Neuropod& model, uint64_t calls, uint32_t seed) {
  std::mt19937 random(seed);
  std::deque<std::pair<float, std::unique_ptr<NeuropodValueMap>>> held;
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < calls; ++i) {
    // Large ones are rare, as they would take all the time.
    const size_t largest = random() % 50 == 0 ? kSizes.size() : kSizes.size() - 2;
    const auto value = static_cast<float>(random() % 100'000);
    auto x = model.allocate_tensor<float>({kSizes[random() % largest]});
    std::fill_n(x->get_raw_data_ptr(), x->get_num_elements(), value);
    held.emplace_back(value, model.infer({{"x", x}}));
    wrong += !is_right(*held.back().second, value);
    if (held.size() > kHeld) {
      wrong += !is_right(*held.front().second, held.front().first);
      held.pop_front();
    }
  }
  return wrong;
}

struct Memory {
  uint64_t host = 0, worker = 0;
};

Memory memory_of(const Neuropod& model) {
  return {private_bytes(::getpid()), private_bytes(static_cast<pid_t>(model.workers()[0].pid))};
}

int run(uint64_t calls, const std::string& package) {
  RuntimeOptions options;
  options.use_ope = true;
  options.visible_device = Device::CPU;
  const Neuropod model(package, options);
  const auto part = [&](uint64_t count, uint32_t seed) {
    std::array<uint64_t, kThreads> wrong{};
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] { wrong[i] = run_calls(model, count / kThreads, seed + i); });
    }
    for (std::thread& thread : threads) thread.join();
    return wrong[0] + wrong[1];
  };
  uint64_t wrong = part(calls / 10, 1);
  const Memory before = memory_of(model);
  wrong += part(calls - calls / 10, 100);
  const Memory after = memory_of(model);
  std::printf(
      "%lu calls, %lu wrong; private memory after a tenth and at the end: host %.1f and %.1f MiB, "
      "worker %.1f and %.1f MiB\n",
      calls, wrong, double(before.host) / (1 << 20), double(after.host) / (1 << 20),
      double(before.worker) / (1 << 20), double(after.worker) / (1 << 20));
  bool flat =
      after.host <= before.host + kMostGrowth && after.worker <= before.worker + kMostGrowth;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  flat = true;  // what was freed is kept for a while, to find its users
#endif
  const bool same_worker = model.stats().worker_deaths == 0;
  return wrong == 0 && flat && same_worker ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace neuropod

int main(int argc, char** argv) {
  const uint64_t calls = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  if (argc > 2) return neuropod::run(calls, argv[2]);
  const neuropod::PackageOnDisk package(
      neuropod::one_input_config(),
      R"({"outputs": {"y": {"op": "scale", "input": "x", "by": 2}}})");
  return neuropod::run(calls, package.path());
}
