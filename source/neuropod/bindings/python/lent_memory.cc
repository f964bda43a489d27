#include "neuropod/bindings/python/lent_memory.hh"

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

namespace neuropod::python {
namespace {

/// Process-wide, as the GIL is: the thread that releases a reference knows no model. Never
/// destroyed, since frameworks free memory as late as at exit.
struct ReleasedReferences {
  std::atomic<bool> any{false};
  std::mutex mutex;
  std::vector<PyObject*> references;  // guarded by mutex
};

ReleasedReferences& released() {
  static auto* const instance = new ReleasedReferences;
  return *instance;
}

int drop_released_on_main_thread(void*) {
  drop_released();
  return 0;
}

void release(PyObject* owner) {
  // After the interpreter's end there is nobody to give it back to.
  if (!Py_IsInitialized()) return;
  if (PyGILState_Check()) {
    Py_DECREF(owner);
    return;
  }
  bool first;
  {
    ReleasedReferences& queue = released();
    std::lock_guard<std::mutex> lock(queue.mutex);
    first = queue.references.empty();
    queue.references.push_back(owner);
    queue.any.store(true, std::memory_order_release);
  }
  if (first) Py_AddPendingCall(&drop_released_on_main_thread, nullptr);
}

}  // namespace

Deleter hold_until_released(PyObject* owner) {
  Py_INCREF(owner);
  return [owner](void*) { release(owner); };
}

void drop_released() {
  ReleasedReferences& queue = released();
  if (!queue.any.load(std::memory_order_acquire)) return;
  std::vector<PyObject*> references;
  {
    std::lock_guard<std::mutex> lock(queue.mutex);
    references.swap(queue.references);
    queue.any.store(false, std::memory_order_release);
  }
  for (PyObject* reference : references) Py_DECREF(reference);
}

}  // namespace neuropod::python
