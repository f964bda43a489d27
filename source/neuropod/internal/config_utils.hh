#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "neuropod/base/visibility.hh"
#include "neuropod/internal/tensor_types.hh"

namespace neuropod {

class NeuropodLoader;

/// One dimension of a spec: a fixed size (> 0), any size (-1), or a symbol (-2), which has one
/// value everywhere in a call.
struct NEUROPOD_EXPORT Dimension {
  Dimension(int64_t value);  // NOLINT: implicit, as specs are written {1200, 1920, 3}
  template <typename Int,
            std::enable_if_t<std::is_integral<Int>::value && !std::is_same<Int, bool>::value &&
                                 !std::is_same<Int, int64_t>::value,
                             int> = 0>
  Dimension(Int size) : Dimension(static_cast<int64_t>(size)) {}  // NOLINT: 0 isn't a null symbol
  Dimension(std::string symbol);                                  // NOLINT
  Dimension(const char* symbol);                                  // NOLINT
  bool operator==(const Dimension& other) const;
  bool operator!=(const Dimension& other) const { return !(*this == other); }

  int64_t value;
  std::string symbol;
};

/// One input or output of a problem API.
struct NEUROPOD_EXPORT TensorSpec {
  TensorSpec(std::string name, std::vector<Dimension> dims, TensorType type, bool optional = false);

  const std::string name;
  const std::vector<Dimension> dims;
  const TensorType type;
  const bool optional;  ///< an input that may be left out
};

/// "float32 (batch, 3, any)", for messages and tables. One dimension is "(batch,)", none "()".
NEUROPOD_EXPORT std::string to_string(const TensorSpec& spec);

/// The device a package asks for, by kind; the application picks the index.
enum class DeviceType { CPU = 0, GPU = 1 };  // NOLINT: existing names

/// What `config.json` says. docs/formats/package.md holds the grammar.
struct NEUROPOD_EXPORT ModelConfig {
  std::string name;
  std::string platform;
  std::string platform_version_semver = "*";
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  std::vector<std::string> custom_ops;                              ///< base names inside 0/ops
  std::unordered_map<std::string, DeviceType> input_tensor_device;  ///< of every input; default GPU
  int format_version = 0;  ///< 0: written before versions existed; decides which rules apply
  bool stateful = false;   ///< calls run one after the other; reset() starts afresh
  // For people; empty when absent.
  std::string version;
  std::string description;
  std::string author;
  std::string license;
  std::string created;
};

/// Reads and checks a configuration. Error(invalid_package) names the key, what was expected and
/// found; unknown keys are ignored.
NEUROPOD_EXPORT std::unique_ptr<ModelConfig> load_model_config(std::istream& config);

/// The same for an open package; Error(invalid_package) if it has no config.json.
NEUROPOD_EXPORT std::unique_ptr<ModelConfig> load_model_config(NeuropodLoader& loader);

/// The same for the package at `neuropod_path`, which errors name. Other errors as get_loader().
NEUROPOD_EXPORT std::unique_ptr<ModelConfig> load_model_config(const std::string& neuropod_path);

}  // namespace neuropod
