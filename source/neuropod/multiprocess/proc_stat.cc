#include "neuropod/multiprocess/proc_stat.hh"

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>

namespace neuropod::multiprocess {

// proc(5): of stat the fields after the name in parentheses, of statm resident and shared pages.
ProcStat read_proc_stat(pid_t pid) {
  ProcStat result;
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(stat, text)) return result;
  const size_t end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos) return result;
  std::istringstream fields(text.substr(end_of_name + 1));
  std::string ignored;
  fields >> result.state;
  for (int i = 0; i < 10; ++i) fields >> ignored;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  result.cpu_seconds = (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));

  std::ifstream statm(fmt::format("/proc/{}/statm", pid));
  uint64_t size = 0;
  uint64_t resident = 0;
  uint64_t shared = 0;
  if (statm >> size >> resident >> shared && resident > shared) {
    result.private_bytes = (resident - shared) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  }
  return result;
}

}  // namespace neuropod::multiprocess
