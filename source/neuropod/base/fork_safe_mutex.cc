#include "neuropod/base/fork_safe_mutex.hh"

#include <pthread.h>

#include <vector>

namespace neuropod {
namespace {

// All there are. Forking takes this list's mutex first.
struct AllMutexes {
  std::mutex mutex;  // guards `all`
  std::vector<ForkSafeMutex*> all;
};

void lock_all();
void unlock_all();

AllMutexes& all_mutexes() {
  static auto* const instance = [] {
    pthread_atfork(lock_all, unlock_all, unlock_all);
    return new AllMutexes;
  }();
  return *instance;
}

void lock_all() {
  all_mutexes().mutex.lock();
  for (ForkSafeMutex* mutex : all_mutexes().all) mutex->lock();
}

void unlock_all() {
  for (ForkSafeMutex* mutex : all_mutexes().all) mutex->unlock();
  all_mutexes().mutex.unlock();
}

}  // namespace

ForkSafeMutex::ForkSafeMutex() {
  std::lock_guard lock(all_mutexes().mutex);
  all_mutexes().all.push_back(this);
}

}  // namespace neuropod
