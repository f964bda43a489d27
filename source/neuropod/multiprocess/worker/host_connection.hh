#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

#include "neuropod/multiprocess/control_socket.hh"
#include "neuropod/multiprocess/serialization/ipc_serialization.hh"
#include "neuropod/multiprocess/worker/executor.hh"

namespace neuropod::multiprocess {

/// One host of a worker: reads its control messages, loads the model it asks for, runs its calls.
///
/// **Thread safety**: one thread handles messages while another one serves; stop() from any.
class HostConnection {
 public:
  explicit HostConnection(ControlSocket socket);
  /// serve() must have returned.
  ~HostConnection();
  HostConnection(const HostConnection&) = delete;

  int descriptor() const noexcept { return socket_.descriptor(); }
  /// Handles the message that waits. False: the host is gone, asked to end, or talks nonsense.
  bool handle_message();

  /// Waits for the host to ask for a model, loads it and runs its calls; returns after stop(), or
  /// when the model couldn't be loaded.
  ///
  /// A process's first thread loads a framework faster: there glibc takes memory for what static
  /// constructors allocate in large steps (brk), on others page by page (mprotect), some 10,000
  /// times for torch, which cost 30 ms.
  void serve();

  /// Ends serve(); a call that runs goes on to its end.
  void stop();

 private:
  void accept(LoadRequest request, std::vector<OwnedDescriptor> descriptors);
  void run(const LoadRequest& request);

  ControlSocket socket_;
  Hosted hosted_;  // written before `request_` is given

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by `mutex_`.
  std::optional<LoadRequest> request_;
  bool stopped_ = false;
};

}  // namespace neuropod::multiprocess
