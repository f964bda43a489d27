#include "memory_use.hh"

#include <ATen/ops/full.h>
#include <c10/core/InferenceMode.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "neuropod/neuropod.hh"

namespace neuropod::benchmarks {
namespace {

const std::vector<int64_t> kImageShape = {1200, 1920, 3};

long long peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024LL;
}

long long resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  long long pages = 0;
  statm >> pages >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

long long run_directly(const std::string& models) {
  const c10::InferenceMode inference_mode;
  torch::jit::Module module = torch::jit::load(models + "/invert.pt");
  std::vector<at::Tensor> kept;
  const auto infer = [&](int value) {
    at::Tensor image = at::full(kImageShape, value, at::kByte);
    kept.push_back(module.forward({image}).toTensor());
    kept.push_back(std::move(image));
  };
  const long long before = resident_bytes();
  for (int i = 0; i < kImages; ++i) infer(i);
  return peak_bytes() - before;
}

long long run_neuropod(const std::string& models) {
  const Neuropod model(models + "/invert.neuropod");
  std::vector<std::shared_ptr<NeuropodValue>> kept;
  const auto infer = [&](int value) {
    auto image = model.get_tensor_allocator()->full<uint8_t>(kImageShape, uint8_t(value));
    kept.push_back(model.infer({{"image", image}})->at("out"));
    kept.push_back(std::move(image));
  };
  const long long before = resident_bytes();
  for (int i = 0; i < kImages; ++i) infer(i);
  return peak_bytes() - before;
}

}  // namespace

// In a process of its own, because the kernel never lowers a process's peak.
long long measure_peak_memory(const std::string& models, bool through_neuropod) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = fork();
  if (child == 0) {
    const long long result = through_neuropod ? run_neuropod(models) : run_directly(models);
    const bool written = write(ends[1], &result, sizeof(result)) == ssize_t(sizeof(result));
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  long long result = 0;
  const bool whole = read(ends[0], &result, sizeof(result)) == ssize_t(sizeof(result));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!whole || status != 0) throw std::runtime_error("the child that measures memory failed");
  return result;
}

}  // namespace neuropod::benchmarks
