#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <istream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "neuropod/base/error.hh"
#include "neuropod/base/semver.hh"
#include "neuropod/internal/config_utils.hh"
#include "neuropod/internal/neuropod_loader.hh"
#include "neuropod/package/manifest.hh"
#include "neuropod/package/package_path.hh"

namespace neuropod {
namespace {

using Json = nlohmann::json;

constexpr char kConfigName[] = "config.json";
constexpr int kDeepestNesting = 64;
constexpr size_t kLargestConfig = size_t{16} << 20;
constexpr size_t kLongestQuote = 80;

[[noreturn]] void fail(const std::string& problem) {
  throw_error(ErrorCode::kInvalidPackage, fmt::format("{}: {}", kConfigName, problem));
}

// A value for a message: numbers and texts as they stand, the rest by kind.
std::string quote(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kLongestQuote) text = text.substr(0, kLongestQuote) + "…";
  return text;
}

[[noreturn]] void fail_value(const std::string& key, const std::string& expected,
                             const Json& found) {
  fail(fmt::format("'{}' must be {}, but is {}", key, expected, quote(found)));
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

Json parse(const std::string& text) {
  const auto limit_depth = [](int depth, Json::parse_event_t, const Json&) {
    if (depth > kDeepestNesting) fail("is nested too deeply");
    return true;
  };
  try {
    return Json::parse(text, limit_depth);
  } catch (const Json::exception& exception) {
    fail(fmt::format("is no valid JSON: {}", exception.what()));
  }
}

const Json* find(const Json& object, const char* key) {
  const auto value = object.find(key);
  return value == object.end() ? nullptr : &*value;
}

std::string required_string(const Json& object, const char* key, const std::string& path) {
  const Json* value = find(object, key);
  if (value == nullptr) fail(fmt::format("'{}' is missing; it must be a string", path));
  if (!value->is_string()) fail_value(path, "a string", *value);
  return value->get<std::string>();
}

std::string optional_string(const Json& object, const char* key, std::string otherwise = "") {
  return find(object, key) == nullptr ? std::move(otherwise) : required_string(object, key, key);
}

bool optional_bool(const Json& object, const char* key, const std::string& path) {
  const Json* value = find(object, key);
  if (value == nullptr) return false;
  if (!value->is_boolean()) fail_value(path, "true or false", *value);
  return value->get<bool>();
}

Dimension read_dimension(const Json& value, const std::string& path) {
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
  if (value.is_null()) return Dimension(int64_t{-1});
  if (value.is_string()) return Dimension(value.get<std::string>());
  const bool fits = value.is_number_unsigned() && value.get<uint64_t>() >= 1 &&
                    value.get<uint64_t>() <= uint64_t{kLargest};
  if (!fits) {
    fail_value(
        path,
        fmt::format("an integer from 1 to {}, null (any size) or a string (a symbol)", kLargest),
        value);
  }
  return Dimension(value.get<int64_t>());
}

TensorSpec read_spec(const Json& item, const std::string& path, bool is_input) {
  if (!item.is_object()) fail_value(path, "an object with 'name', 'dtype' and 'shape'", item);
  std::string name = required_string(item, "name", path + ".name");
  const std::string dtype = required_string(item, "dtype", path + ".dtype");
  TensorType type{};
  if (!get_tensor_type_from_name(dtype, &type)) {
    fail_value(path + ".dtype", "one of " + list_dtype_names(), item["dtype"]);
  }
  const Json* shape = find(item, "shape");
  if (shape == nullptr) fail(fmt::format("'{}.shape' is missing; it must be an array", path));
  if (!shape->is_array()) fail_value(path + ".shape", "an array", *shape);
  std::vector<Dimension> dims;
  for (size_t i = 0; i < shape->size(); ++i) {
    dims.push_back(read_dimension((*shape)[i], fmt::format("{}.shape[{}]", path, i)));
  }
  const bool optional = is_input && optional_bool(item, "optional", path + ".optional");
  return TensorSpec(std::move(name), std::move(dims), type, optional);
}

std::vector<TensorSpec> read_specs(const Json& config, const char* key, bool are_inputs) {
  std::vector<TensorSpec> specs;
  const Json* items = find(config, key);
  if (items == nullptr) return specs;
  if (!items->is_array()) fail_value(key, "an array of specs", *items);
  specs.reserve(items->size());
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < items->size(); ++i) {
    const std::string path = fmt::format("{}[{}]", key, i);
    specs.push_back(read_spec((*items)[i], path, are_inputs));
    if (!names.insert(specs.back().name).second) {
      fail(fmt::format("'{}.name' is '{}', which is the name of an earlier tensor of '{}'", path,
                       specs.back().name, key));
    }
  }
  return specs;
}

std::vector<std::string> read_custom_ops(const Json& config) {
  std::vector<std::string> names;
  const Json* items = find(config, "custom_ops");
  if (items == nullptr) return names;
  if (!items->is_array()) fail_value("custom_ops", "an array of file names", *items);
  for (size_t i = 0; i < items->size(); ++i) {
    const Json& item = (*items)[i];
    const bool is_base_name = item.is_string() &&
                              why_unsafe_path(item.get_ref<const std::string&>()).empty() &&
                              item.get_ref<const std::string&>().find('/') == std::string::npos;
    if (!is_base_name) {
      fail_value(fmt::format("custom_ops[{}]", i), "the name of a file in 0/ops, without a folder",
                 item);
    }
    names.push_back(item.get<std::string>());
  }
  return names;
}

std::unordered_map<std::string, DeviceType> read_devices(const Json& config,
                                                         const std::vector<TensorSpec>& inputs) {
  std::unordered_map<std::string, DeviceType> devices;
  for (const TensorSpec& input : inputs) devices.emplace(input.name, DeviceType::GPU);
  const Json* items = find(config, "input_tensor_device");
  if (items == nullptr) return devices;
  if (!items->is_object()) {
    fail_value("input_tensor_device", "an object of input names and devices", *items);
  }
  for (const auto& [name, device] : items->items()) {
    const std::string path = fmt::format("input_tensor_device['{}']", name);
    const auto input = devices.find(name);
    if (input == devices.end()) fail(fmt::format("'{}': there is no input of that name", path));
    if (device == "CPU") {
      input->second = DeviceType::CPU;
    } else if (device != "GPU") {
      fail_value(path, "\"CPU\" or \"GPU\"", device);
    }
  }
  return devices;
}

int read_format_version(const Json& config) {
  const Json* value = find(config, "format_version");
  if (value == nullptr) return 0;
  const bool is_version = value->is_number_unsigned() && value->get<uint64_t>() >= 1;
  if (!is_version) fail_value("format_version", "an integer, at least 1", *value);
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
  std::string range = optional_string(config, kKey, "*");
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
  const Json json = parse(read_text(stream));
  if (!json.is_object()) fail(fmt::format("must hold an object, but holds {}", quote(json)));
  auto config = std::make_unique<ModelConfig>();
  config->format_version = read_format_version(json);
  config->name = required_string(json, "name", "name");
  config->platform = required_string(json, "platform", "platform");
  config->platform_version_semver = read_version_range(json);
  config->inputs = read_specs(json, "input_spec", /*are_inputs=*/true);
  config->outputs = read_specs(json, "output_spec", /*are_inputs=*/false);
  config->custom_ops = read_custom_ops(json);
  config->input_tensor_device = read_devices(json, config->inputs);
  config->stateful = optional_bool(json, "stateful", "stateful");
  config->version = optional_string(json, "version");
  config->description = optional_string(json, "description");
  config->author = optional_string(json, "author");
  config->license = optional_string(json, "license");
  config->created = optional_string(json, "created");
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
