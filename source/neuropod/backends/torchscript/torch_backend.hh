#pragma once

#include <memory>
#include <string>
#include <vector>

#include "neuropod/backends/neuropod_backend.hh"
#include "torch_tensor.hh"

namespace neuropod {

/// Runs TorchScript models, `0/data/model.pt` of a package, read straight out of it.
///
/// Calls run without gradients, in torch's inference mode, except for a model that differentiates
/// itself. Any number of threads may call at once.
class TorchNeuropodBackend : public NeuropodBackendWithDefaultAllocator<TorchNeuropodTensor> {
 public:
  TorchNeuropodBackend(const std::string& neuropod_path, const RuntimeOptions& options);
  ~TorchNeuropodBackend() override;

  /// Where the model runs: "cuda:<visible_device>", or the CPU if there is no such GPU.
  c10::Device get_torch_device() const;

 protected:
  void load_model_internal() override;
  std::unique_ptr<NeuropodValueMap> infer_internal(
      const BoundInputs& inputs, const std::vector<std::string>& requested_outputs) override;
  void reset_internal() override;
  bool has_device(NeuropodDevice device) const override;

 private:
  struct Model;
  std::unique_ptr<Model> load() const;

  std::unique_ptr<Model> model_;
};

}  // namespace neuropod
