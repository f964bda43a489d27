#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "neuropod/multiprocess/control_socket.hh"
#include "neuropod/multiprocess/serialization/ipc_serialization.hh"
#include "neuropod/multiprocess/worker/executor.hh"

namespace neuropod::multiprocess {

/// One host of a worker: reads its control messages, loads the model it asks for, runs its calls on
/// threads of its own. The main thread's.
class HostConnection {
 public:
  explicit HostConnection(ControlSocket socket);
  /// Waits for the call that runs.
  ~HostConnection();
  HostConnection(const HostConnection&) = delete;

  int descriptor() const noexcept { return socket_.descriptor(); }
  /// Handles the message that waits. False: the host is gone, asked to end, or talks nonsense.
  bool handle_message();

  /// Ends every take(); threads that run a call go on.
  void stop();

 private:
  void load(LoadRequest request, std::vector<OwnedDescriptor> descriptors);
  void run(const LoadRequest& request);

  ControlSocket socket_;
  Hosted hosted_;
  std::thread thread_;  // loads the model, then is the first executor
};

}  // namespace neuropod::multiprocess
