#include "neuropod/backends/worker_memory.hh"

#include <map>
#include <mutex>
#include <string>

namespace neuropod {
namespace {

// Process-wide, as the plug-ins that register are; never destroyed.
struct Adopters {
  std::mutex mutex;
  std::map<std::string, AdoptProcessMemory> by_platform;
};

Adopters& adopters() {
  static auto* const instance = new Adopters;
  return *instance;
}

}  // namespace

WorkerMemory::~WorkerMemory() = default;

bool register_process_memory(const char* platform, AdoptProcessMemory adopt) {
  std::lock_guard lock(adopters().mutex);
  adopters().by_platform[platform] = adopt;
  return true;
}

bool adopt_process_memory(const char* platform, WorkerMemory& memory) {
  AdoptProcessMemory adopt = nullptr;
  {
    std::lock_guard lock(adopters().mutex);
    const auto found = adopters().by_platform.find(platform);
    if (found != adopters().by_platform.end()) adopt = found->second;
  }
  return adopt != nullptr && adopt(memory);
}

}  // namespace neuropod
