#include "neuropod/base/pem.hh"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>

#include "neuropod/base/error.hh"
#include "neuropod/base/read_only_file.hh"

namespace neuropod {
namespace {

constexpr uint64_t kLargestFile = uint64_t{64} << 10;
constexpr size_t kLineLength = 64;
constexpr std::string_view kBegin = "-----BEGIN ";
constexpr std::string_view kEnd = "-----END ";
constexpr std::string_view kDashes = "-----";

[[noreturn]] void fail(const std::string& path, const std::string& problem) {
  throw_error(ErrorCode::kInvalidArgument, fmt::format("'{}' {}", path, problem));
}

std::string read_small_file(const std::string& path) {
  const ReadOnlyFile file(path);
  if (file.size() > kLargestFile) {
    fail(path, fmt::format("is no key: it has {} bytes, a key in PEM about 120", file.size()));
  }
  std::string text(file.size(), '\0');
  text.resize(file.read_at(0, text.data(), text.size()));
  return text;
}

}  // namespace

PemBlock::~PemBlock() { wipe(&bytes); }

PemBlock read_pem(const std::string& path) {
  std::string text = read_small_file(path);
  const size_t begin = text.find(kBegin);
  if (begin == std::string::npos) {
    wipe(&text);
    fail(path, "holds no key in PEM (a block that starts with '-----BEGIN …')");
  }
  const size_t label = begin + kBegin.size();
  const size_t label_end = text.find(kDashes, label);
  const size_t end = label_end == std::string::npos ? label_end : text.find(kEnd, label_end);
  if (end == std::string::npos) {
    wipe(&text);
    fail(path, "is cut off: its PEM block has no end");
  }
  PemBlock block;
  block.label = text.substr(label, label_end - label);
  const bool several = text.find(kBegin, end) != std::string::npos;
  std::string base64 = text.substr(label_end + kDashes.size(), end - label_end - kDashes.size());
  base64.erase(std::remove_if(base64.begin(), base64.end(),
                              [](char c) { return c == '\n' || c == '\r' || c == ' '; }),
               base64.end());
  const bool valid = from_base64(base64, &block.bytes);
  wipe(&text);
  wipe(&base64);
  // Blocks with headers, such as "Proc-Type: 4,ENCRYPTED", are told by their label.
  if (!valid) block.bytes.clear();
  if (several) fail(path, "holds more than one key; each belongs into a file of its own");
  return block;
}

std::string write_pem(std::string_view label, std::string_view bytes) {
  std::string base64 = to_base64(bytes);
  std::string pem = fmt::format("-----BEGIN {}-----\n", label);
  for (size_t i = 0; i < base64.size(); i += kLineLength) {
    pem.append(base64, i, kLineLength).push_back('\n');
  }
  wipe(&base64);
  return pem + fmt::format("-----END {}-----\n", label);
}

std::string to_base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(length));
  return text;
}

bool from_base64(std::string_view text, std::string* bytes) {
  if (text.empty() || text.size() % 4 != 0 || text.size() > kLargestFile) return false;
  bytes->assign(text.size() / 4 * 3, '\0');
  const int length = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes->data()),
                                     reinterpret_cast<const unsigned char*>(text.data()),
                                     static_cast<int>(text.size()));
  if (length < 0) return false;
  size_t padding = 0;
  while (padding < 2 && text[text.size() - 1 - padding] == '=') ++padding;
  bytes->resize(static_cast<size_t>(length) - padding);
  // The decoder takes more than the encoder writes: spaces, and bits that mean nothing.
  return to_base64(*bytes) == text;
}

void wipe(std::string* secret) noexcept { OPENSSL_cleanse(secret->data(), secret->size()); }

}  // namespace neuropod
