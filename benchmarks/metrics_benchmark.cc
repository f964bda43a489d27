// What counting a call costs: the same model (the first of some float32[16] by the echo plug-in),
// once with metrics and once without, in turns; figures are medians of batches. The goal is 0.1 µs.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "neuropod/base/temporary_folder.hh"
#include "neuropod/neuropod.hh"

namespace neuropod {
namespace {

constexpr int kCallsInBatch = 1000;
constexpr int kPairs = 16;

// A package whose output is the first of `inputs` inputs, float32 of the one dimension `dim` as
// config.json writes it.
std::string write_package(const TemporaryFolder& folder, int inputs,
                          const std::string& dim = "16") {
  const std::filesystem::path root = std::filesystem::path(folder.path()) / "package";
  std::filesystem::create_directories(root / "0" / "data");
  std::string specs;
  std::string names;
  for (int i = 0; i < inputs; ++i) {
    const std::string name = "input_" + std::to_string(i);
    specs += std::string(i > 0 ? ", " : "") + R"({"name": ")" + name +
             R"(", "dtype": "float32", "shape": [)" + dim + "]}";
    names += (i > 0 ? ", \"" : "\"") + name + "\"";
  }
  std::ofstream(root / "config.json")
      << R"({"name": "sum", "platform": "echo", "format_version": 1, "input_spec": [)" << specs
      << R"(], "output_spec": [{"name": "out", "dtype": "float32", "shape": [)" << dim << "]}]}";
  std::ofstream(root / "0" / "data" / "echo.json")
      << R"({"outputs": {"out": {"op": "identity", "inputs": [)" << names << "]}}}";
  return root.string();
}

Neuropod load(const std::string& path, bool collect_metrics) {
  RuntimeOptions options;
  options.visible_device = Device::CPU;
  options.collect_metrics = collect_metrics;
  return Neuropod(path, options);
}

double nanoseconds_per_call(const Neuropod& model, const NeuropodValueMap& inputs) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kCallsInBatch; ++i) benchmark::DoNotOptimize(model.infer(inputs));
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / kCallsInBatch;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void counting_a_call(benchmark::State& state) {
  const TemporaryFolder folder;
  const std::string dim = state.range(1) != 0 ? R"("n")" : "16";
  const std::string path = write_package(folder, int(state.range(0)), dim);
  // Where a model's tables happen to lie shifts a call by several per cent: several of each.
  std::vector<Neuropod> without;
  std::vector<Neuropod> with;
  for (int i = 0; i < kPairs; ++i) {
    without.push_back(load(path, false));
    with.push_back(load(path, true));
  }
  NeuropodValueMap inputs;
  for (const TensorSpec& spec : without[0].get_inputs()) {
    inputs[spec.name] = without[0].get_tensor_allocator()->ones<float>({16});
  }
  std::vector<double> off;
  std::vector<double> on;
  for (auto _ : state) {
    const size_t pair = off.size() % kPairs;
    off.push_back(nanoseconds_per_call(without[pair], inputs));
    on.push_back(nanoseconds_per_call(with[pair], inputs));
  }
  std::vector<double> added;
  for (size_t i = 0; i < on.size(); ++i) added.push_back(on[i] - off[i]);
  state.counters["off_ns"] = median(off);
  state.counters["on_ns"] = median(on);
  state.counters["added_ns"] = median(added);
}
BENCHMARK(counting_a_call)
    ->ArgNames({"inputs", "symbolic"})
    ->ArgsProduct({{2, 16, 100}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

// Eight threads on one model: counting mustn't make them wait for each other.
void counting_in_threads(benchmark::State& state) {
  static const TemporaryFolder* const folder = new TemporaryFolder;
  static const std::string path = write_package(*folder, 2);
  static const Neuropod* const with = new Neuropod(load(path, true));
  static const Neuropod* const without = new Neuropod(load(path, false));
  const Neuropod& model = state.range(0) != 0 ? *with : *without;
  NeuropodValueMap inputs;
  for (const TensorSpec& spec : model.get_inputs()) {
    inputs[spec.name] = model.get_tensor_allocator()->ones<float>({16});
  }
  for (auto _ : state) benchmark::DoNotOptimize(model.infer(inputs));
}
BENCHMARK(counting_in_threads)->ArgName("metrics")->Arg(0)->Arg(1)->Threads(8)->UseRealTime();

void asking_for_stats(benchmark::State& state) {
  const TemporaryFolder folder;
  const Neuropod model = load(write_package(folder, 2), true);
  for (auto _ : state) benchmark::DoNotOptimize(model.stats());
}
BENCHMARK(asking_for_stats);

void rendering_a_model(benchmark::State& state) {
  const TemporaryFolder folder;
  const Neuropod model = load(write_package(folder, 2), true);
  for (auto _ : state) benchmark::DoNotOptimize(metrics_text());
}
BENCHMARK(rendering_a_model);

}  // namespace
}  // namespace neuropod

BENCHMARK_MAIN();
