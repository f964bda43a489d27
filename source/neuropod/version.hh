#pragma once

/// The library's version, and its parts for the preprocessor.
#define NEUROPOD_VERSION "1.0.0"
#define NEUROPOD_MAJOR_VERSION 1
#define NEUROPOD_MINOR_VERSION 0
#define NEUROPOD_PATCH_VERSION 0

/// Version of the binary interface between the core and its plug-ins. It changes whenever a plug-in
/// built before the change would misbehave after it: a class layout, a virtual function, the
/// meaning of a call. A plug-in of another ABI is never opened.
#define NEUROPOD_ABI_VERSION "3"

namespace neuropod {

/// The version of the library that is loaded (the macro is the one compiled against).
__attribute__((visibility("default"))) const char* library_version() noexcept;

}  // namespace neuropod
