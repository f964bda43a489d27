#include "neuropod/multiprocess/worker_limits.hh"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "neuropod/base/error.hh"

namespace neuropod::multiprocess {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr uint64_t kLeastMemory = uint64_t{64} << 20;
constexpr uint64_t kLeastArena = uint64_t{16} << 20;
constexpr int kMostWorkers = 1024;
constexpr int kMostConcurrency = 64;
constexpr uint64_t kCfsPeriodUs = 100'000;

[[noreturn]] void refuse(const std::string& problem) {
  throw_error(ErrorCode::kInvalidArgument, "ope_options." + problem);
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

void check_cpus(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  const std::vector<int> allowed = allowed_cpus();
  for (const int cpu : cpus) {
    if (std::find(allowed.begin(), allowed.end(), cpu) != allowed.end()) continue;
    refuse(fmt::format("cpus holds {}, and this process may run on the CPUs {}", cpu,
                       fmt::join(allowed, ", ")));
  }
}

void check_range(const char* name, int64_t value, int64_t least, int64_t most) {
  if (value < least || value > most) {
    refuse(fmt::format("{} is expected to be from {} to {}, but is {}", name, least, most, value));
  }
}

void check_environment(const std::map<std::string, std::string>& env) {
  for (const auto& [name, value] : env) {
    if (name.empty() || name.find('=') != std::string::npos ||
        name.find('\0') != std::string::npos || value.find('\0') != std::string::npos) {
      refuse(fmt::format("env holds '{}', which can't be an environment variable", name));
    }
  }
}

void check_joined(const RuntimeOptions::OPEOptions& ope) {
  if (ope.control_queue_name.empty()) return;
  const std::pair<const char*, bool> given[] = {{"cpus", !ope.cpus.empty()},
                                                {"cpu_quota", ope.cpu_quota != 0},
                                                {"nice", ope.nice != 0},
                                                {"memory_limit", ope.memory_limit != 0},
                                                {"gpu", !ope.gpu.empty()},
                                                {"env", !ope.env.empty()},
                                                {"num_workers", ope.num_workers != 1},
                                                {"core_dumps", ope.core_dumps}};
  for (const auto& [name, is_given] : given) {
    if (!is_given) continue;
    refuse(
        fmt::format("{} can't be given together with control_queue_name '{}': that worker runs "
                    "already, and whoever started it shaped its process",
                    name, ope.control_queue_name));
  }
}

void check_stateful(const RuntimeOptions::OPEOptions& ope) {
  if (ope.num_workers != 1) {
    refuse(
        fmt::format("num_workers is {}, but the model keeps state between calls, which several "
                    "workers would each have their own of; leave it 1",
                    ope.num_workers));
  }
  if (ope.concurrency != 1) {
    refuse(
        fmt::format("concurrency is {}, but the model keeps state between calls, so they run one "
                    "after the other; leave it 1",
                    ope.concurrency));
  }
  if (ope.retries != 0) {
    refuse(
        fmt::format("retries is {}, but the model keeps state between calls, which dies with its "
                    "worker; leave it 0",
                    ope.retries));
  }
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    const size_t begin = part.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    parts.push_back(part.substr(begin, part.find_last_not_of(' ') - begin + 1));
  }
  return parts;
}

bool is_index(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// What CUDA_VISIBLE_DEVICES takes: "0", "1,3", "GPU-2f6c…", "MIG-…".
void check_gpu(const std::string& gpu) {
  const std::vector<std::string> parts = split(gpu);
  const bool known = std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
    return is_index(part) || part.rfind("GPU-", 0) == 0 || part.rfind("MIG-", 0) == 0;
  });
  if (gpu.empty() || (known && !parts.empty())) return;
  refuse(
      fmt::format("gpu is expected to be numbers of GPUs or their names, like '0', '0,1' or "
                  "'GPU-2f6c27b1', but is '{}'; visible_device = CPU is for none",
                  gpu));
}

// The GPU that is number `index` for this process.
std::string seen_gpu(const char* visible_here, const std::string& index) {
  if (visible_here == nullptr) return index;
  const std::vector<std::string> seen = split(visible_here);
  const auto number = static_cast<size_t>(std::strtoul(index.c_str(), nullptr, 10));
  if (number < seen.size()) return seen[number];
  throw_error(
      ErrorCode::kInvalidArgument,
      fmt::format("GPU {} isn't visible to this process: CUDA_VISIBLE_DEVICES is '{}', which "
                  "holds {} of them, counted from 0",
                  index, visible_here, seen.size()));
}

bool write_file(const fs::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  return file.flush().good();
}

uint64_t counter_in(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  std::string name;
  uint64_t value = 0;
  while (file >> name >> value) {
    if (name == key) return value;
  }
  return 0;
}

// The cgroup of this process in a hierarchy: "" for v2, or a v1 controller.
std::string own_group(const std::string& controller) {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const auto list = split(names);
    const bool match = controller.empty()
                           ? names.empty()
                           : std::find(list.begin(), list.end(), controller) != list.end();
    if (match) return line.substr(second + 1);
  }
  return "/";
}

uint64_t machine_memory() {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return uint64_t{1} << 30;  // sanitizers keep a shadow of all that is mapped
#endif
  struct sysinfo info{};
  if (::sysinfo(&info) != 0) return uint64_t{4} << 30;
  return static_cast<uint64_t>(info.totalram) * info.mem_unit;
}

bool holds(const fs::path& file, const std::string& word) {
  std::ifstream stream(file);
  for (std::string one; stream >> one;) {
    if (one == word) return true;
  }
  return false;
}

std::string group_name() {
  static std::atomic<unsigned> number{0};
  return fmt::format("neuropod-{}-{}", ::getpid(), ++number);
}

// Removes what a host that is gone has left.
void sweep(const fs::path& parent) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    const std::string name = entry.path().filename().string();
    int pid = 0;
    if (std::sscanf(name.c_str(), "neuropod-%d-", &pid) != 1) continue;
    if (::kill(pid, 0) != 0 && errno == ESRCH) ::rmdir(entry.path().c_str());
  }
}

}  // namespace

void check_ope_options(const RuntimeOptions& options, bool stateful) {
  const RuntimeOptions::OPEOptions& ope = options.ope_options;
  check_cpus(ope.cpus);
  if (!(ope.cpu_quota >= 0) || !std::isfinite(ope.cpu_quota) ||
      (ope.cpu_quota > 0 && ope.cpu_quota < 0.01)) {
    refuse(fmt::format(
        "cpu_quota is expected to be a number of CPUs from 0.01 (0: no limit), but is {}",
        ope.cpu_quota));
  }
  check_range("threads", ope.threads, 0, 4096);
  check_range("nice", ope.nice, 0, 19);
  if (ope.memory_limit != 0 && ope.memory_limit < kLeastMemory) {
    refuse(
        fmt::format("memory_limit is {} bytes, less than a worker without a model needs; give at "
                    "least {}",
                    ope.memory_limit, kLeastMemory));
  }
  if (ope.timeout && ope.timeout->count() <= 0) {
    refuse(fmt::format(
        "timeout is {} ms, which is no deadline a call could meet; leave it out for none",
        ope.timeout->count()));
  }
  if (ope.startup_timeout.count() <= 0) {
    refuse(fmt::format("startup_timeout is expected to be more than 0, but is {} ms",
                       ope.startup_timeout.count()));
  }
  if (ope.kill_grace.count() < 0) {
    refuse(fmt::format("kill_grace is expected to be 0 or more, but is {} ms",
                       ope.kill_grace.count()));
  }
  check_range("retries", ope.retries, 0, 1000);
  check_range("num_workers", ope.num_workers, 1, kMostWorkers);
  check_range("concurrency", ope.concurrency, 1, kMostConcurrency);
  check_environment(ope.env);
  check_gpu(ope.gpu);
  if (!ope.gpu.empty() && options.visible_device == Device::CPU) {
    refuse(fmt::format(
        "gpu is '{}', but visible_device says that the model runs on the CPU; leave one "
        "of them out",
        ope.gpu));
  }
  check_joined(ope);
  if (stateful) check_stateful(ope);
}

std::string worker_visible_gpus(const RuntimeOptions& options, const char* visible_here) {
  if (options.visible_device == Device::CPU) return "";
  if (options.ope_options.gpu.empty()) {
    // The default mustn't fail where there are no GPUs at all.
    if (options.visible_device == Device::GPU0 && visible_here != nullptr) {
      const std::vector<std::string> seen = split(visible_here);
      return seen.empty() ? "" : seen.front();
    }
    return seen_gpu(visible_here, std::to_string(options.visible_device));
  }
  std::vector<std::string> gpus;
  for (const std::string& gpu : split(options.ope_options.gpu)) {
    gpus.push_back(is_index(gpu) ? seen_gpu(visible_here, gpu) : gpu);
  }
  return fmt::format("{}", fmt::join(gpus, ","));
}

struct WorkerCgroup::Rep {
  std::vector<fs::path> folders;   // one, or one per v1 controller
  std::vector<std::string> procs;  // their cgroup.procs, ready for add()
  fs::path memory;                 // the one with the memory limit; or empty
  bool v2 = false;
  uint64_t kills_before = 0;

  uint64_t kills() const {
    if (memory.empty()) return 0;
    return counter_in(memory / (v2 ? "memory.events" : "memory.oom_control"), "oom_kill");
  }

  bool make(const fs::path& parent, const std::string& name, std::string* why) {
    sweep(parent);
    const fs::path folder = parent / name;
    if (::mkdir(folder.c_str(), 0755) != 0) {
      *why = fmt::format("'{}' can't be made: {}", folder.string(), std::strerror(errno));
      return false;
    }
    folders.push_back(folder);
    procs.push_back((folder / "cgroup.procs").string());
    return true;
  }

  bool set(const fs::path& file, const std::string& value, std::string* why) {
    if (write_file(file, value)) return true;
    *why = fmt::format("'{}' can't be set to {}", file.string(), value);
    return false;
  }
};

WorkerCgroup::WorkerCgroup(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}

WorkerCgroup::~WorkerCgroup() {
  for (const fs::path& folder : rep_->folders) {
    for (int attempt = 0; attempt < 100 && ::rmdir(folder.c_str()) != 0 && errno == EBUSY;
         ++attempt) {
      std::ifstream file(folder / "cgroup.procs");
      for (pid_t pid = 0; file >> pid;) ::kill(pid, SIGKILL);
      std::this_thread::sleep_for(milliseconds(10));
    }
  }
}

std::unique_ptr<WorkerCgroup> WorkerCgroup::create(uint64_t memory_bytes, double cpu_quota,
                                                   std::string* why, const std::string& root) {
  const std::string name = group_name();
  const std::string quota = std::to_string(std::llround(cpu_quota * double(kCfsPeriodUs)));

  // v2, if the controllers that are needed are handed down to our group.
  for (const fs::path& base : {fs::path(root), fs::path(root) / "unified"}) {
    const fs::path parent = base / own_group("").substr(1);
    if (!fs::exists(parent / "cgroup.controllers")) continue;
    const bool has = (memory_bytes == 0 || holds(parent / "cgroup.subtree_control", "memory")) &&
                     (cpu_quota == 0 || holds(parent / "cgroup.subtree_control", "cpu"));
    if (!has) {
      *why = fmt::format("'{}' doesn't hand the controllers down", parent.string());
      continue;
    }
    auto rep = std::make_unique<Rep>();
    rep->v2 = true;
    if (!rep->make(parent, name, why)) continue;
    std::unique_ptr<WorkerCgroup> group(new WorkerCgroup(std::move(rep)));
    const fs::path folder = group->rep_->folders.front();
    if (memory_bytes != 0) {
      if (!group->rep_->set(folder / "memory.max", std::to_string(memory_bytes), why)) continue;
      write_file(folder / "memory.swap.max", "0");
      group->rep_->memory = folder;
    }
    if (cpu_quota != 0 &&
        !group->rep_->set(folder / "cpu.max", fmt::format("{} {}", quota, kCfsPeriodUs), why)) {
      continue;
    }
    group->rep_->kills_before = group->rep_->kills();
    why->clear();
    return group;
  }

  // v1: a hierarchy per controller.
  const auto v1_parent = [&](const char* controller) {
    return fs::path(root) / controller / own_group(controller).substr(1);
  };
  auto rep = std::make_unique<Rep>();
  std::unique_ptr<WorkerCgroup> group(new WorkerCgroup(std::move(rep)));
  if (memory_bytes != 0) {
    const fs::path parent = v1_parent("memory");
    if (!fs::exists(parent / "memory.limit_in_bytes")) {
      if (why->empty()) *why = fmt::format("there is no memory controller below '{}'", root);
      return nullptr;
    }
    if (!group->rep_->make(parent, name, why)) return nullptr;
    const fs::path folder = group->rep_->folders.back();
    if (!group->rep_->set(folder / "memory.limit_in_bytes", std::to_string(memory_bytes), why)) {
      return nullptr;
    }
    write_file(folder / "memory.memsw.limit_in_bytes", std::to_string(memory_bytes));
    group->rep_->memory = folder;
  }
  if (cpu_quota != 0) {
    const fs::path parent = v1_parent("cpu");
    if (!fs::exists(parent / "cpu.cfs_quota_us")) {
      if (why->empty()) *why = fmt::format("there is no cpu controller below '{}'", root);
      return nullptr;
    }
    if (!group->rep_->make(parent, name, why)) return nullptr;
    const fs::path folder = group->rep_->folders.back();
    if (!group->rep_->set(folder / "cpu.cfs_period_us", std::to_string(kCfsPeriodUs), why) ||
        !group->rep_->set(folder / "cpu.cfs_quota_us", quota, why)) {
      return nullptr;
    }
  }
  group->rep_->kills_before = group->rep_->kills();
  why->clear();
  return group;
}

bool WorkerCgroup::add(pid_t pid) const noexcept {
  char text[16];
  int length = 0;
  // No snprintf: this runs between fork and exec.
  char digits[16];
  int count = 0;
  for (auto rest = static_cast<unsigned>(pid); rest != 0 || count == 0; rest /= 10) {
    digits[count++] = static_cast<char>('0' + rest % 10);
  }
  while (count > 0) text[length++] = digits[--count];
  for (const std::string& procs : rep_->procs) {
    const OwnedDescriptor file(::open(procs.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file || ::write(file.get(), text, static_cast<size_t>(length)) != length) return false;
  }
  return true;
}

bool WorkerCgroup::killed_for_memory() const noexcept {
  try {
    return rep_->kills() > rep_->kills_before;
  } catch (...) {
    return false;
  }
}

WorkerLimits worker_limits(const RuntimeOptions& options, std::unique_ptr<WorkerCgroup>* cgroup) {
  const RuntimeOptions::OPEOptions& ope = options.ope_options;
  WorkerLimits limits;
  limits.cpus = ope.cpus;
  limits.nice = ope.nice;
  limits.core_dumps = ope.core_dumps;
  limits.arena_bytes = std::max<uint64_t>(machine_memory(), uint64_t{1} << 30);
  if (ope.memory_limit == 0 && ope.cpu_quota == 0) return limits;

  std::string why;
  std::unique_ptr<WorkerCgroup> made = WorkerCgroup::create(ope.memory_limit, ope.cpu_quota, &why);
  if (made == nullptr && ope.cpu_quota != 0) {
    refuse(
        fmt::format("cpu_quota is {}, which needs a cgroup that this process may write: {}. Run as "
                    "root or with a delegated cgroup, or use cpus, threads or nice",
                    ope.cpu_quota, why));
  }
  if (ope.memory_limit != 0) {
    if (made != nullptr) {
      limits.arena_bytes = std::min(limits.arena_bytes, ope.memory_limit);
    } else {
      // Tensors are files to the kernel, which RLIMIT_DATA doesn't count: together they are the
      // limit.
      limits.heap_bytes = ope.memory_limit / 2;
      limits.arena_bytes = std::max(ope.memory_limit / 4, kLeastArena);
    }
  }
  limits.cgroup = made.get();
  *cgroup = std::move(made);
  return limits;
}

bool apply_limits(const WorkerLimits& limits, const char** what) noexcept {
  if (!limits.cpus.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : limits.cpus) CPU_SET(cpu, &set);
    *what = "cpus";
    if (::sched_setaffinity(0, sizeof set, &set) != 0) return false;
  }
  if (limits.nice != 0) {
    *what = "nice";
    const int now = ::getpriority(PRIO_PROCESS, 0);
    if (::setpriority(PRIO_PROCESS, 0, std::min(now + limits.nice, 19)) != 0) return false;
  }
  *what = "core_dumps";
  rlimit core{};
  if (::getrlimit(RLIMIT_CORE, &core) != 0) return false;
  core.rlim_cur = limits.core_dumps ? core.rlim_max : 0;
  if (::setrlimit(RLIMIT_CORE, &core) != 0) return false;
  if (limits.heap_bytes != 0) {
    *what = "memory_limit";
    const rlimit data{limits.heap_bytes, limits.heap_bytes};
    if (::setrlimit(RLIMIT_DATA, &data) != 0) return false;
  }
  return true;
}

}  // namespace neuropod::multiprocess
