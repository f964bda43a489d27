#include "neuropod/multiprocess/worker/worker_program.hh"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "neuropod/base/error.hh"
#include "neuropod/base/logging.hh"
#include "neuropod/multiprocess/fault_point.hh"
#include "neuropod/multiprocess/worker/host_connection.hh"
#include "neuropod/multiprocess/worker/worker_log.hh"
#include "neuropod/version.hh"

namespace neuropod {
namespace {

using multiprocess::ControlSocket;
using multiprocess::fault_point;
using multiprocess::HostConnection;
using multiprocess::ListeningSocket;

constexpr int kWrongArguments = 64;

constexpr const char* kUsage =
    "usage: neuropod-worker --listen PATH\n"
    "       neuropod-worker --version\n"
    "\n"
    "Hosts models for other processes: with --listen for any number of them, which name PATH in\n"
    "ope_options.control_queue_name. Programs that load with use_ope=True start workers by "
    "themselves\n"
    "(--connect DESCRIPTOR --host PID --title TEXT).\n";

struct Arguments {
  int connect = -1;
  pid_t host = 0;
  std::string title;
  std::string listen;
  bool version = false;
  bool help = false;
};

bool parse_number(const std::string& text, int* number) {
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, *number);
  return parsed.ec == std::errc() && parsed.ptr == end && *number >= 0;
}

bool parse(int argc, char** argv, Arguments* arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--version") {
      arguments->version = true;
    } else if (argument == "--help" || argument == "-h") {
      arguments->help = true;
    } else if (i + 1 == argc) {
      return false;
    } else if (argument == "--connect") {
      if (!parse_number(argv[++i], &arguments->connect)) return false;
    } else if (argument == "--host") {
      if (!parse_number(argv[++i], &arguments->host)) return false;
    } else if (argument == "--title") {
      arguments->title = argv[++i];
    } else if (argument == "--listen") {
      arguments->listen = argv[++i];
    } else {
      return false;
    }
  }
  return arguments->version || arguments->help ||
         (arguments->connect >= 0) != !arguments->listen.empty();
}

// What ps shows. Only as much as the arguments had room for.
void set_title(int argc, char** argv, const std::string& title) {
  ::prctl(PR_SET_NAME, "neuropod-worker");
  char* begin = argv[0];
  char* end = argv[argc - 1] + std::strlen(argv[argc - 1]) + 1;
  const size_t room = static_cast<size_t>(end - begin);
  const size_t bytes = std::min(title.size(), room - 1);
  std::memset(begin, 0, room);
  std::memcpy(begin, title.data(), bytes);
}

void prepare_process() {
  ::signal(SIGINT, SIG_IGN);  // Ctrl-C is for the host
  ::signal(SIGPIPE, SIG_IGN);
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
}

[[noreturn]] void end_at_once() {
  std::fflush(nullptr);
  // Not exit(): a framework's destructors take long, and the memory goes with the process anyway.
  ::_exit(0);
}

// Readable once that process has ended; none where the kernel can't say, which poll() ignores.
OwnedDescriptor watch_process(pid_t pid) {
  return OwnedDescriptor(pid <= 0 ? -1 : static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// Ends the process when the host is gone or asks for it.
[[noreturn]] void handle_messages(HostConnection* connection, pid_t host) {
  const OwnedDescriptor process = watch_process(host);
  for (;;) {
    pollfd waiting[] = {{connection->descriptor(), POLLIN, 0}, {process.get(), POLLIN, 0}};
    if (::poll(waiting, 2, -1) < 0) continue;
    if (waiting[1].revents != 0) end_at_once();
    if (waiting[0].revents != 0 && !connection->handle_message()) end_at_once();
  }
}

[[noreturn]] void serve_one(const Arguments& arguments) {
  // The worker dies with the thread that started it, which lives as long as its process.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (arguments.host != 0 && ::getppid() != arguments.host) end_at_once();
  multiprocess::log_for_host();
  fault_point("connected");
  HostConnection connection{ControlSocket(OwnedDescriptor(arguments.connect))};
  std::thread([&connection, host = arguments.host] {
    handle_messages(&connection, host);
  }).detach();
  connection.serve();
  for (;;) ::pause();
}

[[noreturn]] void serve_many(const std::string& path) {
  // Asked to end, it takes the socket's file along.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGHUP);
  sigaddset(&ends, SIGINT);
  ::signal(SIGINT, SIG_DFL);  // of the terminal it was started in
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  auto* listening = new ListeningSocket(path);
  std::thread([ends, path] {
    int signal = 0;
    ::sigwait(&ends, &signal);
    ::unlink(path.c_str());
    end_at_once();
  }).detach();

  log(LogLevel::kInfo, "a worker listens at '" + path + "'");
  struct Host {
    std::unique_ptr<HostConnection> connection;
    OwnedDescriptor process;  // a child that it has forked may keep the connection open
    std::thread serving;
  };
  std::list<Host> hosts;
  for (;;) {
    std::vector<pollfd> waiting{{listening->descriptor(), POLLIN, 0}};
    for (const Host& host : hosts) {
      waiting.push_back({host.connection->descriptor(), POLLIN, 0});
      waiting.push_back({host.process.get(), POLLIN, 0});
    }
    if (::poll(waiting.data(), waiting.size(), -1) < 0) continue;
    size_t i = 1;
    for (auto it = hosts.begin(); it != hosts.end(); i += 2) {
      const bool ended = waiting[i + 1].revents != 0;
      if (!ended && (waiting[i].revents == 0 || it->connection->handle_message())) {
        ++it;
        continue;
      }
      // A call of it may still run: others don't wait for that.
      it->connection->stop();
      std::thread([ended_one = std::move(*it)]() mutable { ended_one.serving.join(); }).detach();
      it = hosts.erase(it);
    }
    if (waiting[0].revents != 0) {
      ControlSocket socket = listening->accept();
      if (socket.descriptor() < 0) continue;
      OwnedDescriptor process = watch_process(socket.peer_pid());
      auto connection = std::make_unique<HostConnection>(std::move(socket));
      std::thread serving([serves = connection.get()] { serves->serve(); });
      hosts.push_back({std::move(connection), std::move(process), std::move(serving)});
    }
  }
}

}  // namespace

int run_worker(int argc, char** argv) {
  Arguments arguments;
  if (!parse(argc, argv, &arguments)) {
    std::fputs(kUsage, stderr);
    return kWrongArguments;
  }
  if (arguments.help) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (arguments.version) {
    std::printf("neuropod-worker %s (protocol %u, ABI %s)\n", NEUROPOD_VERSION,
                multiprocess::kProtocolVersion, NEUROPOD_ABI_VERSION);
    return 0;
  }
  try {
    prepare_process();
    fault_point("start");
    set_title(
        argc, argv,
        arguments.listen.empty() ? arguments.title : "neuropod-worker: at " + arguments.listen);
    if (arguments.listen.empty()) serve_one(arguments);
    serve_many(arguments.listen);
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "neuropod-worker: %s\n", exception.what());
    return 1;
  }
}

}  // namespace neuropod
