#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "neuropod/backends/neuropod_backend.hh"
#include "neuropod/multiprocess/channel/worker_channel.hh"
#include "neuropod/multiprocess/worker/input_tensors.hh"
#include "neuropod/multiprocess/worker/reply_writer.hh"

namespace neuropod::multiprocess {

/// What the executors of one connection share.
struct Hosted {
  std::shared_ptr<NeuropodBackend> model;
  std::shared_ptr<WorkerChannel> channel;
  std::shared_ptr<Arena> inputs;
  std::shared_ptr<Arena> outputs;
  std::shared_ptr<ResultArena> results;
  std::shared_ptr<LentResults> lent;
  NameIndex output_names;
  RuntimeOptions::Spin spin = RuntimeOptions::Spin::kAuto;
};

/// Runs calls of one host on the calling thread, one after the other, until the channel stops.
void run_calls(const Hosted& hosted);

}  // namespace neuropod::multiprocess
