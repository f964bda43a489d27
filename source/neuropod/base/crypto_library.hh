#pragma once

namespace neuropod {

/// Prepares the library's private copy of libcrypto; called before any of its functions. It must
/// not follow the system's openssl.cnf, which may ask it to open provider modules that belong to
/// the system's copy. Error(unavailable) if it can't start.
void initialize_crypto();

}  // namespace neuropod
