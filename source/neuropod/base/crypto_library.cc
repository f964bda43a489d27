#include "neuropod/base/crypto_library.hh"

#include <openssl/crypto.h>

#include "neuropod/base/error.hh"

namespace neuropod {

void initialize_crypto() {
  if (OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr) != 1) {
    throw_error(ErrorCode::kUnavailable, "libcrypto cannot be started");
  }
}

}  // namespace neuropod
