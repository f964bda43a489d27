// What Neuropod adds to torch: the same model, called directly and through Neuropod, interleaved in
// one run. Prints JSON; times are medians in microseconds. Usage: torchscript_overhead MODELS
// [ROUNDS]
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "memory_use.hh"
#include "neuropod/neuropod.hh"

namespace neuropod::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

// Read from memory in between, so that no call is optimised away.
volatile const void* sink;

template <typename Call>
double microseconds_per_call(int calls, Call&& call) {
  const auto start = Clock::now();
  for (int i = 0; i < calls; ++i) call();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / calls;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Pair {
  std::vector<double> direct;
  std::vector<double> neuropod;

  template <typename Direct, typename ThroughNeuropod>
  static Pair measure(int rounds, int calls, Direct&& direct, ThroughNeuropod&& neuropod) {
    microseconds_per_call(5 * calls, direct);
    microseconds_per_call(5 * calls, neuropod);
    Pair pair;
    for (int i = 0; i < rounds; ++i) {
      pair.direct.push_back(microseconds_per_call(calls, direct));
      pair.neuropod.push_back(microseconds_per_call(calls, neuropod));
    }
    return pair;
  }

  void print(const char* name, const char* end) const {
    std::vector<double> added;
    for (size_t i = 0; i < direct.size(); ++i) added.push_back(neuropod[i] - direct[i]);
    const double direct_median = median(direct);
    const double neuropod_median = median(neuropod);
    std::printf(
        "  \"%s\": {\"direct_us\": %.3f, \"neuropod_us\": %.3f, \"added_us\": %.3f, \"ratio\": "
        "%.3f}%s\n",
        name, direct_median, neuropod_median, median(added), neuropod_median / direct_median, end);
  }
};

template <typename T>
Pair measure_calls(const std::string& models, const std::string& name,
                   const std::vector<std::string>& inputs, const std::vector<int64_t>& dims,
                   int rounds, int calls) {
  const c10::InferenceMode inference_mode;
  torch::jit::Module module = torch::jit::load(models + "/" + name + ".pt");
  const std::vector<at::Tensor> tensors(inputs.size(),
                                        at::full(dims, 1, c10::CppTypeToScalarType<T>::value));
  const Neuropod model(models + "/" + name + ".neuropod");
  NeuropodValueMap values;
  for (const std::string& input : inputs) {
    values[input] = model.get_tensor_allocator()->full<T>(dims, T(1));
  }
  return Pair::measure(
      rounds, calls,
      [&] {
        std::vector<c10::IValue> arguments(tensors.begin(), tensors.end());
        sink = module.forward(std::move(arguments)).toTensor().const_data_ptr();
      },
      [&] { sink = model.infer(values)->at("out")->as_typed_tensor<T>()->get_raw_data_ptr(); });
}

// Inputs made for each call, as most applications do.
Pair measure_fresh_inputs(const std::string& models, int rounds) {
  const c10::InferenceMode inference_mode;
  torch::jit::Module module = torch::jit::load(models + "/addition.pt");
  const Neuropod model(models + "/addition.neuropod");
  return Pair::measure(
      rounds, 200,
      [&] {
        const auto make = [] { return at::empty({16}, at::kFloat).fill_(1); };
        sink = module.forward({make(), make()}).toTensor().const_data_ptr();
      },
      [&] {
        const auto allocator = model.get_tensor_allocator();
        const auto make = [&] { return allocator->full<float>({16}, 1); };
        sink = model.infer({{"x", make()}, {"y", make()}})
                   ->at("out")
                   ->as_typed_tensor<float>()
                   ->get_raw_data_ptr();
      });
}

Pair measure_loading(const std::string& models, bool verify_hashes) {
  RuntimeOptions options;
  options.verify_hashes = verify_hashes;
  return Pair::measure(
      15, 1, [&] { torch::jit::load(models + "/mlp.pt"); },
      [&] { Neuropod(models + "/mlp.neuropod", options); });
}

void run(const std::string& models, int rounds) {
  // Before torch starts threads here, which a fork would lack.
  const long long direct_bytes = measure_peak_memory(models, false);
  const long long neuropod_bytes = measure_peak_memory(models, true);
  at::set_num_threads(1);
  std::vector<std::string> many;
  for (int i = 0; i < 100; ++i) many.push_back("x" + std::to_string(i));

  std::printf("{\n");
  measure_calls<float>(models, "addition", {"x", "y"}, {16}, rounds, 200).print("addition", ",");
  measure_fresh_inputs(models, rounds).print("addition_fresh_inputs", ",");
  measure_calls<uint8_t>(models, "image", {"image"}, {1200, 1920, 3}, rounds, 200)
      .print("image", ",");
  measure_calls<float>(models, "mlp", {"x"}, {32, 784}, rounds / 4, 20).print("mlp", ",");
  measure_calls<float>(models, "small_inputs", many, {1}, rounds, 100).print("small_inputs", ",");
  measure_loading(models, false).print("load", ",");
  measure_loading(models, true).print("load_verified", ",");
  std::printf(
      "  \"images_32\": {\"direct_bytes\": %lld, \"neuropod_bytes\": %lld, \"added_bytes\": "
      "%lld}\n}\n",
      direct_bytes, neuropod_bytes, neuropod_bytes - direct_bytes);
}

}  // namespace
}  // namespace neuropod::benchmarks

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s MODELS [ROUNDS]; make_models.py makes MODELS\n", argv[0]);
    return 2;
  }
  try {
    neuropod::benchmarks::run(argv[1], argc > 2 ? std::max(8, std::atoi(argv[2])) : 200);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
