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
  std::map<std::string, bool> adopted;  // those that were asked, and what they said
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
  std::lock_guard lock(adopters().mutex);
  const auto found = adopters().by_platform.find(platform);
  if (found == adopters().by_platform.end()) return false;
  const auto [asked, first] = adopters().adopted.emplace(platform, false);
  if (first) asked->second = found->second(memory);
  return asked->second;
}

}  // namespace neuropod
