#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "neuropod/base/error.hh"
#include "neuropod/internal/backend_registration.hh"
#include "neuropod/options.hh"

namespace neuropod::multiprocess {

/// The messages of the control socket: one JSON object per SOCK_SEQPACKET message,
/// docs/formats/worker_protocol.md. They are rare (load, trim, shut down); calls travel through the
/// channel.

/// Raised with every change of a message that an older peer would misread.
constexpr uint32_t kProtocolVersion = 1;
constexpr size_t kMostMessageBytes = 1 << 20;

/// Host → worker, first: who I am. Comes with three descriptors: the channel, the input arena and
/// the output arena.
struct LoadRequest {
  uint32_t protocol = kProtocolVersion;
  std::string version;  ///< NEUROPOD_VERSION
  std::string abi;      ///< NEUROPOD_ABI_VERSION
  int64_t host_pid = 0;
  std::string path;
  std::vector<BackendLoadSpec> overrides;
  /// As the host got them, but `use_ope` false and `visible_device` 0 or the CPU (the worker sees
  /// only its own GPUs). The worker doesn't check tensors against specs: the host does.
  RuntimeOptions options;
  /// Where the host's Python modules lie, for plug-ins whose libraries lie in one.
  std::map<std::string, std::string> module_folders;
};

/// Worker → host: the model is loaded.
struct LoadReply {
  std::string version;
  int64_t worker_pid = 0;
  std::vector<std::string> inputs_with_defaults;
};

/// Worker → host: it is not.
struct LoadFailure {
  ErrorCode code = ErrorCode::kLoadFailed;
  std::string message;
};

/// Worker → host: we don't understand each other; nothing was done.
struct VersionRefusal {
  uint32_t protocol = kProtocolVersion;
  std::string version;
  std::string abi;
};

/// Host → worker: give kept memory back.
struct TrimRequest {};

/// Host → worker: end. (An end of the socket says the same.)
struct ShutdownRequest {};

using ControlMessage =
    std::variant<LoadRequest, LoadReply, LoadFailure, VersionRefusal, TrimRequest, ShutdownRequest>;

std::string serialize(const ControlMessage& message);

/// Error(invalid_argument) that quotes the beginning of a message that isn't one. Of a LoadRequest
/// of another protocol only `protocol`, `version` and `abi` are read.
ControlMessage deserialize(std::string_view text);

}  // namespace neuropod::multiprocess
