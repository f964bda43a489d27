#include "neuropod/version.hh"

namespace neuropod {

const char* library_version() noexcept { return NEUROPOD_VERSION; }

}  // namespace neuropod
