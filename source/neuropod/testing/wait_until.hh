#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace neuropod {

/// Whether `condition` holds within ten seconds; looks every ten milliseconds.
inline bool wait_until(const std::function<bool()>& condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace neuropod
