// What a process of its own costs a model: the same model called directly, through Neuropod here,
// and through Neuropod in a worker, in turns within one run. Prints JSON. Usage: out_of_process
// MODELS
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <c10/core/InferenceMode.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "neuropod/neuropod.hh"

namespace neuropod::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;
using Spin = RuntimeOptions::Spin;
using Call = std::function<void()>;

volatile const void* sink;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double quantile(std::vector<double> values, double share) {
  const auto at = values.begin() + long(share * double(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

double cpu_seconds_here() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return double(time.tv_sec) + 1e-6 * double(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double cpu_seconds_of_workers(const std::vector<const Neuropod*>& models) {
  double sum = 0;
  for (const Neuropod* model : models) {
    for (const WorkerInfo& worker : model->workers()) sum += worker.cpu_seconds;
  }
  return sum;
}

// Each call's time, the three in turns of `calls`.
std::vector<std::vector<double>> in_turns(const std::vector<Call>& what, int rounds, int calls) {
  std::vector<std::vector<double>> times(what.size());
  for (const Call& call : what) {
    for (int i = 0; i < 5 * calls; ++i) call();
  }
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < what.size(); ++i) {
      for (int call = 0; call < calls; ++call) {
        const auto start = Clock::now();
        what[i]();
        times[i].push_back(microseconds_since(start));
      }
    }
  }
  return times;
}

RuntimeOptions in_worker(Spin spin = Spin::kAuto) {
  RuntimeOptions options;
  options.visible_device = Device::CPU;
  options.use_ope = true;
  options.threads = 1;
  options.ope_options.spin = spin;
  return options;
}

RuntimeOptions here() {
  RuntimeOptions options = in_worker();
  options.use_ope = false;
  return options;
}

template <typename T>
NeuropodValueMap inputs_of(const Neuropod& model, const std::vector<std::string>& names,
                           const std::vector<int64_t>& dims) {
  NeuropodValueMap values;
  for (const std::string& name : names)
    values[name] = model.get_tensor_allocator()->full<T>(dims, T(1));
  return values;
}

template <typename T>
void compare(const std::string& models, const std::string& name,
             const std::vector<std::string>& inputs, const std::vector<int64_t>& dims, int rounds,
             int calls) {
  const c10::InferenceMode inference_mode;
  torch::jit::Module module = torch::jit::load(models + "/" + name + ".pt");
  const std::vector<at::Tensor> tensors(inputs.size(),
                                        at::full(dims, 1, c10::CppTypeToScalarType<T>::value));
  const std::string path = models + "/" + name + ".neuropod";
  const Neuropod inside(path, here());
  const Neuropod outside(path, in_worker());
  const NeuropodValueMap values_inside = inputs_of<T>(inside, inputs, dims);
  const NeuropodValueMap values_outside = inputs_of<T>(outside, inputs, dims);
  const auto first = Clock::now();
  outside.infer(values_outside);
  const double first_call = microseconds_since(first);
  const auto times =
      in_turns({[&] {
                  std::vector<c10::IValue> arguments(tensors.begin(), tensors.end());
                  sink = module.forward(std::move(arguments)).toTensor().const_data_ptr();
                },
                [&] {
                  sink = inside.infer(values_inside)
                             ->at("out")
                             ->template as_typed_tensor<T>()
                             ->get_raw_data_ptr();
                },
                [&] {
                  sink = outside.infer(values_outside)
                             ->at("out")
                             ->template as_typed_tensor<T>()
                             ->get_raw_data_ptr();
                }},
               rounds, calls);
  const double direct = quantile(times[0], 0.5);
  std::printf(
      "  \"%s\": {\"direct_us\": %.2f, \"added_here_us\": %.2f, \"added_us\": %.2f, "
      "\"added_p99_us\": %.2f, \"first_call_us\": %.0f},\n",
      name.c_str(), direct, quantile(times[1], 0.5) - direct, quantile(times[2], 0.5) - direct,
      quantile(times[2], 0.99) - quantile(times[0], 0.99), first_call);
}

// `pairs` callers with a worker each, back to back or with `think` between calls.
void spinning(const std::string& models, const char* label, Spin spin, int pairs,
              std::chrono::microseconds think, double seconds, const char* end) {
  std::vector<Neuropod> loaded;
  for (int i = 0; i < pairs; ++i)
    loaded.emplace_back(models + "/addition.neuropod", in_worker(spin));
  std::vector<const Neuropod*> pointers;
  for (const Neuropod& model : loaded) pointers.push_back(&model);
  std::vector<std::vector<double>> times(loaded.size());
  const double host_before = cpu_seconds_here();
  const double workers_before = cpu_seconds_of_workers(pointers);
  const auto start = Clock::now();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < loaded.size(); ++i) {
    threads.emplace_back([&, i] {
      const NeuropodValueMap values = inputs_of<float>(loaded[i], {"x", "y"}, {16});
      while (microseconds_since(start) < seconds * 1e6) {
        if (think.count() > 0) std::this_thread::sleep_for(think);
        const auto begin = Clock::now();
        loaded[i].infer(values);
        times[i].push_back(microseconds_since(begin));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double elapsed = microseconds_since(start) * 1e-6;
  std::vector<double> all;
  for (const auto& one : times) all.insert(all.end(), one.begin(), one.end());
  std::printf(
      "    \"%s\": {\"median_us\": %.2f, \"p99_us\": %.2f, \"calls_per_second\": %.0f, "
      "\"host_cpu_percent\": %.0f, \"worker_cpu_percent\": %.0f}%s\n",
      label, quantile(all, 0.5), quantile(all, 0.99), double(all.size()) / elapsed,
      100 * (cpu_seconds_here() - host_before) / elapsed,
      100 * (cpu_seconds_of_workers(pointers) - workers_before) / elapsed, end);
}

double calls_per_second(const std::string& package, const std::string& input,
                        const std::vector<int64_t>& dims, const RuntimeOptions& options,
                        int threads, double seconds) {
  const Neuropod model(package, options);
  std::atomic<long> calls{0};
  const auto start = Clock::now();
  std::vector<std::thread> callers;
  for (int i = 0; i < threads; ++i) {
    callers.emplace_back([&] {
      const NeuropodValueMap values = inputs_of<float>(model, {input}, dims);
      while (microseconds_since(start) < seconds * 1e6) {
        model.infer(values);
        ++calls;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  return double(calls) / (microseconds_since(start) * 1e-6);
}

// Two callers over one. What two threads reach with the model in this process is what the machine
// gives.
void measure_two_workers(const std::string& mlp, int64_t batch, const char* end) {
  RuntimeOptions two = in_worker();
  two.ope_options.num_workers = 2;
  std::vector<double> workers;
  std::vector<double> threads;
  for (int i = 0; i < 7; ++i) {
    const auto rate = [&](const RuntimeOptions& options, int callers) {
      return calls_per_second(mlp, "x", {batch, 784}, options, callers, 1);
    };
    workers.push_back(rate(two, 2) / rate(in_worker(), 1));
    threads.push_back(rate(here(), 2) / rate(here(), 1));
  }
  std::printf("    \"batch %ld\": {\"times_one\": %.2f, \"two_threads_here_times_one\": %.2f}%s\n",
              long(batch), quantile(workers, 0.5), quantile(threads, 0.5), end);
}

void measure_idle(const std::string& models) {
  const Neuropod model(models + "/addition.neuropod", in_worker());
  model.infer(inputs_of<float>(model, {"x", "y"}, {16}));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const double host = cpu_seconds_here();
  const double worker = cpu_seconds_of_workers({&model});
  std::this_thread::sleep_for(std::chrono::seconds(2));
  std::printf("  \"idle_pair\": {\"host_cpu_percent\": %.2f, \"worker_cpu_percent\": %.2f},\n",
              50 * (cpu_seconds_here() - host), 50 * (cpu_seconds_of_workers({&model}) - worker));
}

// A fresh process that loads the same package, against a worker; and closing.
void measure_start(const std::string& models, const char* self) {
  const std::string package = models + "/mlp.neuropod";
  std::vector<double> fresh, worker, close;
  for (int i = 0; i < 9; ++i) {
    auto start = Clock::now();
    const pid_t pid = fork();
    if (pid == 0) {
      execl(self, self, "--load", package.c_str(), nullptr);
      _exit(127);
    }
    waitpid(pid, nullptr, 0);
    fresh.push_back(microseconds_since(start) / 1000);
    start = Clock::now();
    std::optional<Neuropod> model(std::in_place, package, in_worker());
    worker.push_back(microseconds_since(start) / 1000);
    start = Clock::now();
    model.reset();
    close.push_back(microseconds_since(start) / 1000);
  }
  std::printf(
      "  \"start\": {\"fresh_process_ms\": %.1f, \"worker_ms\": %.1f, \"close_ms\": %.1f},\n",
      quantile(fresh, 0.5), quantile(worker, 0.5), quantile(close, 0.5));
}

// `slow`: a model whose calls take long enough to be killed.
void measure_death(const std::string& slow) {
  std::vector<double> noticed;
  for (int i = 0; i < 20; ++i) {
    const Neuropod model(slow, in_worker());
    const NeuropodValueMap values = inputs_of<float>(model, {"x"}, {16});
    std::atomic<double> failed{0};
    const auto start = Clock::now();
    std::thread caller([&] {
      try {
        model.infer(values);
      } catch (const Error&) {
        failed = microseconds_since(start);
      }
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const double killed = microseconds_since(start);
    kill(pid_t(model.workers()[0].pid), SIGKILL);
    caller.join();
    noticed.push_back((failed - killed) / 1000);
  }
  std::printf("  \"death\": {\"noticed_median_ms\": %.2f, \"noticed_most_ms\": %.2f},\n",
              quantile(noticed, 0.5), quantile(noticed, 1));
}

size_t count_entries(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return size_t(std::distance(begin(entries), end(entries)));
}

void measure_many(const std::string& echo) {
  const size_t descriptors = count_entries("/proc/self/fd");
  const size_t threads = count_entries("/proc/self/task");
  std::vector<Neuropod> models;
  std::vector<const Neuropod*> pointers;
  for (int i = 0; i < 100; ++i) models.emplace_back(echo, in_worker());
  for (const Neuropod& model : models) pointers.push_back(&model);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const double host = cpu_seconds_here();
  const double workers = cpu_seconds_of_workers(pointers);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  const double host_idle = cpu_seconds_here() - host;
  std::printf(
      "  \"hundred_workers\": {\"descriptors_each\": %.2f, \"threads_each\": %.2f, "
      "\"host_cpu_percent\": %.2f, \"workers_cpu_percent\": %.2f}\n",
      double(count_entries("/proc/self/fd") - descriptors) / 100,
      double(count_entries("/proc/self/task") - threads) / 100, 50 * host_idle,
      50 * (cpu_seconds_of_workers(pointers) - workers));
}

void run(const std::string& models, const char* self) {
  at::set_num_threads(1);
  const std::string echo = models + "/echo.neuropod";
  std::vector<std::string> many;
  for (int i = 0; i < 100; ++i) many.push_back("x" + std::to_string(i));
  std::printf("{\n");
  compare<float>(models, "addition", {"x", "y"}, {16}, 100, 200);
  compare<float>(models, "mlp", {"x"}, {32, 784}, 50, 20);
  compare<uint8_t>(models, "image", {"image"}, {1200, 1920, 3}, 100, 100);
  compare<float>(models, "small_inputs", many, {1}, 50, 50);
  std::printf("  \"spinning\": {\n");
  const std::pair<const char*, Spin> spins[] = {
      {"never", Spin::kNever}, {"auto", Spin::kAuto}, {"always", Spin::kAlways}};
  for (const auto& [name, spin] : spins) {
    for (const int pairs : {1, 2}) {
      for (const int think : {0, 200}) {
        const std::string label = std::string(name) + (pairs == 1 ? ", one pair" : ", two pairs") +
                                  (think == 0 ? "" : ", 200 us between calls");
        spinning(models, label.c_str(), spin, pairs, std::chrono::microseconds(think), 1.5,
                 spin == Spin::kAlways && pairs == 2 && think == 200 ? "" : ",");
      }
    }
  }
  std::printf("  },\n");
  std::printf("  \"two_workers\": {\n");
  measure_two_workers(models + "/mlp.neuropod", 32, ",");
  measure_two_workers(models + "/mlp.neuropod", 256, "");
  std::printf("  },\n");
  std::printf("  \"eight_threads\": {\"calls_per_second\": %.0f},\n",
              calls_per_second(echo, "x", {16}, in_worker(), 8, 2));
  measure_idle(models);
  measure_start(models, self);
  measure_death(models + "/slow_echo.neuropod");
  measure_many(echo);
  std::printf("}\n");
}

}  // namespace
}  // namespace neuropod::benchmarks

int main(int argc, char** argv) {
  try {
    if (argc == 3 && std::string(argv[1]) == "--load") {
      const neuropod::Neuropod model(argv[2], neuropod::benchmarks::here());
      _exit(0);
    }
    if (argc != 2) {
      std::fprintf(stderr, "usage: %s MODELS; make_models.py makes MODELS\n", argv[0]);
      return 2;
    }
    neuropod::benchmarks::run(argv[1], argv[0]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
