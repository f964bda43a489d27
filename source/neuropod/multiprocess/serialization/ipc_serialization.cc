#include "neuropod/multiprocess/serialization/ipc_serialization.hh"

#include <chrono>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace neuropod::multiprocess {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;

// JSON holds UTF-8 only, and paths and variables hold any bytes: each byte as the character of its
// number, which is UTF-8 whatever it is.
std::string to_text(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    if (value < 0x80) {
      text += byte;
    } else {
      text += static_cast<char>(0xc0 | value >> 6);
      text += static_cast<char>(0x80 | (value & 0x3f));
    }
  }
  return text;
}

std::string from_text(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto value = static_cast<unsigned char>(text[i]);
    if ((value & 0xfc) == 0xc0 && i + 1 < text.size()) {
      bytes +=
          static_cast<char>((value & 0x03) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3f));
    } else {
      bytes += text[i];
    }
  }
  return bytes;
}

Json to_texts(const std::vector<std::string>& values) {
  Json json = Json::array();
  for (const std::string& value : values) json.push_back(to_text(value));
  return json;
}

// What isn't one would be walked through as an empty or a short one.
void require_array(const Json& json) {
  if (!json.is_array())
    throw_error(ErrorCode::kInvalidArgument, "a list in a control message is none");
}

std::vector<std::string> from_texts(const Json& json) {
  require_array(json);
  std::vector<std::string> values;
  for (const Json& value : json) values.push_back(from_text(value.get<std::string>()));
  return values;
}

Json to_text_map(const std::map<std::string, std::string>& values) {
  Json json = Json::object();
  for (const auto& [key, value] : values) json[to_text(key)] = to_text(value);
  return json;
}

std::map<std::string, std::string> from_text_map(const Json& json) {
  std::map<std::string, std::string> values;
  for (const auto& [key, value] : json.items()) {
    values[from_text(key)] = from_text(value.get<std::string>());
  }
  return values;
}

// The library's own get() casts numbers without looking at them.
template <typename T>
T value_of(const Json& json, const char* key) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    const bool fits = json.is_number_unsigned()
                          ? std::in_range<T>(json.get<uint64_t>())
                          : json.is_number_integer() && std::in_range<T>(json.get<int64_t>());
    if (!fits) {
      throw_error(ErrorCode::kInvalidArgument,
                  fmt::format("'{}' in a control message isn't a number that can be", key));
    }
  }
  return json.get<T>();
}

template <typename T>
void read(const Json& json, const char* key, T* value) {
  const auto found = json.find(key);
  if (found != json.end()) *value = value_of<T>(*found, key);
}

std::string text_of(const Json& json, const char* key) {
  return from_text(json.at(key).get<std::string>());
}

// What a worker needs of ope_options: the rest shapes its process, which the host does.
Json to_json(const RuntimeOptions::OPEOptions& ope) {
  return {{"threads", ope.threads},
          {"memory_limit", ope.memory_limit},
          {"concurrency", ope.concurrency},
          {"spin", static_cast<int>(ope.spin)}};
}

void from_json(const Json& json, RuntimeOptions::OPEOptions* ope) {
  read(json, "threads", &ope->threads);
  read(json, "memory_limit", &ope->memory_limit);
  read(json, "concurrency", &ope->concurrency);
  int spin = static_cast<int>(ope->spin);
  read(json, "spin", &spin);
  if (spin < 0 || spin > static_cast<int>(RuntimeOptions::Spin::kAlways) || ope->concurrency < 1 ||
      ope->concurrency > 1024) {
    throw_error(ErrorCode::kInvalidArgument, "a load request with options out of their range");
  }
  ope->spin = static_cast<RuntimeOptions::Spin>(spin);
}

Json to_json(const RuntimeOptions& options) {
  return {{"use_ope", options.use_ope},
          {"ope_options", to_json(options.ope_options)},
          {"visible_device", options.visible_device},
          {"load_model_at_construction", options.load_model_at_construction},
          {"disable_shape_and_type_checking", options.disable_shape_and_type_checking},
          {"verify_hashes", options.verify_hashes},
          {"threads", options.threads},
          {"strict", options.strict},
          {"collect_metrics", options.collect_metrics},
          {"allow_native_code", options.allow_native_code},
          {"require_signature", to_texts(options.require_signature)}};
}

RuntimeOptions options_of(const Json& json) {
  RuntimeOptions options;
  read(json, "use_ope", &options.use_ope);
  from_json(json.at("ope_options"), &options.ope_options);
  read(json, "visible_device", &options.visible_device);
  read(json, "load_model_at_construction", &options.load_model_at_construction);
  read(json, "disable_shape_and_type_checking", &options.disable_shape_and_type_checking);
  read(json, "verify_hashes", &options.verify_hashes);
  read(json, "threads", &options.threads);
  read(json, "strict", &options.strict);
  read(json, "collect_metrics", &options.collect_metrics);
  read(json, "allow_native_code", &options.allow_native_code);
  // A demand that got lost mustn't be taken for none.
  options.require_signature = from_texts(json.at("require_signature"));
  return options;
}

Json to_json(const LoadRequest& request) {
  Json overrides = Json::array();
  for (const BackendLoadSpec& spec : request.overrides) {
    overrides.push_back({to_text(spec.type), to_text(spec.version), to_text(spec.path)});
  }
  return {{"type", "load"},
          {"protocol", request.protocol},
          {"version", request.version},
          {"abi", request.abi},
          {"host_pid", request.host_pid},
          {"path", to_text(request.path)},
          {"overrides", std::move(overrides)},
          {"options", to_json(request.options)},
          {"module_folders", to_text_map(request.module_folders)}};
}

LoadRequest load_request(const Json& json) {
  LoadRequest request;
  request.protocol = value_of<uint32_t>(json.at("protocol"), "protocol");
  read(json, "version", &request.version);
  read(json, "abi", &request.abi);
  if (request.protocol != kProtocolVersion) return request;
  read(json, "host_pid", &request.host_pid);
  request.path = text_of(json, "path");
  require_array(json.at("overrides"));
  for (const Json& spec : json.at("overrides")) {
    const std::vector<std::string> parts = from_texts(spec);
    if (parts.size() != 3) {
      throw_error(ErrorCode::kInvalidArgument, "a load request with an override that isn't one");
    }
    request.overrides.push_back({parts[0], parts[1], parts[2]});
  }
  request.options = options_of(json.at("options"));
  request.module_folders = from_text_map(json.at("module_folders"));
  return request;
}

Json to_json(const LoadReply& reply) {
  return {{"type", "loaded"},
          {"version", reply.version},
          {"worker_pid", reply.worker_pid},
          {"inputs_with_defaults", to_texts(reply.inputs_with_defaults)}};
}

LoadReply load_reply(const Json& json) {
  LoadReply reply;
  read(json, "version", &reply.version);
  read(json, "worker_pid", &reply.worker_pid);
  reply.inputs_with_defaults = from_texts(json.at("inputs_with_defaults"));
  return reply;
}

Json to_json(const LoadFailure& failure) {
  return {{"type", "failed"},
          {"code", static_cast<int>(failure.code)},
          {"message", to_text(failure.message)}};
}

LoadFailure load_failure(const Json& json) {
  LoadFailure failure;
  const int code = value_of<int>(json.at("code"), "code");
  if (code >= 0 && code <= static_cast<int>(ErrorCode::kCancelled)) {
    failure.code = static_cast<ErrorCode>(code);
  }
  failure.message = text_of(json, "message");
  return failure;
}

Json to_json(const VersionRefusal& refusal) {
  return {{"type", "refused"},
          {"protocol", refusal.protocol},
          {"version", refusal.version},
          {"abi", refusal.abi}};
}

VersionRefusal version_refusal(const Json& json) {
  VersionRefusal refusal;
  read(json, "protocol", &refusal.protocol);
  read(json, "version", &refusal.version);
  read(json, "abi", &refusal.abi);
  return refusal;
}

Json to_json(const TrimRequest&) { return {{"type", "trim"}}; }
Json to_json(const ShutdownRequest&) { return {{"type", "shutdown"}}; }

ControlMessage message_of(const Json& json) {
  const auto type = json.at("type").get<std::string>();
  if (type == "load") return load_request(json);
  if (type == "loaded") return load_reply(json);
  if (type == "failed") return load_failure(json);
  if (type == "refused") return version_refusal(json);
  if (type == "trim") return TrimRequest{};
  if (type == "shutdown") return ShutdownRequest{};
  throw_error(ErrorCode::kInvalidArgument,
              fmt::format("a control message of the unknown type '{:.40}'", type));
}

}  // namespace

std::string serialize(const ControlMessage& message) {
  return std::visit([](const auto& alternative) { return to_json(alternative); }, message).dump();
}

ControlMessage deserialize(std::string_view text) {
  try {
    return message_of(Json::parse(text));
  } catch (const Json::exception& exception) {
    throw_error(ErrorCode::kInvalidArgument,
                fmt::format("a broken control message ({:.120}): {:.60}", exception.what(),
                            Json(std::string(text.substr(0, 60)))
                                .dump(-1, ' ', true, Json::error_handler_t::replace)));
  }
}

}  // namespace neuropod::multiprocess
