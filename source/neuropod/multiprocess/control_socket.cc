#include "neuropod/multiprocess/control_socket.hh"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "neuropod/base/error.hh"
#include "neuropod/multiprocess/serialization/ipc_serialization.hh"

namespace neuropod::multiprocess {
namespace {

constexpr size_t kMostDescriptors = 8;
constexpr int kBufferBytes = 2 << 20;

OwnedDescriptor make_socket() {
  OwnedDescriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) {
    throw_error(ErrorCode::kUnavailable,
                fmt::format("can't make a socket: {}; raise the limit of open "
                            "files (ulimit -n) or close some",
                            std::strerror(errno)));
  }
  return socket;
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    throw_error(ErrorCode::kInvalidArgument,
                fmt::format("'{}' can't be the path of a worker's socket: it has {} bytes, and a "
                            "socket's path has 1 to {}",
                            path, path.size(), sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

void enlarge_buffers(int socket) {
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kBufferBytes, sizeof kBufferBytes);
}

// What a message brought besides its text; takes ownership of every descriptor.
std::vector<OwnedDescriptor> descriptors_of(msghdr* message) {
  std::vector<OwnedDescriptor> descriptors;
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof descriptor);
      descriptors.emplace_back(descriptor);
    }
  }
  return descriptors;
}

std::string describe_file(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::strerror(errno);
  if (S_ISSOCK(status.st_mode)) return "a socket";
  if (S_ISDIR(status.st_mode)) return "a directory";
  return S_ISREG(status.st_mode) ? "a regular file" : "something else than a socket";
}

}  // namespace

std::pair<ControlSocket, ControlSocket> ControlSocket::pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw_error(ErrorCode::kUnavailable,
                fmt::format("can't make a socket: {}; raise the limit of open "
                            "files (ulimit -n) or close some",
                            std::strerror(errno)));
  }
  enlarge_buffers(ends[0]);
  enlarge_buffers(ends[1]);
  return {ControlSocket(OwnedDescriptor(ends[0])), ControlSocket(OwnedDescriptor(ends[1]))};
}

ControlSocket ControlSocket::connect(const std::string& path) {
  const sockaddr_un address = address_of(path);
  OwnedDescriptor socket = make_socket();
  enlarge_buffers(socket.get());
  // The supervisor mustn't wait for a worker that is stopped and accepts nobody.
  const int flags = ::fcntl(socket.get(), F_GETFL);
  ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK);
  while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
         0) {
    if (errno == EINTR) continue;
    if (errno == ENOENT) {
      throw_error(ErrorCode::kUnavailable,
                  fmt::format("no worker listens at '{0}': there is no such file; "
                              "`neuropod-worker --listen {0}` starts one",
                              path));
    }
    if (errno == ECONNREFUSED) {
      throw_error(ErrorCode::kUnavailable,
                  fmt::format("no worker listens at '{0}' ({1}, and nobody answers); "
                              "`neuropod-worker --listen {0}` starts one",
                              path, describe_file(path)));
    }
    if (errno == EAGAIN) {
      throw_error(
          ErrorCode::kUnavailable,
          fmt::format("the worker at '{}' accepts no connection now: too many wait for one", path));
    }
    if (errno == EPROTOTYPE || errno == ENOTSOCK) {
      throw_error(ErrorCode::kUnavailable,
                  fmt::format("'{}' is no socket of a worker: it is {} of another kind", path,
                              describe_file(path)));
    }
    throw_error(ErrorCode::kUnavailable,
                fmt::format("can't connect to the worker at '{}': {}", path, std::strerror(errno)));
  }
  ::fcntl(socket.get(), F_SETFL, flags);
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
      peer.uid != ::geteuid()) {
    throw_error(ErrorCode::kUnavailable,
                fmt::format("the worker at '{}' is user {}'s, and this process is user {}'s; it "
                            "would see the inputs and make up the results",
                            path, peer.uid, ::geteuid()));
  }
  return ControlSocket(std::move(socket));
}

bool ControlSocket::send(std::string_view message, const std::vector<int>& descriptors) {
  if (descriptors.size() > kMostDescriptors) {
    throw_error(ErrorCode::kInvalidArgument,
                fmt::format("a message for a worker with {} descriptors; it can have {}",
                            descriptors.size(), kMostDescriptors));
  }
  iovec text{const_cast<char*>(message.data()), message.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &text;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size() * sizeof(int));
  }
  while (::sendmsg(socket_.get(), &header, MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    if (errno == EMSGSIZE || errno == ENOBUFS) {
      throw_error(ErrorCode::kInvalidArgument,
                  fmt::format("the options of this model take {} bytes, more than can be sent to a "
                              "worker; shorten env or the overrides",
                              message.size()));
    }
    return false;
  }
  return true;
}

std::optional<ControlSocket::Message> ControlSocket::receive(bool wait) {
  const int flags = wait ? 0 : MSG_DONTWAIT;
  ssize_t length = 0;
  while ((length = ::recv(socket_.get(), nullptr, 0, flags | MSG_PEEK | MSG_TRUNC)) < 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return Message{};
    return std::nullopt;
  }
  if (length == 0) return std::nullopt;  // we send no empty messages
  if (static_cast<size_t>(length) > kMostMessageBytes) {
    throw_error(
        ErrorCode::kInvalidArgument,
        fmt::format("a message of {} bytes came through a worker's socket; the longest is {}",
                    length, kMostMessageBytes));
  }
  Message message;
  message.text.resize(static_cast<size_t>(length));
  iovec text{message.text.data(), message.text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &text;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t received = 0;
  while ((received = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC)) < 0) {
    if (errno != EINTR) return std::nullopt;
  }
  message.descriptors = descriptors_of(&header);
  if ((header.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0) {
    throw_error(
        ErrorCode::kInvalidArgument,
        "a message came through a worker's socket with more than it may have, or this process "
        "can't open the files it brings (ulimit -n)");
  }
  message.text.resize(static_cast<size_t>(received));
  return message;
}

int ControlSocket::peer_pid() const noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

ListeningSocket::ListeningSocket(const std::string& path) : path_(path), socket_(make_socket()) {
  const sockaddr_un address = address_of(path);
  const auto bind = [&] {
    return ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  };
  // Nobody can connect before listen(), so the permissions are right when it matters.
  bool bound = bind();
  if (!bound && errno == EADDRINUSE) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) {
      throw_error(ErrorCode::kInvalidArgument,
                  fmt::format("can't listen at '{}': it is {}", path, describe_file(path)));
    }
    // Only this answer says that nobody listens; a socket of another kind is in use.
    const OwnedDescriptor probe(
        ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
        errno == ECONNREFUSED) {
      ::unlink(path.c_str());  // of a worker that is gone
      bound = bind();
    }
    if (!bound) {
      throw_error(ErrorCode::kUnavailable,
                  fmt::format("can't listen at '{}': somebody listens there already", path));
    }
  }
  if (!bound || ::chmod(path.c_str(), 0600) != 0 || ::listen(socket_.get(), 64) != 0) {
    throw_error(ErrorCode::kInvalidArgument,
                fmt::format("can't listen at '{}': {}", path, std::strerror(errno)));
  }
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0) {
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
}

ListeningSocket::~ListeningSocket() {
  struct stat status{};
  if (::stat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_) {
    ::unlink(path_.c_str());
  }
}

ControlSocket ListeningSocket::accept() {
  OwnedDescriptor connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (connection) enlarge_buffers(connection.get());
  return ControlSocket(std::move(connection));
}

}  // namespace neuropod::multiprocess
