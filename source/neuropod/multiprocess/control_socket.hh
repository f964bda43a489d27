#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "neuropod/base/owned_descriptor.hh"

namespace neuropod::multiprocess {

/// One end of a SOCK_SEQPACKET connection that carries messages with descriptors.
///
/// **Thread safety**: one thread sends and one receives. **Errors**: unavailable with errno's text.
class ControlSocket {
 public:
  ControlSocket() = default;
  explicit ControlSocket(OwnedDescriptor socket) : socket_(std::move(socket)) {}

  /// Two connected ends, close-on-exec.
  static std::pair<ControlSocket, ControlSocket> pair();

  /// Connects to a worker that listens at `path`. Error(unavailable): nobody does, it is another
  /// user's, or it isn't a socket of ours (with what it is); invalid_argument: the path is too long
  /// for a socket.
  static ControlSocket connect(const std::string& path);

  /// Sends one message; false if the peer is gone. Never raises SIGPIPE.
  bool send(std::string_view message, const std::vector<int>& descriptors = {});

  struct Message {
    std::string text;
    std::vector<OwnedDescriptor> descriptors;  // close-on-exec
  };

  /// The next message; nothing if the peer has closed. `wait`: block until there is one; without it
  /// an empty text and an open socket mean that there is none yet. Error(invalid_argument): longer
  /// than kMostMessageBytes, or more than 8 descriptors.
  std::optional<Message> receive(bool wait = true);

  int descriptor() const noexcept { return socket_.get(); }
  /// The process at the other end, as the kernel knows it; 0 if it doesn't.
  int peer_pid() const noexcept;
  void close() noexcept { socket_.reset(); }

 private:
  OwnedDescriptor socket_;
};

/// Listens at `path` with permissions 0600, replacing a socket that nobody listens on. The file
/// goes with the object. Error(invalid_argument): the path is too long, or something else is there;
/// unavailable: somebody listens there already.
class ListeningSocket {
 public:
  explicit ListeningSocket(const std::string& path);
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  int descriptor() const noexcept { return socket_.get(); }
  /// The next connection; an empty socket if there is none.
  ControlSocket accept();

 private:
  const std::string path_;
  OwnedDescriptor socket_;
  dev_t device_ = 0;  // of the file we made, so that nobody else's is removed
  ino_t inode_ = 0;
};

}  // namespace neuropod::multiprocess
