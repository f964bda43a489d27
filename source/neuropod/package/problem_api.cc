#include "neuropod/package/problem_api.hh"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

#include "neuropod/base/error.hh"
#include "neuropod/base/read_only_file.hh"
#include "neuropod/package/json/json_lines.hh"
#include "neuropod/package/json/key_reader.hh"

namespace neuropod {
namespace {

using Json = KeyReader::Json;

constexpr char kVersionKey[] = "problem_api_version";
constexpr uint64_t kVersion = 1;
constexpr size_t kLargestFile = size_t{16} << 20;

[[noreturn]] void fail_at(const std::string& source, size_t line, const std::string& problem) {
  throw_error(ErrorCode::kInvalidArgument, fmt::format("{}:{}: {}", source, line, problem));
}

// nlohmann's message without its own name and position, which ours has.
std::string without_position(const std::string& problem) {
  const size_t start = problem.find("[json.exception");
  const size_t column = problem.find("column ");
  const size_t end = column == std::string::npos ? column : problem.find(": ", column);
  if (start == std::string::npos || end == std::string::npos) return problem;
  return problem.substr(0, start) + problem.substr(end + 2);
}

void check_version(const Json& document, const KeyReader& keys) {
  const Json* version = KeyReader::find(document, kVersionKey);
  if (version == nullptr) {
    keys.fail(kVersionKey, fmt::format("'{}' is missing; it must be {}", kVersionKey, kVersion));
  }
  if (!version->is_number_unsigned() || *version != kVersion) {
    keys.fail_value(kVersionKey, fmt::format("{}, the version that this Neuropod reads", kVersion),
                    *version);
  }
}

ProblemApi read_document(const Json& document, const KeyReader& keys) {
  if (!document.is_object()) {
    keys.fail("", fmt::format("a problem API must be an object, but is {}", quote_json(document)));
  }
  keys.check_keys(document, "", {kVersionKey, "input_spec", "output_spec"});
  check_version(document, keys);
  for (const char* key : {"input_spec", "output_spec"}) {
    if (KeyReader::find(document, key) == nullptr) {
      keys.fail(key, fmt::format("'{}' is missing; it must be an array of specs", key));
    }
  }
  return {keys.specs(document, "input_spec", /*are_inputs=*/true),
          keys.specs(document, "output_spec", /*are_inputs=*/false)};
}

std::string json_text(const std::string& text) {
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    throw_error(ErrorCode::kInvalidArgument,
                fmt::format("a problem API can't be written: {} isn't UTF-8", quote_json(text)));
  }
}

std::string dimension_text(const Dimension& dimension) {
  if (dimension.value == -2) return json_text(dimension.symbol);
  return dimension.value == -1 ? "null" : std::to_string(dimension.value);
}

std::string specs_text(const std::vector<TensorSpec>& specs) {
  std::string text = "[";
  for (const TensorSpec& spec : specs) {
    if (&spec != &specs.front()) text += ',';
    text += fmt::format("\n        {{\"name\": {}, \"dtype\": \"{}\", \"shape\": [",
                        json_text(spec.name), get_dtype_name(spec.type));
    for (size_t i = 0; i < spec.dims.size(); ++i) {
      text += (i > 0 ? ", " : "") + dimension_text(spec.dims[i]);
    }
    text += spec.optional ? "], \"optional\": true}" : "]}";
  }
  return text + (specs.empty() ? "]" : "\n    ]");
}

}  // namespace

ProblemApi problem_api_of(const ModelConfig& config) { return {config.inputs, config.outputs}; }

ProblemApi parse_problem_api(std::string_view text, const std::string& source) {
  if (text.size() > kLargestFile) fail_at(source, 1, "is larger than 16 MiB");
  const Json document = parse_json(std::string(text), [&](size_t byte, const std::string& problem) {
    fail_at(source, line_at(text, byte > 0 ? byte - 1 : 0), without_position(problem));
  });
  const JsonLines lines(text);
  if (lines.duplicate()) {
    fail_at(source, lines.duplicate()->line,
            fmt::format("'{}' stands here a second time; the first is in line {}",
                        lines.duplicate()->path, lines.duplicate()->first_line));
  }
  const KeyReader keys(
      [&](const std::string& path, const std::string& problem) {
        fail_at(source, lines.line_of(path), problem);
      },
      KeyReader::Unknown::kRefused);
  return read_document(document, keys);
}

ProblemApi read_problem_api(const std::string& path) {
  const ReadOnlyFile file(path);
  if (file.size() > kLargestFile) fail_at(path, 1, "is larger than 16 MiB");
  std::string text(static_cast<size_t>(file.size()), '\0');
  text.resize(file.read_at(0, text.data(), text.size()));
  return parse_problem_api(text, path);
}

std::string problem_api_text(const ProblemApi& api) {
  std::string text =
      fmt::format("{{\n    \"{}\": {},\n    \"input_spec\": {},\n    \"output_spec\": {}\n}}\n",
                  kVersionKey, kVersion, specs_text(api.inputs), specs_text(api.outputs));
  parse_problem_api(text, "the problem API");  // what can't be read isn't written
  return text;
}

void write_problem_api(const std::string& path, const ProblemApi& api) {
  const std::string text = problem_api_text(api);
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) {
    throw_error(ErrorCode::kInvalidArgument,
                fmt::format("'{}' can't be written: {}", path, std::strerror(errno)));
  }
}

}  // namespace neuropod
