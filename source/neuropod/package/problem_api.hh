#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "neuropod/base/visibility.hh"
#include "neuropod/internal/config_utils.hh"

namespace neuropod {

/// What a problem's models have in common: the tensors that each takes and returns.
/// docs/problem_api.md explains it, docs/formats/problem_api.md holds the file's grammar.
struct NEUROPOD_EXPORT ProblemApi {
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
};

/// What a package promises.
NEUROPOD_EXPORT ProblemApi problem_api_of(const ModelConfig& config);

/// Reads a problem-API file. Error(not_found) if there is none, Error(invalid_argument) for each
/// kind of mistake, with "<path>:<line>:" and the key.
NEUROPOD_EXPORT ProblemApi read_problem_api(const std::string& path);

/// The same for text that `source` names in messages.
NEUROPOD_EXPORT ProblemApi parse_problem_api(std::string_view text, const std::string& source);

/// The content of a problem-API file: a line per tensor; the same API always gives the same bytes.
/// Error(invalid_argument) for specs that a file can't hold, such as a dimension of 0.
NEUROPOD_EXPORT std::string problem_api_text(const ProblemApi& api);

/// Writes that to `path`. Error(invalid_argument) if the file can't be written.
NEUROPOD_EXPORT void write_problem_api(const std::string& path, const ProblemApi& api);

/// Which list of a problem API.
enum class ApiSide { kInput, kOutput };

/// One point in which two problem APIs differ.
struct NEUROPOD_EXPORT ApiDifference {
  ApiSide side;
  std::string tensor;
  std::string text;  ///< one line that names side, tensor, and what is found instead of what
  bool breaking;     ///< a program written for the old one may fail with the new one
};

/// How `new_api` differs from `old_api`: inputs first, then outputs, tensors in the order of the
/// spec.
///
/// None is breaking exactly if `new_api` can replace `old_api` under any program: every call that
/// the old one's checks admit passes the new one's (inputs may only become wider), and whatever the
/// new one's checks let out of such a call the old one's would have let out (outputs may only
/// become narrower). Names of symbols don't matter, which dimensions they make equal does. Both are
/// read by today's rules (docs/formats/package.md, "Two sets of rules").
NEUROPOD_EXPORT std::vector<ApiDifference> compare_problem_apis(const ProblemApi& old_api,
                                                                const ProblemApi& new_api);

/// Error(invalid_argument) "<what> doesn't fulfil the problem API: …" that lists the breaking
/// differences, if there are any.
NEUROPOD_EXPORT void require_fulfilled(const ProblemApi& required, const ProblemApi& found,
                                       const std::string& what);

}  // namespace neuropod
