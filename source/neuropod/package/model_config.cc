#include <fmt/format.h>

#include <cstdint>
#include <istream>
#include <utility>

#include "neuropod/base/error.hh"
#include "neuropod/base/semver.hh"
#include "neuropod/internal/config_utils.hh"
#include "neuropod/internal/neuropod_loader.hh"
#include "neuropod/package/json/key_reader.hh"
#include "neuropod/package/manifest.hh"
#include "neuropod/package/package_path.hh"

namespace neuropod {
namespace {

using Json = KeyReader::Json;

constexpr char kConfigName[] = "config.json";
constexpr size_t kLargestConfig = size_t{16} << 20;

[[noreturn]] void fail(const std::string& problem) {
  throw_error(ErrorCode::kInvalidPackage, fmt::format("{}: {}", kConfigName, problem));
}

const KeyReader& keys() {
  static const auto* const reader =
      new KeyReader([](const std::string&, const std::string& problem) { fail(problem); },
                    KeyReader::Unknown::kIgnored);
  return *reader;
}

// Reads past the stream's own calls, which would keep back the reason why its buffer fails.
std::string read_text(std::istream& stream) {
  if (!stream) fail("can't be read: its stream has failed");
  std::string text;
  char chunk[4096];
  while (const std::streamsize got = stream.rdbuf()->sgetn(chunk, sizeof(chunk))) {
    text.append(chunk, static_cast<size_t>(got));
    if (text.size() > kLargestConfig) fail("is larger than 16 MiB");
  }
  return text;
}

std::vector<std::string> read_custom_ops(const Json& config) {
  std::vector<std::string> names;
  const Json* items = KeyReader::find(config, "custom_ops");
  if (items == nullptr) return names;
  if (!items->is_array()) keys().fail_value("custom_ops", "an array of file names", *items);
  for (size_t i = 0; i < items->size(); ++i) {
    const Json& item = (*items)[i];
    const bool is_base_name = item.is_string() &&
                              why_unsafe_path(item.get_ref<const std::string&>()).empty() &&
                              item.get_ref<const std::string&>().find('/') == std::string::npos;
    if (!is_base_name) {
      keys().fail_value(fmt::format("custom_ops[{}]", i),
                        "the name of a file in 0/ops, without a folder", item);
    }
    names.push_back(item.get<std::string>());
  }
  return names;
}

std::unordered_map<std::string, DeviceType> read_devices(const Json& config,
                                                         const std::vector<TensorSpec>& inputs) {
  std::unordered_map<std::string, DeviceType> devices;
  for (const TensorSpec& input : inputs) devices.emplace(input.name, DeviceType::GPU);
  const Json* items = KeyReader::find(config, "input_tensor_device");
  if (items == nullptr) return devices;
  if (!items->is_object()) {
    keys().fail_value("input_tensor_device", "an object of input names and devices", *items);
  }
  for (const auto& [name, device] : items->items()) {
    const std::string path = fmt::format("input_tensor_device['{}']", name);
    const auto input = devices.find(name);
    if (input == devices.end()) fail(fmt::format("'{}': there is no input of that name", path));
    if (device == "CPU") {
      input->second = DeviceType::CPU;
    } else if (device != "GPU") {
      keys().fail_value(path, "\"CPU\" or \"GPU\"", device);
    }
  }
  return devices;
}

int read_format_version(const Json& config) {
  const Json* value = KeyReader::find(config, "format_version");
  if (value == nullptr) return 0;
  const bool is_version = value->is_number_unsigned() && value->get<uint64_t>() >= 1;
  if (!is_version) keys().fail_value("format_version", "an integer, at least 1", *value);
  if (value->get<uint64_t>() > kNewestFormatVersion) {
    fail(
        fmt::format("'format_version' is {}, but this Neuropod reads packages up to version {}; "
                    "install a later one",
                    value->get<uint64_t>(), kNewestFormatVersion));
  }
  return value->get<int>();
}

std::string read_version_range(const Json& config) {
  constexpr char kKey[] = "platform_version_semver";
  std::string range = keys().optional_string(config, kKey, "*");
  try {
    check_version_range(range);
  } catch (const Error& error) {
    fail(fmt::format("'{}': {}", kKey, error.message()));
  }
  return range;
}

}  // namespace

Dimension::Dimension(int64_t value) : value(value) {}
Dimension::Dimension(std::string symbol) : value(-2), symbol(std::move(symbol)) {}
Dimension::Dimension(const char* symbol) : Dimension(std::string(symbol)) {}

bool Dimension::operator==(const Dimension& other) const {
  return value == other.value && symbol == other.symbol;
}

TensorSpec::TensorSpec(std::string name, std::vector<Dimension> dims, TensorType type,
                       bool optional)
    : name(std::move(name)), dims(std::move(dims)), type(type), optional(optional) {}

std::string to_string(const TensorSpec& spec) {
  std::string text = fmt::format("{} (", get_dtype_name(spec.type));
  for (size_t i = 0; i < spec.dims.size(); ++i) {
    const Dimension& dim = spec.dims[i];
    if (i > 0) text += ", ";
    if (dim.value == -2) {
      text += dim.symbol;
    } else {
      text += dim.value == -1 ? "any" : std::to_string(dim.value);
    }
  }
  // One dimension is written as Python writes it, so that it doesn't read as a number in brackets.
  return text + (spec.dims.size() == 1 ? ",)" : ")");
}

std::unique_ptr<ModelConfig> load_model_config(std::istream& stream) {
  const Json json =
      parse_json(read_text(stream), [](size_t, const std::string& problem) { fail(problem); });
  if (!json.is_object()) fail(fmt::format("must hold an object, but holds {}", quote_json(json)));
  auto config = std::make_unique<ModelConfig>();
  config->format_version = read_format_version(json);
  config->name = keys().required_string(json, "name", "name");
  config->platform = keys().required_string(json, "platform", "platform");
  config->platform_version_semver = read_version_range(json);
  config->inputs = keys().specs(json, "input_spec", /*are_inputs=*/true);
  config->outputs = keys().specs(json, "output_spec", /*are_inputs=*/false);
  config->custom_ops = read_custom_ops(json);
  config->input_tensor_device = read_devices(json, config->inputs);
  config->stateful = keys().optional_bool(json, "stateful", "stateful");
  config->version = keys().optional_string(json, "version");
  config->description = keys().optional_string(json, "description");
  config->author = keys().optional_string(json, "author");
  config->license = keys().optional_string(json, "license");
  config->created = keys().optional_string(json, "created");
  return config;
}

std::unique_ptr<ModelConfig> load_model_config(NeuropodLoader& loader) {
  const std::unique_ptr<std::istream> stream = loader.get_istream_for_file(kConfigName);
  if (!stream) {
    throw_error(
        ErrorCode::kInvalidPackage,
        "it has no config.json, which each package has at its top: is it a Neuropod package?");
  }
  std::unique_ptr<ModelConfig> config = load_model_config(*stream);
  if (config->format_version == 0) config->format_version = read_manifest_format_version(loader);
  return config;
}

std::unique_ptr<ModelConfig> load_model_config(const std::string& neuropod_path) {
  const std::unique_ptr<NeuropodLoader> loader = get_loader(neuropod_path);
  try {
    return load_model_config(*loader);
  } catch (const Error& error) {
    throw error.with_context(fmt::format("package '{}'", neuropod_path));
  }
}

}  // namespace neuropod
