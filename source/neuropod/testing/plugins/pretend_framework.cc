// A "framework": a shared library whose content depends on its version.
#include "neuropod/base/visibility.hh"

extern "C" NEUROPOD_EXPORT const char* pretend_framework_version() {
  return NEUROPOD_TEST_FRAMEWORK_VERSION;
}
