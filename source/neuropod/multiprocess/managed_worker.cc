#include "neuropod/multiprocess/managed_worker.hh"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <ctime>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "neuropod/multiprocess/fault_point.hh"
#include "neuropod/multiprocess/fork_detector.hh"
#include "neuropod/multiprocess/proc_stat.hh"
#include "neuropod/multiprocess/restart_policy.hh"
#include "neuropod/multiprocess/supervisor_loop.hh"
#include "neuropod/multiprocess/worker_output.hh"
#include "neuropod/multiprocess/worker_process.hh"
#include "neuropod/version.hh"

namespace neuropod::multiprocess {
namespace {

using std::chrono::milliseconds;
using Clock = SupervisorLoop::Clock;

constexpr auto kTimeToEnd = std::chrono::seconds(1);
constexpr auto kTimeToDie = std::chrono::seconds(10);  // when killed

template <size_t size>
void copy_text(const std::string& text, std::array<char, size>* to) {
  const size_t bytes = std::min(text.size(), size - 1);
  std::memcpy(to->data(), text.data(), bytes);
  (*to)[bytes] = '\0';
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal)
                         : fmt::format("signal {} (SIG{})", signal, name);
}

std::string describe_end(const siginfo_t& end) {
  if (end.si_code == CLD_EXITED) return fmt::format("exited with code {}", end.si_status);
  return fmt::format("killed by {}", signal_name(end.si_status));
}

// Where this code lies, " 'PATH'".
std::string own_library() {
  Dl_info library{};
  const bool known = ::dladdr(reinterpret_cast<void*>(&own_library), &library) != 0;
  return known ? fmt::format(" '{}'", library.dli_fname) : "";
}

}  // namespace

// The supervisor thread's, but for what `mutex` guards and the atomics.
struct ManagedWorker::Rep : std::enable_shared_from_this<Rep> {
  Rep(WorkerSpec what, std::function<void()> on_change)
      : spec(std::move(what)),
        changed(std::move(on_change)),
        generation(process_generation()),
        was_ready(spec.known_to_load) {
    if (was_ready) policy.became_ready();
  }

  // One life, from its start to its end.
  struct Life {
    std::shared_ptr<Incarnation> incarnation;
    std::unique_ptr<WorkerCgroup> cgroup;
    WorkerProcess process;
    std::optional<WorkerOutput> output;
    SupervisorLoop::Id on_end = 0, on_message = 0, on_output = 0, on_timeout = 0;
    Clock::time_point began = Clock::now();
    std::string executable;
    bool is_child = true;
    bool ready = false;
    std::string reason;            // why we killed it
    std::optional<Error> verdict;  // what a death before ready is, if not a death like any other
  };

  const WorkerSpec spec;
  const std::function<void()> changed;
  const uint64_t generation;
  SupervisorLoop* loop = nullptr;

  std::unique_ptr<Life> life;
  RestartPolicy policy;
  SupervisorLoop::Id on_restart = 0;
  SupervisorLoop::Id on_kill = 0;     // a worker that was asked to end and doesn't
  SupervisorLoop::Id on_give_up = 0;  // nor when it was killed
  uint64_t lives = 0;
  bool stopping = false;
  bool was_ready;       // it, or another process's: the model can be loaded
  bool served = false;  // it has been ready

  std::atomic<State> state{State::kStarting};
  std::atomic<uint64_t> deaths{0};
  std::atomic<uint64_t> restarts{0};
  mutable std::mutex mutex;
  std::condition_variable stopped;
  // Guarded by `mutex`.
  bool gone = false;  // stopped, and `changed` won't be called again
  std::shared_ptr<Incarnation> current;
  std::optional<Error> problem;
  pid_t pid = 0;
  std::shared_ptr<HostChannel> channel;
  Clock::time_point began{};

  bool is_forked() const { return process_generation() != generation; }
  const RuntimeOptions::OPEOptions& ope() const { return spec.options.ope_options; }
  std::string name() const { return fmt::format("model '{}'", spec.model); }

  template <typename Function>
  std::function<void()> here(Function&& function) {
    return [self = this->shared_from_this(), function = std::forward<Function>(function)] {
      function(*self);
    };
  }

  void set_state(State next, std::optional<Error> why = std::nullopt) {
    {
      std::lock_guard lock(mutex);
      state.store(next);
      problem = std::move(why);
    }
    changed();
    if (next != State::kStopped) return;
    std::lock_guard lock(mutex);
    gone = true;
    stopped.notify_all();
  }

  void begin_life();
  void prepare(Life* next);
  void spawn(Life* next, WorkerLimits limits);
  void join(Life* next);
  void not_begun(std::unique_ptr<Life> next, const Error& error);
  bool receive_message();
  void take(const ControlMessage& content);
  void misunderstood(const std::string& why);
  void loaded(const LoadReply& reply);
  void refuse(const Error& verdict);
  void look_for_end();
  void end_life(const std::string& how);
  void start_again(milliseconds wait, const std::string& cause);
  void kill_process(const std::string& reason);
  void close_watches();
  void begin_stop();
};

void ManagedWorker::Rep::prepare(Life* next) {
  std::unique_ptr<WorkerCgroup> cgroup;
  WorkerLimits limits = worker_limits(spec.options, &cgroup);
  next->cgroup = std::move(cgroup);

  auto incarnation = std::make_shared<Incarnation>();
  incarnation->number = ++lives;
  auto channel_arena = Arena::create("neuropod-channel", HostChannel::arena_bytes());
  incarnation->output_arena =
      Arena::create("neuropod-outputs", limits.arena_bytes, kLeastArenaBytes);
  incarnation->channel = std::make_shared<HostChannel>(channel_arena, ope().spin);
  ChannelStatus& status = incarnation->channel->layout().status;
  copy_text(spec.model, &status.model);
  copy_text(spec.platform, &status.platform);
  copy_text(spec.load.path, &status.package);
  status.host_pid.store(static_cast<uint64_t>(::getpid()));
  status.restarts.store(static_cast<uint32_t>(restarts.load()));
  next->incarnation = incarnation;

  if (ope().control_queue_name.empty()) {
    spawn(next, limits);
  } else {
    join(next);
  }
  incarnation->pid = next->process.pid;
  next->output.emplace(fmt::format("model '{}', worker {}", spec.model, next->process.pid));
  next->process.control.send(serialize(spec.load),
                             {channel_arena->descriptor(), spec.input_arena->descriptor(),
                              incarnation->output_arena->descriptor()});
  // The worker has them now; what is mapped stays mapped.
  channel_arena->close_descriptor();
  incarnation->output_arena->close_descriptor();
  fault_point("sent");
}

void ManagedWorker::Rep::spawn(Life* next, WorkerLimits limits) {
  WorkerLaunch launch;
  launch.executable = next->executable = find_worker_executable();
  launch.title = fmt::format("neuropod-worker: {} (host {})", spec.model, ::getpid());
  launch.env = ope().env;
  launch.limits = std::move(limits);
  next->process = start_worker(launch);
  fault_point("spawned");
}

void ManagedWorker::Rep::join(Life* next) {
  next->is_child = false;
  next->process.control = ControlSocket::connect(ope().control_queue_name);
  ::fcntl(next->process.control.descriptor(), F_SETFL, O_NONBLOCK);
  next->process.pid = next->process.control.peer_pid();
  if (next->process.pid > 0) {
    next->process.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, next->process.pid, 0)));
  }
}

void ManagedWorker::Rep::begin_life() {
  if (stopping) return;
  on_restart = 0;
  auto next = std::make_unique<Life>();
  try {
    prepare(next.get());
    life = std::move(next);
    const auto end = here([](Rep& self) { self.look_for_end(); });
    if (life->process.pidfd) {
      life->on_end = loop->watch(life->process.pidfd.get(), end);
    } else if (life->is_child) {
      // Where the kernel, or a sandbox, has no pidfds.
      std::thread([end, to = loop, pid = life->process.pid] {
        siginfo_t ignored{};
        ::waitid(P_PID, static_cast<id_t>(pid), &ignored, WEXITED | WNOWAIT);
        to->post(end);
      }).detach();
    }
    life->on_message = loop->watch(life->process.control.descriptor(),
                                   here([](Rep& self) { self.receive_message(); }));
    if (life->process.output) {
      life->on_output = loop->watch(life->process.output.get(), here([](Rep& self) {
                                      if (self.life->output->drain(self.life->process.output.get()))
                                        return;
                                      self.loop->unwatch(std::exchange(self.life->on_output, 0));
                                    }));
    }
    life->on_timeout =
        loop->at(Clock::now() + ope().startup_timeout, here([](Rep& self) {
                   self.life->on_timeout = 0;
                   self.refuse(Error(ErrorCode::kTimeout,
                                     fmt::format("the worker had not loaded the model after {} s, "
                                                 "ope_options.startup_timeout{}",
                                                 double(self.ope().startup_timeout.count()) / 1000,
                                                 self.life->output->last_lines())));
                 }));
  } catch (const Error& error) {
    return not_begun(std::move(next), error);
  } catch (const std::exception& exception) {
    return not_begun(
        std::move(next),
        Error(ErrorCode::kUnavailable, fmt::format("can't start a worker: {}", exception.what())));
  }
  std::lock_guard lock(mutex);
  pid = life->process.pid;
  channel = life->incarnation->channel;
  began = life->began;
}

// Nothing runs, or something runs and can't be watched.
void ManagedWorker::Rep::not_begun(std::unique_ptr<Life> next, const Error& error) {
  if (life != nullptr) {
    close_watches();
    next = std::move(life);
  }
  if (next->is_child && next->process.pid > 0) {
    ::kill(-next->process.pid, SIGKILL);
    ::kill(next->process.pid, SIGKILL);
    ::waitpid(next->process.pid, nullptr, 0);
  }
  next = nullptr;
  if (!was_ready) return set_state(State::kFailed, error);
  deaths.fetch_add(1);
  const auto wait = policy.died(Clock::now());
  start_again(std::max(wait.value_or(milliseconds(0)), milliseconds(100)), error.message());
}

// False: there was no message.
bool ManagedWorker::Rep::receive_message() {
  try {
    const auto message = life->process.control.receive(false);
    if (!message) {
      loop->unwatch(std::exchange(life->on_message, 0));
      // The end of the socket is a hint only: of our own process the kernel tells the rest.
      if (!life->is_child) {
        end_life(fmt::format("at '{}' has closed the connection", ope().control_queue_name));
      }
      return false;
    }
    if (message->text.empty()) return false;
    take(deserialize(message->text));
  } catch (const std::exception& exception) {
    misunderstood(fmt::format("what the worker says can't be understood: {}", exception.what()));
  }
  return true;
}

void ManagedWorker::Rep::take(const ControlMessage& content) {
  if (const auto* reply = std::get_if<LoadReply>(&content)) return loaded(*reply);
  if (const auto* failure = std::get_if<LoadFailure>(&content)) {
    return refuse(Error(failure->code, failure->message));
  }
  const auto* refusal = std::get_if<VersionRefusal>(&content);
  if (refusal == nullptr) return misunderstood("the worker sent what only a host sends");
  refuse(Error(
      ErrorCode::kVersionConflict,
      fmt::format("the worker {} is neuropod {} (protocol {}, ABI {}), and this library{} is {} "
                  "(protocol {}, ABI {}); both must be of one version",
                  life->is_child ? fmt::format("'{}'", life->executable)
                                 : fmt::format("at '{}'", ope().control_queue_name),
                  refusal->version, refusal->protocol, refusal->abi, own_library(),
                  NEUROPOD_VERSION, kProtocolVersion, NEUROPOD_ABI_VERSION)));
}

void ManagedWorker::Rep::misunderstood(const std::string& why) {
  loop->unwatch(std::exchange(life->on_message, 0));
  if (!life->ready) return refuse(Error(ErrorCode::kUnavailable, why));
  if (life->is_child) return kill_process(why);
  end_life("was left because " + why);
}

void ManagedWorker::Rep::loaded(const LoadReply& reply) {
  if (life->ready || stopping) return;
  loop->cancel(std::exchange(life->on_timeout, 0));
  life->ready = true;
  life->incarnation->reply = reply;
  if (std::exchange(served, true)) restarts.fetch_add(1);
  life->incarnation->channel->layout().status.restarts.store(
      static_cast<uint32_t>(restarts.load()));
  was_ready = true;
  policy.became_ready();
  fault_point("ready");
  {
    std::lock_guard lock(mutex);
    current = life->incarnation;
  }
  set_state(State::kReady);
}

// This life is over before it was ready, and there will be no other unless an earlier one was.
void ManagedWorker::Rep::refuse(const Error& verdict) {
  if (life->ready || life->verdict || !life->reason.empty()) return;
  std::string reason;
  if (was_ready) {
    reason = fmt::format("it didn't become ready: {}", verdict.message());
  } else {
    life->verdict = verdict;
  }
  if (life->is_child) return kill_process(reason);
  end_life(was_ready ? "was left because " + reason : "was refused");
}

void ManagedWorker::Rep::kill_process(const std::string& reason) {
  if (life->reason.empty()) life->reason = reason;
  // The group, so that what the model has forked goes along.
  ::kill(-life->process.pid, SIGKILL);
  ::kill(life->process.pid, SIGKILL);
}

void ManagedWorker::Rep::look_for_end() {
  if (life == nullptr) return;
  // Why it couldn't load the model may be the last that it said.
  while (life != nullptr && !life->ready && !life->verdict && life->on_message != 0) {
    if (!receive_message()) break;
  }
  if (life == nullptr) return;
  if (!life->is_child) {
    return end_life(fmt::format("at '{}' has ended", ope().control_queue_name));
  }
  siginfo_t end{};
  const auto id = static_cast<id_t>(life->process.pid);
  if (::waitid(P_PID, id, &end, WEXITED | WNOHANG | WNOWAIT) != 0) {
    return end_life("has ended, and something else in this program waited for it");
  }
  if (end.si_pid == 0) return;
  // What the model has forked goes along, while the number of the group can't be another's yet.
  ::kill(-life->process.pid, SIGKILL);
  ::waitid(P_PID, id, &end, WEXITED | WNOHANG);
  std::string how = describe_end(end);
  if (!life->reason.empty()) {
    how = fmt::format("killed because {}", life->reason);
  } else if (life->cgroup != nullptr && life->cgroup->killed_for_memory()) {
    how += fmt::format(": it used more memory than ope_options.memory_limit, {} bytes",
                       ope().memory_limit);
    // The next one would need as much.
    if (!life->ready && !was_ready) {
      life->verdict =
          Error(ErrorCode::kOutOfMemory,
                fmt::format("loading it takes more memory than ope_options.memory_limit, {} bytes; "
                            "raise it{}",
                            ope().memory_limit, life->output->last_lines()));
    }
  } else if (end.si_code != CLD_EXITED && end.si_status == SIGKILL) {
    how += " (out of memory?)";
  }
  end_life(how);
}

void ManagedWorker::Rep::close_watches() {
  loop->unwatch(life->on_end);
  loop->unwatch(life->on_message);
  loop->unwatch(life->on_output);
  loop->cancel(life->on_timeout);
}

void ManagedWorker::Rep::end_life(const std::string& how) {
  close_watches();
  std::unique_ptr<Life> ended = std::move(life);
  loop->cancel(std::exchange(on_kill, 0));
  loop->cancel(std::exchange(on_give_up, 0));
  std::string cause = how;
  try {
    if (ended->process.output) {
      ended->output->drain(ended->process.output.get());
      ended->output->finish();
    }
    cause += ended->output->last_lines();
  } catch (const std::exception&) {  // no memory or thread for the log: callers wait for the rest
  }
  ended->incarnation->cause = cause;
  {
    std::lock_guard lock(mutex);
    current = nullptr;
    channel = nullptr;
    pid = 0;
    if (!stopping) state.store(State::kStarting);
  }
  ended->incarnation->channel->lose();
  const std::optional<Error> verdict = ended->verdict;
  const bool is_child = ended->is_child;
  const pid_t ended_pid = ended->process.pid;
  const std::string executable = ended->executable;
  ended = nullptr;  // whoever is told of its end finds its descriptors closed

  if (stopping) return set_state(State::kStopped);
  if (verdict) return set_state(State::kFailed, verdict);
  deaths.fetch_add(1);
  const auto wait = policy.died(Clock::now());
  if (!wait) {
    return set_state(
        State::kFailed,
        Error(ErrorCode::kLoadFailed,
              fmt::format(
                  "its worker{} died five times before it had loaded the model; the last one {}",
                  is_child ? fmt::format(" ('{}')", executable) : "", cause)));
  }
  const milliseconds pause = is_child ? *wait : std::max(*wait, milliseconds(100));
  log_later(LogLevel::kWarn,
            fmt::format("{}: worker {} {}; {} another one{}", name(), ended_pid, cause,
                        is_child ? "starting" : "looking for",
                        pause.count() == 0 ? "" : fmt::format(" in {} ms", pause.count())));
  start_again(pause, cause);
}

void ManagedWorker::Rep::start_again(milliseconds wait, const std::string& cause) {
  on_restart = loop->at(Clock::now() + wait, here([](Rep& self) {
                          self.set_state(State::kStarting);
                          self.begin_life();
                        }));
  if (wait.count() == 0) {
    changed();
    return;
  }
  set_state(
      State::kBackingOff,
      Error(ErrorCode::kUnavailable,
            fmt::format("its worker has died too often and starts again in {} ms; the last one {}",
                        wait.count(), cause)));
}

void ManagedWorker::Rep::begin_stop() {
  if (stopping) return;
  stopping = true;
  loop->cancel(std::exchange(on_restart, 0));
  {
    std::lock_guard lock(mutex);
    current = nullptr;
  }
  if (life == nullptr) return set_state(State::kStopped);
  life->process.control.send(serialize(ShutdownRequest{}));
  if (!life->is_child) return end_life("was left");
  loop->unwatch(std::exchange(life->on_message, 0));
  life->process.control.close();
  on_kill = loop->at(Clock::now() + kTimeToEnd, here([](Rep& self) {
                       if (self.life != nullptr)
                         self.kill_process("it didn't end when it was asked to");
                     }));
  on_give_up =
      loop->at(Clock::now() + kTimeToEnd + kTimeToDie, here([](Rep& self) {
                 if (self.life == nullptr) return;
                 log_later(LogLevel::kError,
                           fmt::format("{}: worker {} can't be killed (it waits in the kernel)",
                                       self.name(), self.life->process.pid));
                 self.end_life("can't be killed");
               }));
}

ManagedWorker::ManagedWorker(WorkerSpec spec, std::function<void()> changed)
    : rep_(std::make_shared<Rep>(std::move(spec), std::move(changed))) {}

ManagedWorker::~ManagedWorker() {
  // In a forked child nothing of the parent's may be let go of: cgroups would be removed.
  if (rep_->is_forked()) {
    static_cast<void>(new (std::nothrow) std::shared_ptr<Rep>(rep_));  // NOLINT(*): lost on purpose
  }
  stop();
}

void ManagedWorker::start() {
  rep_->loop = &SupervisorLoop::instance();
  rep_->loop->post(rep_->here([](Rep& self) { self.begin_life(); }));
}

ManagedWorker::State ManagedWorker::state() const noexcept { return rep_->state.load(); }

std::shared_ptr<Incarnation> ManagedWorker::current() const {
  // Here and below: a forked child may have inherited the lock held.
  if (rep_->is_forked()) return nullptr;
  std::lock_guard lock(rep_->mutex);
  return rep_->current;
}

Error ManagedWorker::problem() const {
  if (rep_->is_forked()) {
    return Error(ErrorCode::kUnavailable, "its workers belong to the process that forked this one");
  }
  std::lock_guard lock(rep_->mutex);
  if (rep_->problem) return *rep_->problem;
  return Error(ErrorCode::kUnavailable, rep_->state.load() == State::kStopped
                                            ? "its workers have been stopped"
                                            : "its worker isn't ready yet");
}

void ManagedWorker::kill(const std::shared_ptr<Incarnation>& incarnation,
                         const std::string& reason) {
  killer()(incarnation, reason);
}

std::function<void(const std::shared_ptr<Incarnation>&, const std::string&)> ManagedWorker::killer()
    const {
  return [rep = rep_](const std::shared_ptr<Incarnation>& incarnation, const std::string& reason) {
    if (rep->loop == nullptr || rep->is_forked()) return;
    rep->loop->post(rep->here([incarnation, reason](Rep& self) {
      if (self.life == nullptr || self.life->incarnation != incarnation) return;
      if (self.life->is_child) return self.kill_process(reason);
      // Not ours to kill: it may have other hosts.
      self.end_life("was left because " + reason);
    }));
  };
}

void ManagedWorker::trim() {
  if (rep_->loop == nullptr || rep_->is_forked()) return;
  rep_->loop->post(rep_->here([](Rep& self) {
    if (self.life != nullptr) self.life->process.control.send(serialize(TrimRequest{}));
  }));
}

void ManagedWorker::stop() {
  if (rep_->loop == nullptr || rep_->is_forked()) return;
  rep_->loop->post(rep_->here([](Rep& self) { self.begin_stop(); }));
  std::unique_lock lock(rep_->mutex);
  // The supervisor gives up on what can't be killed, so this ends.
  rep_->stopped.wait(lock, [this] { return rep_->gone; });
}

WorkerInfo ManagedWorker::info() const {
  WorkerInfo info;
  info.host_pid = ::getpid();
  info.model = rep_->spec.model;
  info.platform = rep_->spec.platform;
  info.package = rep_->spec.load.path;
  info.restarts = rep_->restarts.load();
  if (rep_->is_forked()) return info;
  std::shared_ptr<HostChannel> channel;
  {
    std::lock_guard lock(rep_->mutex);
    info.pid = rep_->pid;
    channel = rep_->channel;
    if (info.pid != 0) {
      info.running_seconds = std::chrono::duration<double>(Clock::now() - rep_->began).count();
    }
  }
  if (channel != nullptr) {
    const ChannelStatus& status = channel->layout().status;
    info.calls = status.calls.load();
    info.input_bytes = status.input_bytes.load();
    info.output_bytes = status.output_bytes.load();
    info.calls_in_flight = channel->calls_in_flight();
  }
  const ProcStat process = info.pid == 0 ? ProcStat{} : read_proc_stat(pid_t(info.pid));
  info.cpu_seconds = process.cpu_seconds;
  info.memory_bytes = process.private_bytes;
  switch (state()) {
    case State::kStarting:
      info.state = "starting";
      break;
    case State::kReady:
      info.state = info.calls_in_flight > 0 ? "busy" : "ready";
      break;
    case State::kBackingOff:
      info.state = "backing off";
      break;
    case State::kFailed:
    case State::kStopped:
      info.state = "failed";
      break;
  }
  if (process.state == 'T') info.state = "stopped";
  return info;
}

uint64_t ManagedWorker::deaths() const noexcept { return rep_->deaths.load(); }
uint64_t ManagedWorker::restarts() const noexcept { return rep_->restarts.load(); }

}  // namespace neuropod::multiprocess
