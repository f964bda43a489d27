#include "neuropod/package/json/key_reader.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <limits>
#include <unordered_set>
#include <utility>

#include "neuropod/package/nearest_name.hh"

namespace neuropod {
namespace {

using Json = KeyReader::Json;

constexpr int kDeepestNesting = 64;
constexpr size_t kLongestQuote = 80;

std::string did_you_mean(const std::string& name, const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(name, known);
  return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
}

std::vector<std::string> dtype_names() {
  return {
#define NEUROPOD_NAME(enumerator, value, name, cpp_type) name,
      NEUROPOD_FOR_EACH_DTYPE(NEUROPOD_NAME)
#undef NEUROPOD_NAME
  };
}

}  // namespace

KeyReader::KeyReader(Fail fail, Unknown unknown) : fail_(std::move(fail)), unknown_(unknown) {}

void KeyReader::fail(const std::string& path, const std::string& problem) const {
  fail_(path, problem);
  std::terminate();  // it throws
}

void KeyReader::fail_value(const std::string& path, const std::string& expected, const Json& found,
                           const std::string& hint) const {
  fail(path, fmt::format("'{}' must be {}, but is {}{}", path, expected, quote_json(found), hint));
}

const Json* KeyReader::find(const Json& object, const std::string& key) {
  const auto value = object.find(key);
  return value == object.end() ? nullptr : &*value;
}

std::string KeyReader::required_string(const Json& object, const std::string& key,
                                       const std::string& path) const {
  const Json* value = find(object, key);
  if (value == nullptr) fail(path, fmt::format("'{}' is missing; it must be a string", path));
  if (!value->is_string()) fail_value(path, "a string", *value);
  return value->get<std::string>();
}

std::string KeyReader::optional_string(const Json& object, const std::string& key,
                                       std::string otherwise) const {
  return find(object, key) == nullptr ? std::move(otherwise) : required_string(object, key, key);
}

bool KeyReader::optional_bool(const Json& object, const std::string& key,
                              const std::string& path) const {
  const Json* value = find(object, key);
  if (value == nullptr) return false;
  if (!value->is_boolean()) fail_value(path, "true or false", *value);
  return value->get<bool>();
}

void KeyReader::check_keys(const Json& object, const std::string& path,
                           const std::vector<std::string>& known) const {
  if (unknown_ == Unknown::kIgnored) return;
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string place = path.empty() ? key : path + "." + key;
    std::string hint = did_you_mean(key, known);
    if (hint.empty()) hint = fmt::format("; known: {}", fmt::join(known, ", "));
    fail(place, fmt::format("'{}' is an unknown key{}", place, hint));
  }
}

Dimension KeyReader::dimension(const Json& value, const std::string& path) const {
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
  if (value.is_null()) return Dimension(int64_t{-1});
  if (value.is_string()) {
    auto symbol = value.get<std::string>();
    if (symbol.empty() && unknown_ == Unknown::kRefused) {
      fail(path, fmt::format("'{}' is an empty symbol; null says any size", path));
    }
    return Dimension(std::move(symbol));
  }
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

TensorType KeyReader::dtype(const Json& item, const std::string& path) const {
  const std::string name = required_string(item, "dtype", path);
  TensorType type{};
  if (!get_tensor_type_from_name(name, &type)) {
    fail_value(path, "one of " + list_dtype_names(), item["dtype"],
               did_you_mean(name, dtype_names()));
  }
  return type;
}

TensorSpec KeyReader::spec(const Json& item, const std::string& path, bool is_input) const {
  if (!item.is_object()) fail_value(path, "an object with 'name', 'dtype' and 'shape'", item);
  check_keys(item, path, {"name", "dtype", "shape", "optional"});
  std::string name = required_string(item, "name", path + ".name");
  if (name.empty() && unknown_ == Unknown::kRefused) {
    fail(path + ".name", fmt::format("'{}.name' must not be empty", path));
  }
  const TensorType type = dtype(item, path + ".dtype");
  const Json* shape = find(item, "shape");
  if (shape == nullptr) {
    fail(path + ".shape", fmt::format("'{}.shape' is missing; it must be an array", path));
  }
  if (!shape->is_array()) fail_value(path + ".shape", "an array", *shape);
  std::vector<Dimension> dims;
  for (size_t i = 0; i < shape->size(); ++i) {
    dims.push_back(dimension((*shape)[i], fmt::format("{}.shape[{}]", path, i)));
  }
  const std::string optional_path = path + ".optional";
  if (!is_input && unknown_ == Unknown::kRefused && find(item, "optional") != nullptr) {
    fail(optional_path, fmt::format("'{}': only inputs can be optional", optional_path));
  }
  const bool optional = is_input && optional_bool(item, "optional", optional_path);
  return TensorSpec(std::move(name), std::move(dims), type, optional);
}

std::vector<TensorSpec> KeyReader::specs(const Json& document, const std::string& key,
                                         bool are_inputs) const {
  std::vector<TensorSpec> specs;
  const Json* items = find(document, key);
  if (items == nullptr) return specs;
  if (!items->is_array()) fail_value(key, "an array of specs", *items);
  specs.reserve(items->size());
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < items->size(); ++i) {
    const std::string path = fmt::format("{}[{}]", key, i);
    specs.push_back(spec((*items)[i], path, are_inputs));
    if (!names.insert(specs.back().name).second) {
      fail(path + ".name",
           fmt::format("'{}.name' is '{}', which is the name of an earlier tensor of '{}'", path,
                       specs.back().name, key));
    }
  }
  return specs;
}

std::string quote_json(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() <= kLongestQuote) return text;
  size_t end = kLongestQuote;
  while ((text[end] & 0xC0) == 0x80) --end;  // between two characters
  return text.substr(0, end) + "…";
}

Json parse_json(const std::string& text,
                const std::function<void(size_t byte, const std::string& problem)>& fail) {
  const auto limit_depth = [&](int depth, Json::parse_event_t, const Json&) {
    if (depth > kDeepestNesting) fail(0, "is nested too deeply");
    return true;
  };
  try {
    return Json::parse(text, limit_depth);
  } catch (const Json::parse_error& error) {
    fail(error.byte, fmt::format("is no valid JSON: {}", error.what()));
  } catch (const Json::exception& error) {
    fail(0, fmt::format("is no valid JSON: {}", error.what()));
  }
  std::terminate();  // fail() throws
}

}  // namespace neuropod
