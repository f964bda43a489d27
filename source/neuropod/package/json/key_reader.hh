#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "neuropod/internal/config_utils.hh"

namespace neuropod {

/// Reads values and tensor specs out of a JSON document, for config.json and problem-API files.
///
/// Not installed: it names nlohmann's types. A place in the document is written as a path, e.g.
/// `input_spec[1].shape[0]`; "" is the document.
/// **Thread safety**: immutable.
class KeyReader {
 public:
  using Json = nlohmann::json;

  /// Throws the fitting Error for a mistake at `path`. `problem` quotes the path already.
  using Fail = std::function<void(const std::string& path, const std::string& problem)>;

  enum class Unknown {
    kIgnored,  ///< unknown keys, `optional` of outputs and empty names are let pass
    kRefused,
  };

  KeyReader(Fail fail, Unknown unknown);

  /// Null if `object` has no such key.
  static const Json* find(const Json& object, const std::string& key);

  std::string required_string(const Json& object, const std::string& key,
                              const std::string& path) const;
  std::string optional_string(const Json& object, const std::string& key,
                              std::string otherwise = "") const;
  bool optional_bool(const Json& object, const std::string& key, const std::string& path) const;

  /// The specs under `key` of a document; none if the key is missing.
  std::vector<TensorSpec> specs(const Json& document, const std::string& key,
                                bool are_inputs) const;

  /// Where unknown keys are refused: fails for a key of `object` that isn't in `known`, naming the
  /// nearest. `path`: of the object.
  void check_keys(const Json& object, const std::string& path,
                  const std::vector<std::string>& known) const;

  [[noreturn]] void fail(const std::string& path, const std::string& problem) const;
  [[noreturn]] void fail_value(const std::string& path, const std::string& expected,
                               const Json& found, const std::string& hint = "") const;

 private:
  TensorSpec spec(const Json& item, const std::string& path, bool is_input) const;
  Dimension dimension(const Json& value, const std::string& path) const;
  TensorType dtype(const Json& item, const std::string& path) const;

  const Fail fail_;
  const Unknown unknown_;
};

/// A value for a message: numbers and texts as they stand, the rest by kind.
std::string quote_json(const nlohmann::json& value);

/// Fails through `fail` for text that is no JSON, or is nested more than 64 deep; `byte` is where.
nlohmann::json parse_json(const std::string& text,
                          const std::function<void(size_t byte, const std::string& problem)>& fail);

}  // namespace neuropod
