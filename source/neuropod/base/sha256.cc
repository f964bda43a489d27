#include "neuropod/base/sha256.hh"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <istream>

#include "neuropod/base/crypto_library.hh"
#include "neuropod/base/error.hh"
#include "neuropod/base/read_only_file.hh"

namespace neuropod {
namespace {

// Stays in the second-level cache, so that the hash doesn't wait for memory.
constexpr size_t kChunkBytes = size_t{256} << 10;

void check(int success) {
  if (success != 1) throw_error(ErrorCode::kUnavailable, "libcrypto cannot compute SHA-256");
}

// Lets what a stream's buffer throws pass through the stream while it lives.
class PassingExceptions {
 public:
  explicit PassingExceptions(std::istream& stream) : stream_(stream), mask_(stream.exceptions()) {
    stream_.exceptions(std::ios::badbit);
  }
  ~PassingExceptions() {
    stream_.exceptions(std::ios::goodbit);
    if ((stream_.rdstate() & mask_) == 0) stream_.exceptions(mask_);
  }
  PassingExceptions(const PassingExceptions&) = delete;
  PassingExceptions& operator=(const PassingExceptions&) = delete;

 private:
  std::istream& stream_;
  const std::ios::iostate mask_;
};

}  // namespace

struct Sha256::Context {
  Context() : evp(EVP_MD_CTX_new()) {}
  ~Context() { EVP_MD_CTX_free(evp); }
  EVP_MD_CTX* evp;
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  initialize_crypto();
  check(context_->evp != nullptr);
  check(EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr));
}

Sha256::~Sha256() = default;

void Sha256::update(const void* data, size_t size) {
  check(EVP_DigestUpdate(context_->evp, data, size));
}

std::string Sha256::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  check(EVP_DigestFinal_ex(context_->evp, digest.data(), &size));
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(size_t{2} * size);
  for (unsigned int i = 0; i < size; ++i) {
    hex.push_back(kDigits[digest[i] >> 4]);
    hex.push_back(kDigits[digest[i] & 15]);
  }
  return hex;
}

std::string sha256_of(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes.data(), bytes.size());
  return hash.finish();
}

std::string sha256_of_stream(std::istream& stream) {
  Sha256 hash;
  const auto chunk = std::make_unique_for_overwrite<char[]>(kChunkBytes);
  try {
    const PassingExceptions passing(stream);
    while (stream) {
      stream.read(chunk.get(), kChunkBytes);
      hash.update(chunk.get(), static_cast<size_t>(stream.gcount()));
    }
  } catch (const std::ios::failure&) {
    throw_error(ErrorCode::kCorruptPackage, "the data cannot be read to its end");
  }
  return hash.finish();
}

std::string sha256_of_file(const std::string& path) { return sha256_of_file(ReadOnlyFile(path)); }

std::string sha256_of_file(const ReadOnlyFile& file) {
  return sha256_of_file(file, 0, file.size());
}

std::string sha256_of_file(const ReadOnlyFile& file, uint64_t offset, uint64_t size) {
  Sha256 hash;
  const auto chunk = std::make_unique_for_overwrite<char[]>(kChunkBytes);
  for (uint64_t done = 0; done < size;) {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(kChunkBytes, size - done));
    if (file.read_at(offset + done, chunk.get(), wanted) < wanted) {
      throw_error(ErrorCode::kCorruptPackage,
                  fmt::format("'{}' became shorter while it was read", file.path()));
    }
    hash.update(chunk.get(), wanted);
    done += wanted;
  }
  return hash.finish();
}

}  // namespace neuropod
