#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "neuropod/backends/echo/echo_model.hh"
#include "neuropod/backends/echo/echo_tensor.hh"
#include "neuropod/backends/neuropod_backend.hh"

namespace neuropod::echo {

/// Runs models that need no framework: the reference for the seam, for tests, documentation and
/// benchmarks. `0/data/echo.json` of the package is the model, see EchoModel.
class EchoBackend : public NeuropodBackendWithDefaultAllocator<EchoTensor> {
 public:
  EchoBackend(const std::string& neuropod_path, const RuntimeOptions& options);

 protected:
  void load_model_internal() override;
  std::unique_ptr<NeuropodValueMap> infer_internal(
      const BoundInputs& inputs, const std::vector<std::string>& requested_outputs) override;
  bool has_device(NeuropodDevice device) const override;

 private:
  std::shared_ptr<NeuropodValue> run(const EchoOutput& output, const BoundInputs& inputs);
  std::shared_ptr<NeuropodTensor> running_sum(const EchoOutput& output, NeuropodTensor& input);

  /// Results of computing are on the CPU: brings one to where the model's outputs are.
  std::shared_ptr<NeuropodTensor> on_model_device(std::shared_ptr<NeuropodTensor> tensor);

  EchoModel model_;
  uint64_t seed_ = 0;  // of random outputs
  std::atomic<uint64_t> random_calls_{0};
  // By output.
  std::map<std::string, std::shared_ptr<NeuropodTensor>> running_sums_;
  std::map<std::string, std::shared_ptr<NeuropodValue>> kept_inputs_;
};

}  // namespace neuropod::echo
