#include "neuropod/multiprocess/worker_process.hh"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "neuropod/base/error.hh"
#include "neuropod/base/logging.hh"

extern char** environ;

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define NEUROPOD_FORK ::fork
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define NEUROPOD_FORK ::fork
#endif
#ifndef NEUROPOD_FORK
// The child borrows this process's memory until it runs the worker, so that starting one from a
// program of many gigabytes takes no longer than from a small one. It calls nothing but
// async-signal-safe functions.
#define NEUROPOD_FORK ::vfork
#endif

namespace neuropod::multiprocess {
namespace {

namespace fs = std::filesystem;

constexpr int kControl = 3;  // the worker's descriptor of its control socket

[[noreturn]] void fail(const char* what, int error) {
  const char* remedy = "";
  if (error == EMFILE || error == ENFILE) {
    remedy = "; raise the limit of open files (ulimit -n) or close some";
  } else if (error == EAGAIN) {
    remedy = "; raise the limit of processes (ulimit -u)";
  }
  throw_error(ErrorCode::kUnavailable,
              fmt::format("can't start a worker: {}: {}{}", what, std::strerror(error), remedy));
}

std::vector<std::string> environment_of(const WorkerLaunch& launch) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  // Its log comes to ours, at our level.
  variables.erase("NEUROPOD_LOG_FORMAT");
  for (const LogLevel level :
       {LogLevel::kError, LogLevel::kWarn, LogLevel::kInfo, LogLevel::kDebug, LogLevel::kTrace}) {
    if (log_enabled(level)) variables["NEUROPOD_LOG_LEVEL"] = to_string(level);
  }
  // The loader finds the worker's library beside the worker, which it asks /proc for. Where there
  // is none:
  if (::access("/proc/self/exe", F_OK) != 0) {
    variables["LD_ORIGIN_PATH"] = fs::path(launch.executable).parent_path().string();
  }
  for (const auto& [name, value] : launch.env) variables[name] = value;
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// What a child that couldn't become a worker tells.
struct Failure {
  int error;
  char step[32];
};

// In the child: becomes the worker, or tells why not and ends.
[[noreturn]] void become_worker(const WorkerLaunch& launch, char* const* arguments,
                                char* const* environment, int control, int output, int null,
                                int report) noexcept {
  Failure failure{0, "limits"};
  const char* step = "limits";
  const auto give_up = [&] {
    failure.error = errno;
    std::strncpy(failure.step, step, sizeof failure.step - 1);
    [[maybe_unused]] const ssize_t size = ::write(report, &failure, sizeof failure);
    ::_exit(127);
  };
  ::setpgid(0, 0);
  // The program asks for this, too, and compares its parent: this may have ended before.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action{};
    action.sa_handler = SIG_DFL;
    ::sigaction(signal, &action, nullptr);
  }
  if (launch.limits.cgroup != nullptr && !launch.limits.cgroup->add(::getpid())) {
    step = "entering its cgroup";
    give_up();
  }
  if (!apply_limits(launch.limits, &step)) give_up();
  step = "arranging its descriptors";
  // All are above 3 (see start_worker), so none of these overwrites another.
  if (::dup2(null, 0) < 0 || ::dup2(output, 1) < 0 || ::dup2(output, 2) < 0 ||
      ::dup2(control, kControl) < 0) {
    give_up();
  }
  // Those that aren't close-on-exec are the program's, and no business of the worker's.
  if (::syscall(SYS_close_range, kControl + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
    for (int descriptor = kControl + 1; descriptor < 65536; ++descriptor) {
      if (descriptor != report) ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    }
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  step = "running the program";
  ::execve(launch.executable.c_str(), arguments, environment);
  give_up();
  ::_exit(127);
}

// The same file under a number above 3.
OwnedDescriptor moved_up(OwnedDescriptor descriptor) {
  if (!descriptor) fail("opening a descriptor", errno);
  if (descriptor.get() > kControl) return descriptor;
  OwnedDescriptor moved(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, kControl + 1));
  if (!moved) fail("duplicating a descriptor", errno);
  return moved;
}

std::pair<OwnedDescriptor, OwnedDescriptor> make_pipe(int flags) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("making a pipe", errno);
  ::fcntl(ends[0], F_SETFL, flags);
  return {OwnedDescriptor(ends[0]), OwnedDescriptor(ends[1])};
}

}  // namespace

std::atomic<bool> without_pidfds{false};

WorkerProcess start_worker(const WorkerLaunch& launch) {
  auto [ours, theirs] = ControlSocket::pair();
  OwnedDescriptor control =
      moved_up(OwnedDescriptor(::fcntl(theirs.descriptor(), F_DUPFD_CLOEXEC, 4)));
  theirs.close();
  auto [output, printed] = make_pipe(O_NONBLOCK);
  printed = moved_up(std::move(printed));
  auto [report, reported] = make_pipe(0);
  reported = moved_up(std::move(reported));
  OwnedDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) null = make_pipe(0).first;  // a root without /dev: nothing to read either
  null = moved_up(std::move(null));

  std::vector<std::string> arguments{launch.executable,
                                     "--connect",
                                     std::to_string(kControl),
                                     "--host",
                                     std::to_string(::getpid()),
                                     "--title",
                                     launch.title};
  std::vector<std::string> environment = environment_of(launch);
  const std::vector<char*> argument_pointers = pointers_to(arguments);
  const std::vector<char*> environment_pointers = pointers_to(environment);

  // No handler of the program's may run in the child, which shares this memory for a while.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  // NOLINTNEXTLINE(bugprone-unsafe-functions): see become_worker()
  const pid_t pid = NEUROPOD_FORK();
  if (pid == 0) {
    become_worker(launch, argument_pointers.data(), environment_pointers.data(), control.get(),
                  printed.get(), null.get(), reported.get());
  }
  const int failed = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) fail("making a process", failed);
  reported.reset();
  Failure failure{};
  ssize_t size = 0;
  while ((size = ::read(report.get(), &failure, sizeof failure)) < 0 && errno == EINTR) {
  }
  if (size == sizeof failure) {
    ::waitpid(pid, nullptr, 0);
    failure.step[sizeof failure.step - 1] = '\0';
    fail(fmt::format("{} ('{}')", failure.step, launch.executable).c_str(), failure.error);
  }

  WorkerProcess process;
  process.pid = pid;
  if (!without_pidfds.load()) {
    process.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  }
  // A stopped worker reads nothing, and what asks it for something mustn't wait.
  ::fcntl(ours.descriptor(), F_SETFL, O_NONBLOCK);
  process.control = std::move(ours);
  process.output = std::move(output);
  return process;
}

std::string find_worker_executable() {
  std::vector<std::string> looked;
  const auto usable = [&](const std::string& path) {
    looked.push_back(path);
    return ::access(path.c_str(), X_OK) == 0;
  };
  if (const char* given = std::getenv("NEUROPOD_WORKER"); given != nullptr && *given != '\0') {
    if (usable(given)) return given;
    throw_error(ErrorCode::kUnavailable,
                fmt::format("NEUROPOD_WORKER is '{}', which can't be run: {}", given,
                            std::strerror(errno)));
  }
  Dl_info library{};
  if (::dladdr(reinterpret_cast<void*>(&find_worker_executable), &library) != 0) {
    std::error_code ignored;
    const fs::path folder = fs::weakly_canonical(library.dli_fname, ignored).parent_path();
    // An installed prefix, a wheel and a build tree have lib/ and bin/; Debian's has lib/TRIPLET/.
    for (const char* relative : {"../bin", ".", "../../bin"}) {
      const fs::path path = (folder / relative / "neuropod-worker").lexically_normal();
      if (usable(path.string())) return path.string();
    }
  }
  throw_error(
      ErrorCode::kUnavailable,
      fmt::format("the program neuropod-worker, which runs models in processes of their own, "
                  "isn't installed beside this library; looked for {}; NEUROPOD_WORKER names "
                  "another place",
                  fmt::join(looked, ", ")));
}

}  // namespace neuropod::multiprocess
