// A plug-in over the pretend framework: tells the framework's version by an error.
#include "neuropod/backends/neuropod_backend.hh"
#include "neuropod/core/generic_tensor.hh"

extern "C" const char* pretend_framework_version();

namespace neuropod {
namespace {

class PretendBackend : public NeuropodBackendWithDefaultAllocator<GenericNeuropodTensor> {
 public:
  using NeuropodBackendWithDefaultAllocator<
      GenericNeuropodTensor>::NeuropodBackendWithDefaultAllocator;

 protected:
  void load_model_internal() override {
    throw_error(ErrorCode::kUnavailable,
                std::string("pretend framework ") + pretend_framework_version());
  }
};

#ifndef NEUROPOD_TEST_REGISTERS_NOTHING
REGISTER_NEUROPOD_BACKEND(PretendBackend, NEUROPOD_BACKEND_PLATFORM,
                          NEUROPOD_BACKEND_FRAMEWORK_VERSION)
#endif

}  // namespace
}  // namespace neuropod
