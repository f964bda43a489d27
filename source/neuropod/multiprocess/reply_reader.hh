#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "neuropod/internal/config_utils.hh"
#include "neuropod/internal/neuropod_value.hh"
#include "neuropod/multiprocess/managed_worker.hh"
#include "neuropod/multiprocess/request_writer.hh"

namespace neuropod::multiprocess {

/// The answer to a call.
struct Reply {
  std::unique_ptr<NeuropodValueMap> outputs;  // null: an error
  ErrorCode code = ErrorCode::kModelError;
  std::string message;
};

/// Reads the reply in `slot`, which stays the caller's. Nothing in it is trusted: every number is
/// read once and checked, so that whatever a worker writes, this process reads only its arenas.
/// (That a worker's results are right can't be checked.) Results are read in place and give their
/// block back when they go; in a forked child that does nothing. Error(invalid_argument): the
/// worker is broken.
Reply read_reply(const std::shared_ptr<Incarnation>& incarnation, const CallSlot& slot,
                 const std::vector<TensorSpec>& outputs, const RequestWriter& request,
                 const Arena& input_arena);

/// Reads, of the reply of a call that was given up while it ran, what the model has kept: such
/// values live on in the incarnation. `values`: by record. Errors as read_reply().
void keep_inputs(const std::shared_ptr<Incarnation>& incarnation, const CallSlot& slot,
                 const std::vector<std::shared_ptr<NeuropodValue>>& values);

}  // namespace neuropod::multiprocess
