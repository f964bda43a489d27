#pragma once

#include <memory>
#include <string>
#include <vector>

#include "neuropod/backends/neuropod_backend.hh"
#include "neuropod/internal/backend_registration.hh"

namespace neuropod {

/// A model that lives in worker processes: checks each call here, hands it to a worker through
/// shared memory, and reads the result in place. docs/out_of_process.md follows a tensor there and
/// back.
///
/// **Ownership**: results may outlive it and its workers.
/// **Errors**: besides those of the model itself, worker_died (with signal or exit code and the
/// last lines it printed), timeout, cancelled, unavailable (during back-off).
/// **Thread safety**: as NeuropodBackend. A forked child gets workers of its own on first use.
class MultiprocessNeuropodBackend : public NeuropodBackend {
 public:
  /// Checks `options.ope_options`; Error(invalid_argument) names the one that can't be. Starts
  /// nothing.
  MultiprocessNeuropodBackend(const std::string& neuropod_path,
                              const std::vector<BackendLoadSpec>& overrides,
                              const RuntimeOptions& options);
  /// Ends the workers.
  ~MultiprocessNeuropodBackend() override;

  std::shared_ptr<NeuropodTensorAllocator> get_tensor_allocator() override;
  std::vector<WorkerInfo> workers() const override;
  int concurrency() const override;

 protected:
  /// Starts the workers and waits until each has loaded the model.
  void load_model_internal() override;
  std::unique_ptr<NeuropodValueMap> infer_internal(
      const BoundInputs& inputs, const std::vector<std::string>& requested_outputs) override;
  void reset_internal() override;
  bool takes_turns() const override { return true; }
  std::function<void(ModelStats*)> worker_stats() const override;

 private:
  struct Rep;
  std::shared_ptr<Rep> rep_;
};

}  // namespace neuropod
