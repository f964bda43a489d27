#include "neuropod/bindings/python/gil.hh"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace neuropod::python {
namespace {

// Process-wide, as the interpreter is.
std::atomic<bool> exiting{false};
std::atomic<unsigned long> exiting_thread{0};
std::atomic<int> coming_back{0};

void wait_before_exit() {
  exiting_thread = PyThread_get_thread_ident();
  exiting = true;
  PyThreadState* state = PyEval_SaveThread();
  while (coming_back > 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
  PyEval_RestoreThread(state);
}

}  // namespace

WithoutGil::~WithoutGil() {
  ++coming_back;
  if (exiting && exiting_thread != PyThread_get_thread_ident()) {
    --coming_back;
    for (;;) pause();
  }
  PyEval_RestoreThread(state_);
  --coming_back;
}

void register_exit_handler() {
  nanobind::module_::import_("atexit").attr("register")(nanobind::cpp_function(&wait_before_exit));
}

}  // namespace neuropod::python
