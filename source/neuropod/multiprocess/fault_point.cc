#include "neuropod/multiprocess/fault_point.hh"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace neuropod::multiprocess {
namespace {

void sleep_for(long milliseconds) noexcept {
  timespec rest{milliseconds / 1000, milliseconds % 1000 * 1'000'000};
  while (::nanosleep(&rest, &rest) != 0) {
  }
}

void fail(const char* action) noexcept {
  if (std::strcmp(action, "kill") == 0) ::kill(::getpid(), SIGKILL);
  if (std::strcmp(action, "exit") == 0) ::_exit(3);
  if (std::strcmp(action, "abort") == 0) std::abort();
  if (std::strcmp(action, "segv") == 0) ::raise(SIGSEGV);
  static std::atomic<bool> hung{false};
  if (std::strcmp(action, "hang") == 0 ||
      (std::strcmp(action, "hang_once") == 0 && !hung.exchange(true))) {
    for (;;) ::pause();
  }
  if (std::strncmp(action, "sleep=", 6) == 0) sleep_for(std::strtol(action + 6, nullptr, 10));
}

}  // namespace

void fault_point(const char* name) noexcept {
  // Process-wide, as the environment is.
  static const char* const fault = std::getenv("NEUROPOD_TEST_FAULT");
  if (fault == nullptr) return;
  const size_t length = std::strlen(name);
  if (std::strncmp(fault, name, length) == 0 && fault[length] == ':') fail(fault + length + 1);
}

}  // namespace neuropod::multiprocess
