#include "neuropod/multiprocess/control_socket.hh"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "neuropod/base/temporary_folder.hh"
#include "neuropod/testing/error_of.hh"
#include "neuropod/testing/process_probe.hh"

namespace neuropod::multiprocess {
namespace {

using ::testing::HasSubstr;

OwnedDescriptor server_of_another_kind(const std::string& path) {
  OwnedDescriptor server(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  EXPECT_EQ(::bind(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(server.get(), 1), 0);
  return server;
}

TEST(ControlSocketTest, MessagesAndTheirDescriptorsArrive) {
  auto [one, other] = ControlSocket::pair();
  const std::string text(100'000, 'x');
  EXPECT_TRUE(one.send(text, {STDIN_FILENO, STDERR_FILENO}));
  const auto message = other.receive();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->text, text);
  ASSERT_EQ(message->descriptors.size(), 2u);
  EXPECT_NE(::fcntl(message->descriptors[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(other.receive(false)->text, "") << "there is none yet";
}

TEST(ControlSocketTest, APeerThatIsGoneIsTold) {
  auto [one, other] = ControlSocket::pair();
  other.close();
  EXPECT_FALSE(one.send("x"));
  EXPECT_FALSE(one.receive());
}

TEST(ControlSocketTest, MoreDescriptorsThanAMessageHasAreRefusedAndNoneLeaks) {
  const size_t before = open_descriptors();
  {
    auto [one, other] = ControlSocket::pair();
    EXPECT_EQ(error_of([&, &sender = one] { sender.send("x", std::vector<int>(9, 0)); }).code(),
              ErrorCode::kInvalidArgument);
    one.send("x", std::vector<int>(8, 0));  // arrives, and nobody reads it
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(ListeningSocketTest, IsItsOwnersOnlyAndGoesWithTheObject) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/s";
  {
    ListeningSocket listening(path);
    struct stat status{};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    ControlSocket host = ControlSocket::connect(path);
    ControlSocket worker = listening.accept();
    EXPECT_EQ(worker.peer_pid(), ::getpid());
    EXPECT_TRUE(host.send("hello"));
    EXPECT_EQ(worker.receive()->text, "hello");
    EXPECT_EQ(error_of([&] { ListeningSocket second(path); }).code(), ErrorCode::kUnavailable);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ListeningSocketTest, LeavesWhatIsAnothersAlone) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/file";
  std::ofstream(file) << "text";
  EXPECT_THAT(error_of([&] { ListeningSocket listening(file); }).message(),
              HasSubstr("regular file"));
  const std::string path = folder.path() + "/stream";
  const OwnedDescriptor server = server_of_another_kind(path);
  error_of([&] { ListeningSocket listening(path); });
  EXPECT_TRUE(std::filesystem::exists(path)) << "another program's socket";
  const std::string replaced = folder.path() + "/replaced";
  {
    const ListeningSocket listening(replaced);
    std::filesystem::remove(replaced);
    std::ofstream(replaced) << "somebody else's";
  }
  EXPECT_TRUE(std::filesystem::exists(replaced));
}

TEST(ListeningSocketTest, TakesThePlaceOfOneThatIsGone) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/s";
  OwnedDescriptor left(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(left.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  left.reset();
  const ListeningSocket listening(path);
  ControlSocket::connect(path);
}

TEST(ControlSocketTest, AnotherUsersWorkerIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may be another user";
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/socket";
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) ::_exit(1);
    const ListeningSocket listening(path);
    if (::write(ready[1], "x", 1) == 1) ::pause();
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const Error error = error_of([&] { ControlSocket::connect(path); });
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.message(), HasSubstr("is user 65534's"));
}

TEST(ControlSocketTest, AConnectionThatCannotBeSaysWhy) {
  const TemporaryFolder folder;
  const std::string missing = folder.path() + "/missing";
  EXPECT_THAT(error_of([&] { ControlSocket::connect(missing); }).message(),
              HasSubstr("neuropod-worker --listen"));
  const std::string stream = folder.path() + "/stream";
  const OwnedDescriptor server = server_of_another_kind(stream);
  EXPECT_THAT(error_of([&] { ControlSocket::connect(stream); }).message(),
              HasSubstr("another kind"));
  EXPECT_EQ(error_of([&] { ControlSocket::connect(std::string(200, 'x')); }).code(),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace neuropod::multiprocess
