#pragma once

#include <mutex>

namespace neuropod {

/// A mutex of the whole process, which a forked child can use though another thread of the parent
/// may have held it: forking waits until nobody holds it. So it must be held for moments only, and
/// no other lock may be taken meanwhile.
///
/// Never destroyed: make it a part of something that isn't. Works with std::lock_guard.
/// **Thread safety**: as std::mutex.
class ForkSafeMutex {
 public:
  ForkSafeMutex();
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

}  // namespace neuropod
