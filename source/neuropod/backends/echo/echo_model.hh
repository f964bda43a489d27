#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "neuropod/internal/config_utils.hh"
#include "neuropod/internal/neuropod_tensor.hh"

namespace neuropod::echo {

/// What makes an output.
enum class Operation {
  kIdentity,    ///< the input itself
  kIncrement,   ///< adds 1 to the input in place, returns it
  kSum,         ///< the sum of all inputs that are there, which have one shape
  kScale,       ///< the input times `factor`
  kTranspose,   ///< a rank-2 input with its dimensions exchanged
  kJoin,        ///< string inputs of one shape, element by element, `text` between them
  kRunningSum,  ///< the sum of all inputs since the model was loaded or reset
  kPrevious,    ///< the input of the call before, which is kept; in the first call this one
  kConstant,    ///< `constant` itself, whatever the inputs
  kRandom,      ///< random values in a shape that obeys the output's spec, see RandomOutputs
};

/// One output of an echo model.
struct EchoOutput {
  std::string name;
  Operation operation = Operation::kIdentity;
  std::vector<size_t> inputs;  ///< indices in the input spec
  double factor = 1;
  std::string text;
  std::shared_ptr<NeuropodTensor> constant;
  const TensorSpec* spec = nullptr;  ///< of kRandom; the package's, never null there
};

/// A "model" of no framework: its file says what each output is made of.
///
///     {"device": true, "sleep_ms": 5, "fail_if_negative": {"input": "x", "message": "…"},
///      "outputs": {"y": {"op": "scale", "input": "x", "by": 2},
///                  "out": {"op": "join", "inputs": ["a", "b"], "separator": " "},
///                  "labels": {"op": "constant", "dtype": "string", "shape": [1], "values":
///                  ["cat"]}}}
///
/// Instead of a message, fail_if_negative may have an `"action"`, for tests of what happens to a
/// model's process: "segv", "abort", "exit", "kill", "hang", "sleep" (a second, and the call
/// succeeds), or "fork" (a child that lives for two seconds; the call succeeds). `"print": "…"`
/// prints a line in each call, on stdout and on stderr.
///
/// Only `outputs` is required. Operations: identity, increment, sum, scale, transpose, join,
/// running_sum, previous, constant, random (whose `"seed"` stands beside `outputs`).
struct EchoModel {
  std::vector<EchoOutput> outputs;
  bool device = false;                  ///< may run on the pretend device
  int sleep_ms = 0;                     ///< how long each call takes
  std::optional<size_t> failing_input;  ///< the call fails if its first element is negative,
  std::string failing_message;          ///< with this text
  std::string failing_action;           ///< or instead of failing, see below
  std::string printed;                  ///< on stdout and stderr in each call; nothing if empty
  bool is_random = false;               ///< some output is kRandom
  std::optional<uint64_t> seed;         ///< of random outputs; none: another one each time
};

/// Reads a model for the problem API in `config`, which must outlive it. Error(load_failed) says
/// what is wrong with it.
EchoModel read_echo_model(std::istream& file, const ModelConfig& config);

}  // namespace neuropod::echo
