// Prints its own resident memory and what is mapped into it: once linked to nothing, once to
// libneuropod (NEUROPOD_LINKED) without loading a model. The difference is what linking costs.

#include <fstream>
#include <iostream>
#include <set>
#include <string>

#ifdef NEUROPOD_LINKED
#include "neuropod/neuropod.hh"
#endif

int main() {
#ifdef NEUROPOD_LINKED
  if (std::string(neuropod::library_version()).empty()) return 1;
#endif
  std::string line;
  long resident_kib = 0;
  for (std::ifstream status("/proc/self/status"); std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) resident_kib = std::stol(line.substr(6));
  }
  std::set<std::string> files;
  for (std::ifstream maps("/proc/self/maps"); std::getline(maps, line);) {
    const size_t slash = line.find('/');
    if (slash != std::string::npos) files.insert(line.substr(slash));
  }
  std::cout << "{\"resident_kib\": " << resident_kib << ", \"files\": [";
  const char* separator = "";
  for (const std::string& file : files) {
    std::cout << separator << '"' << file << '"';
    separator = ", ";
  }
  std::cout << "]}\n";
}
