#pragma once

#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "neuropod/testing/wait_until.hh"

namespace neuropod {

/// What the kernel says of processes, for tests of what they leave behind. All read /proc now.

inline size_t open_descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

/// Mappings of this process that it shares, or shared, with workers.
inline size_t shared_mappings() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    count += line.find("memfd:neuropod") != std::string::npos;
  }
  return count;
}

/// Processes that this one started and hasn't waited for.
inline size_t children() {
  size_t count = 0;
  std::error_code gone;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    std::ifstream file(thread.path() / "children");
    for (pid_t pid = 0; file >> pid;) ++count;
  }
  return count;
}

/// Bytes of memory that are this process's alone; 0 if there is no such process.
inline uint64_t private_bytes(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; file >> word;) {
    uint64_t kilobytes = 0;
    if (word == "RssAnon:" && file >> kilobytes) return kilobytes << 10;
  }
  return 0;
}

/// Whether every thread of a process is stopped.
inline bool is_stopped(pid_t pid) {
  std::error_code gone;
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
    std::ifstream file(thread.path() / "stat");
    std::string text;
    std::getline(file, text);
    const size_t end_of_name = text.rfind(") ");  // proc(5)
    if (end_of_name == std::string::npos || text[end_of_name + 2] != 'T') return false;
  }
  return !gone;
}

/// Stops a process as SIGSTOP does, and waits for it: kill() returns while its threads still run on
/// other CPUs.
inline bool stop_process(pid_t pid) {
  return ::kill(pid, SIGSTOP) == 0 && wait_until([pid] { return is_stopped(pid); });
}

/// The workers that the process `host` started, found by their titles.
inline std::vector<pid_t> workers_of(pid_t host) {
  const std::string mark = "(host " + std::to_string(host) + ")";
  std::vector<pid_t> workers;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    std::ifstream file(entry.path() / "cmdline");
    std::string title;
    if (!std::getline(file, title, '\0') || title.rfind("neuropod-worker", 0) != 0) continue;
    if (title.find(mark) != std::string::npos) {
      workers.push_back(static_cast<pid_t>(std::stoi(entry.path().filename().string())));
    }
  }
  return workers;
}

}  // namespace neuropod
