#include "neuropod/multiprocess/worker_list.hh"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "neuropod/base/owned_descriptor.hh"
#include "neuropod/multiprocess/channel/channel_layout.hh"
#include "neuropod/multiprocess/proc_stat.hh"

namespace neuropod::multiprocess {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTitle = "neuropod-worker";
constexpr const char* kListeningTitle = "neuropod-worker: at ";
constexpr const char* kChannel = "/memfd:neuropod-channel";

std::string title_of(const fs::path& process) {
  std::ifstream file(process / "cmdline", std::ios::binary);
  std::string title;
  std::getline(file, title, '\0');
  return title;
}

template <size_t size>
std::string text_of(const std::array<char, size>& text) {
  return {text.begin(), std::find(text.begin(), text.end(), '\0')};
}

// What a channel says; false if `path` isn't one of this version.
bool read_channel(const fs::path& path, WorkerInfo* info) {
  const OwnedDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0 ||
      static_cast<size_t>(status.st_size) < sizeof(ChannelLayout)) {
    return false;
  }
  void* memory = ::mmap(nullptr, sizeof(ChannelLayout), PROT_READ, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return false;
  const auto& layout = *static_cast<const ChannelLayout*>(memory);
  const bool known =
      layout.magic.load() == kChannelMagic && layout.version.load() == kChannelVersion;
  if (known) {
    const ChannelStatus& channel = layout.status;
    info->model = text_of(channel.model);
    info->platform = text_of(channel.platform);
    info->package = text_of(channel.package);
    info->host_pid = static_cast<int64_t>(channel.host_pid.load());
    info->restarts = channel.restarts.load();
    info->calls = channel.calls.load();
    info->input_bytes = channel.input_bytes.load();
    info->output_bytes = channel.output_bytes.load();
    for (const CallSlot& slot : layout.slots) {
      const CallState state = slot.state.load();
      if (state == CallState::kSubmitted || state == CallState::kRunning) ++info->calls_in_flight;
    }
    const bool ready = channel.ready.load() != 0;
    info->state = !ready ? "starting" : info->calls_in_flight > 0 ? "busy" : "ready";
    const auto started = static_cast<int64_t>(channel.started_at.load());
    if (started > 0) info->running_seconds = static_cast<double>(std::time(nullptr) - started);
  }
  ::munmap(memory, sizeof(ChannelLayout));
  return known;
}

void add_worker(const fs::path& process, pid_t pid, const std::string& title,
                std::vector<WorkerInfo>* workers) {
  WorkerInfo info;
  info.pid = pid;
  const ProcStat stat = read_proc_stat(pid);
  if (stat.state == 0 || stat.state == 'Z') return;
  info.cpu_seconds = stat.cpu_seconds;
  info.memory_bytes = stat.private_bytes;
  info.state = stat.state == 'T'                      ? "stopped"
               : title.rfind(kListeningTitle, 0) == 0 ? "idle"
                                                      : "starting";
  bool any = false;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(process / "fd", ignored)) {
    const fs::path target = fs::read_symlink(entry.path(), ignored);
    if (target.string().rfind(kChannel, 0) != 0) continue;
    WorkerInfo of_host = info;
    if (!read_channel(entry.path(), &of_host)) continue;
    if (stat.state == 'T') of_host.state = "stopped";
    workers->push_back(std::move(of_host));
    any = true;
  }
  if (!any) workers->push_back(std::move(info));
}

}  // namespace

std::vector<WorkerInfo> list_workers(const std::string& proc) {
  std::vector<WorkerInfo> workers;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(proc, ignored)) {
    const std::string name = entry.path().filename().string();
    const pid_t pid = std::atoi(name.c_str());
    struct stat status{};
    if (pid <= 0 || ::stat(entry.path().c_str(), &status) != 0 || status.st_uid != ::geteuid())
      continue;
    const std::string title = title_of(entry.path());
    if (title.rfind(kTitle, 0) == 0) add_worker(entry.path(), pid, title, &workers);
  }
  std::sort(workers.begin(), workers.end(),
            [](const WorkerInfo& one, const WorkerInfo& other) { return one.pid < other.pid; });
  return workers;
}

}  // namespace neuropod::multiprocess
