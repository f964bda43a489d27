#include "neuropod/bindings/python/gil.hh"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "neuropod/backends/metrics.hh"
#include "neuropod/base/logging.hh"

namespace neuropod::python {
namespace {

// Process-wide, as the interpreter is.
std::atomic<bool> exiting{false};
std::atomic<unsigned long> exiting_thread{0};
std::atomic<int> coming_back{0};
thread_local int own_scopes = 0;  // of WithGil, counted in coming_back

void wait_before_exit() {
  exiting_thread = PyThread_get_thread_ident();
  exiting = true;
  set_log_sink(nullptr);
  set_metrics_observer(nullptr);
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

WithGil::WithGil() noexcept {
  ++coming_back;
  if (exiting || !Py_IsInitialized()) {
    --coming_back;
    return;
  }
  state_ = PyGILState_Ensure();
  held_ = true;
  ++own_scopes;
}

WithGil::~WithGil() {
  if (!held_) return;
  --own_scopes;
  PyGILState_Release(state_);
  --coming_back;
}

void register_exit_handler() {
  nanobind::module_::import_("atexit").attr("register")(nanobind::cpp_function(&wait_before_exit));
  // Of the threads that were on their way, the child has only the one that forked, which may be
  // inside callbacks.
  nanobind::module_::import_("os").attr("register_at_fork")(
      nanobind::arg("after_in_child") = nanobind::cpp_function([] { coming_back = own_scopes; }));
}

}  // namespace neuropod::python
