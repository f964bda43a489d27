#include "neuropod/multiprocess/multiprocess_backend.hh"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "neuropod/backends/call_control.hh"
#include "neuropod/backends/library_conflicts.hh"
#include "neuropod/backends/model_metrics.hh"
#include "neuropod/base/error.hh"
#include "neuropod/base/tick_clock.hh"
#include "neuropod/multiprocess/arena_allocator.hh"
#include "neuropod/multiprocess/given_up_calls.hh"
#include "neuropod/multiprocess/process_local.hh"
#include "neuropod/multiprocess/reply_reader.hh"
#include "neuropod/multiprocess/request_writer.hh"
#include "neuropod/multiprocess/worker_limits.hh"
#include "neuropod/multiprocess/worker_pool.hh"
#include "neuropod/version.hh"

namespace neuropod {
namespace {

using multiprocess::CallKind;
using multiprocess::CallSlot;
using multiprocess::GivenUpCalls;
using multiprocess::HostChannel;
using multiprocess::Incarnation;
using multiprocess::InputMemory;
using multiprocess::LoadRequest;
using multiprocess::Reply;
using multiprocess::RequestWriter;
using multiprocess::WorkerPool;
using multiprocess::WorkerSpec;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Deadline = std::optional<Clock::time_point>;

// The host needn't hash what the worker, which reads the model, hashes.
RuntimeOptions options_here(RuntimeOptions options) {
  options.verify_hashes = false;
  return options;
}

std::map<std::string, std::string> module_folders(const std::vector<BackendLoadSpec>& overrides,
                                                  const std::string& platform) {
  std::map<std::string, std::string> folders;
  for (const BackendCandidate& candidate : find_backends(overrides, platform).candidates) {
    const std::string& module = candidate.manifest.python_module;
    if (module.empty() || folders.count(module) != 0) continue;
    if (const auto folder = find_host_module(module)) folders[module] = *folder;
  }
  return folders;
}

std::string describe(milliseconds time) { return fmt::format("{} s", double(time.count()) / 1000); }

// How a call ends before its answer is there.
[[noreturn]] void throw_late(const std::string& what, milliseconds timeout) {
  throw_error(ErrorCode::kTimeout,
              fmt::format("the call had not ended after {} (ope_options.timeout): {}",
                          describe(timeout), what));
}

// Detaches a call's control however the call ends.
class Attachment {
 public:
  Attachment(CallControl* control, HostChannel& channel, uint32_t slot) : control_(control) {
    if (control_ == nullptr) return;
    if (!control_->attach([&channel, slot] { return channel.cancel(slot); })) {
      control_ = nullptr;
      cancelled_ = true;
    }
  }
  ~Attachment() { detach(); }
  Attachment(const Attachment&) = delete;
  void detach() {
    if (control_ != nullptr) std::exchange(control_, nullptr)->detach();
  }
  /// The call is over: cancel() comes too late.
  void close() {
    if (control_ != nullptr) std::exchange(control_, nullptr)->close();
  }
  bool cancelled() const noexcept { return cancelled_; }

 private:
  CallControl* control_;
  bool cancelled_ = false;
};

}  // namespace

namespace {

// What a model has in one process.
struct Client {
  std::shared_ptr<GivenUpCalls> given_up = std::make_shared<GivenUpCalls>();
  std::atomic<uint64_t> last_life{0};  // of a stateful model's worker
  std::mutex loading;
  std::atomic<WorkerPool*> pool{nullptr};
  std::unique_ptr<WorkerPool> owned_pool;  // once, under `loading`

  ~Client() {
    owned_pool = nullptr;
    given_up->sweep();  // everything is over now
  }
};

using ProcessMemory = multiprocess::ProcessLocal<InputMemory>;

}  // namespace

struct MultiprocessNeuropodBackend::Rep {
  Rep(std::shared_ptr<ProcessMemory> tensors, std::string location, std::vector<TensorSpec> results)
      : path(std::move(location)), outputs(std::move(results)), memory(std::move(tensors)) {}

  const std::string path;
  std::string model;
  std::string platform;
  std::vector<BackendLoadSpec> overrides;
  RuntimeOptions options;
  bool stateful = false;
  const std::vector<TensorSpec> outputs;
  NameIndex output_names;

  const std::shared_ptr<ProcessMemory> memory;  // the allocator's, too, which may outlive the model
  std::shared_ptr<NeuropodTensorAllocator> allocator;
  multiprocess::ProcessLocal<Client> clients{[] { return std::make_unique<Client>(); }};

  const RuntimeOptions::OPEOptions& ope() const { return options.ope_options; }
  void load(Client& client);
  WorkerPool& pool(Client& client);
  WorkerSpec spec() const;
};

WorkerSpec MultiprocessNeuropodBackend::Rep::spec() const {
  WorkerSpec spec;
  spec.model = model;
  spec.platform = platform;
  spec.options = options;
  spec.input_arena = memory->get().arena;
  LoadRequest& load = spec.load;
  load.version = NEUROPOD_VERSION;
  load.abi = std::string(NEUROPOD_ABI_VERSION);
  load.host_pid = ::getpid();
  load.path = path;
  load.overrides = overrides;
  load.options = options;
  load.options.use_ope = false;
  load.options.load_model_at_construction = true;
  // The worker sees its own GPUs only, the first of which is number 0.
  if (options.visible_device != Device::CPU) load.options.visible_device = Device::GPU0;
  load.module_folders = module_folders(overrides, platform);
  if (ope().control_queue_name.empty()) {
    spec.options.ope_options.env.try_emplace(
        "CUDA_VISIBLE_DEVICES",
        multiprocess::worker_visible_gpus(options, std::getenv("CUDA_VISIBLE_DEVICES")));
  }
  return spec;
}

// Waits until the workers have loaded the model, for the first time in any process.
void MultiprocessNeuropodBackend::Rep::load(Client& client) {
  CallControl* const control = CallControl::current();
  std::function<bool()> interrupted;
  if (control != nullptr && control->can_be_interrupted()) {
    interrupted = [control] { return control->interrupted(); };
  }
  std::lock_guard lock(client.loading);
  auto made = std::make_unique<WorkerPool>(spec(), ope().num_workers);
  made->start();
  made->wait_until_loaded(interrupted);
  client.owned_pool = std::move(made);
  client.pool.store(client.owned_pool.get(), std::memory_order_release);
}

// The workers of a model that is loaded. A forked child's are started now, and its calls wait for
// them as for any that start.
WorkerPool& MultiprocessNeuropodBackend::Rep::pool(Client& client) {
  if (WorkerPool* known = client.pool.load(std::memory_order_acquire)) return *known;
  std::lock_guard lock(client.loading);
  if (WorkerPool* known = client.pool.load(std::memory_order_acquire)) return *known;
  WorkerSpec spec = this->spec();
  spec.known_to_load = true;
  client.owned_pool = std::make_unique<WorkerPool>(spec, ope().num_workers);
  client.owned_pool->start();
  client.pool.store(client.owned_pool.get(), std::memory_order_release);
  return *client.owned_pool;
}

namespace {

// One call from its beginning to its end, however often it is tried.
class Call {
 public:
  Call(const std::string& model, const RuntimeOptions::OPEOptions& ope, bool stateful,
       Client& client, InputMemory& memory, WorkerPool& pool)
      : model_(model),
        ope_(ope),
        stateful_(stateful),
        client_(client),
        memory_(memory),
        pool_(pool),
        control_(CallControl::current()) {
    if (ope.timeout) deadline_ = Clock::now() + *ope.timeout;
  }
  ~Call() {
    if (control_ != nullptr) control_->close();
  }
  Call(const Call&) = delete;

  /// Runs a call of `kind`, which `request` describes, and reads its answer.
  Reply run(CallKind kind, const std::vector<uint32_t>& requested, RequestWriter& request,
            const std::vector<TensorSpec>& outputs);

 private:
  std::optional<Reply> attempt(CallKind kind, const std::vector<uint32_t>& requested,
                               RequestWriter& request, const std::vector<TensorSpec>& outputs);
  WorkerPool::Choice choose_worker();
  std::optional<uint32_t> acquire_slot(HostChannel& channel);
  void check_state(const Incarnation& incarnation);
  void let_go(const std::shared_ptr<Incarnation>& incarnation);
  void report(const CallSlot& slot, uint64_t begin) const;
  [[noreturn]] void give_up_waiting(const std::string& where);
  void give_up(const WorkerPool::Choice& choice, uint32_t slot, const RequestWriter& request,
               bool late);
  [[noreturn]] void fail_dead(const Incarnation& incarnation) const;
  [[noreturn]] void fail_broken(const WorkerPool::Choice& choice, const std::string& problem) const;
  bool interrupted() const { return control_ != nullptr && control_->interrupted(); }

  const std::string& model_;
  const RuntimeOptions::OPEOptions& ope_;
  const bool stateful_;
  Client& client_;
  InputMemory& memory_;
  WorkerPool& pool_;
  CallControl* const control_;
  Deadline deadline_;
  int retries_left_ = 0;
};

bool ask_control(void* control) { return static_cast<CallControl*>(control)->interrupted(); }

Reply Call::run(CallKind kind, const std::vector<uint32_t>& requested, RequestWriter& request,
                const std::vector<TensorSpec>& outputs) {
  retries_left_ = kind == CallKind::kInfer ? ope_.retries : 0;
  for (;;) {
    if (auto reply = attempt(kind, requested, request, outputs)) return std::move(*reply);
  }
}

void Call::give_up_waiting(const std::string& where) {
  if (deadline_ && Clock::now() >= *deadline_) throw_late(where, *ope_.timeout);
  throw_error(ErrorCode::kCancelled, "the call was cancelled before it began");
}

WorkerPool::Choice Call::choose_worker() {
  std::function<bool()> question;
  if (control_ != nullptr) question = [this] { return interrupted(); };
  auto choice = pool_.choose(deadline_, question);
  if (!choice) give_up_waiting("it waited for a worker to start, and never began");
  return std::move(*choice);
}

std::optional<uint32_t> Call::acquire_slot(HostChannel& channel) {
  for (;;) {
    if (const auto slot = channel.acquire()) return slot;
    if (channel.lost()) return std::nullopt;
    client_.given_up->sweep();
    if ((deadline_ && Clock::now() >= *deadline_) || interrupted()) {
      give_up_waiting(fmt::format("{} other calls were before it, and it never began",
                                  multiprocess::kNumSlots));
    }
    const Clock::time_point slice = Clock::now() + milliseconds(50);
    channel.wait_for_slot(deadline_ ? std::min(*deadline_, slice) : slice);
  }
}

// The first call after a restart learns that the state is gone.
void Call::check_state(const Incarnation& incarnation) {
  if (!stateful_) return;
  const uint64_t last = client_.last_life.exchange(incarnation.number);
  if (last == 0 || last == incarnation.number) return;
  throw_error(
      ErrorCode::kWorkerDied,
      "the worker died and was started again, so the state that the model had kept between calls "
      "is gone; this call was not run, and the next one begins with a new state");
}

void Call::let_go(const std::shared_ptr<Incarnation>& incarnation) {
  uint64_t token = 0;
  while (incarnation->channel->next_released_input(&token)) incarnation->kept_inputs.let_go(token);
}

// What the worker measured, as far as it can be true.
void Call::report(const CallSlot& slot, uint64_t begin) const {
  const uint64_t elapsed = TickClock::between(begin, TickClock::now());
  const uint64_t submitted = slot.submitted_at.load(std::memory_order_relaxed);
  const uint64_t started = slot.started_at.load(std::memory_order_relaxed);
  const uint64_t finished = slot.finished_at.load(std::memory_order_relaxed);
  const uint64_t queue = std::min(TickClock::between(submitted, started), elapsed);
  const uint64_t run = std::min(TickClock::between(started, finished), elapsed - queue);
  internal::report_remote_times(queue, run);
}

void Call::fail_dead(const Incarnation& incarnation) const {
  throw_error(
      ErrorCode::kWorkerDied,
      fmt::format("its worker {} died during this call: {}. {}", incarnation.pid, incarnation.cause,
                  stateful_ ? "The state it had kept is gone; another worker is being started"
                            : "Another one is being started; ope_options.retries runs such "
                              "calls again"));
}

// What it wrote can't be, so nothing else in its memory can be believed.
void Call::fail_broken(const WorkerPool::Choice& choice, const std::string& problem) const {
  choice.worker->kill(choice.incarnation, "its memory can't be trusted: " + problem);
  throw_error(ErrorCode::kWorkerDied, fmt::format("its worker {} gave {}; it is being replaced",
                                                  choice.incarnation->pid, problem));
}

// The worker goes on for a while with a call that nobody waits for any more.
void Call::give_up(const WorkerPool::Choice& choice, uint32_t slot, const RequestWriter& request,
                   bool late) {
  const auto& incarnation = choice.incarnation;
  const uint64_t use = incarnation->channel->use_of(slot);
  if (incarnation->channel->withdraw(slot)) {
    client_.given_up->add_withdrawn({incarnation, slot, use, request.values()});
    if (late) throw_late("it waited for its turn, and never began", *ope_.timeout);
    throw_error(ErrorCode::kCancelled, "the call was cancelled before it began");
  }
  if (!incarnation->channel->abandon(slot)) return;  // it has just ended
  auto* worker = choice.worker;
  const std::string why =
      fmt::format("a call of model '{}' was still running {} after it was {}", model_,
                  describe(ope_.kill_grace),
                  late ? fmt::format("late (ope_options.timeout is {})", describe(*ope_.timeout))
                       : std::string("cancelled"));
  client_.given_up->add_running(
      {incarnation, slot, use, request.values()}, ope_.kill_grace,
      [worker_kill = worker->killer(), incarnation, why] { worker_kill(incarnation, why); });
  const std::string then = fmt::format(
      "it runs; its worker {} has {} to end it (ope_options.kill_grace), or is replaced",
      incarnation->pid, describe(ope_.kill_grace));
  if (late) throw_late(then, *ope_.timeout);
  throw_error(ErrorCode::kCancelled, "the call was cancelled while it ran: " + then);
}

std::optional<Reply> Call::attempt(CallKind kind, const std::vector<uint32_t>& requested,
                                   RequestWriter& request, const std::vector<TensorSpec>& outputs) {
  const uint64_t begin = TickClock::now();
  client_.given_up->sweep();
  const WorkerPool::Choice choice = choose_worker();
  const std::shared_ptr<Incarnation>& incarnation = choice.incarnation;
  HostChannel& channel = *incarnation->channel;
  let_go(incarnation);
  if (kind == CallKind::kReset) {
    client_.last_life.store(incarnation->number);
  } else {
    check_state(*incarnation);
  }

  const auto acquired = acquire_slot(channel);
  if (!acquired) return std::nullopt;
  const uint32_t slot = *acquired;
  const uint64_t use = channel.use_of(slot);
  Attachment attachment(control_, channel, slot);
  if (attachment.cancelled()) {
    channel.release(slot);
    throw_error(ErrorCode::kCancelled, "the call was cancelled before it began");
  }
  try {
    request.write(requested, *incarnation, &channel.slot(slot));
  } catch (...) {
    attachment.detach();
    channel.release(slot);
    throw;
  }
  channel.layout().status.input_bytes.store(memory_.pool->stats().live_bytes,
                                            std::memory_order_relaxed);
  if (!channel.submit(slot, kind)) {
    choice.worker->kill(incarnation, "its memory can't be trusted: the queue of calls was full");
  }

  const bool asks = control_ != nullptr && control_->can_be_interrupted();
  bool had_ended = false;
  for (;;) {
    const HostChannel::Outcome outcome =
        channel.wait(slot, deadline_, asks ? ask_control : nullptr, control_);
    switch (outcome) {
      case HostChannel::Outcome::kDone: {
        attachment.close();
        report(channel.slot(slot), begin);
        try {
          Reply reply =
              read_reply(incarnation, channel.slot(slot), outputs, request, *memory_.arena);
          channel.release(slot);
          return reply;
        } catch (const Error& error) {
          channel.release(slot);
          if (error.code() != ErrorCode::kInvalidArgument) throw;
          fail_broken(choice, error.message());
        } catch (...) {  // no memory for a copy
          channel.release(slot);
          throw;
        }
      }
      case HostChannel::Outcome::kWithdrawn:
        attachment.detach();
        client_.given_up->add_withdrawn({incarnation, slot, use, request.values()});
        throw_error(ErrorCode::kCancelled, "the call was cancelled before it began");
      case HostChannel::Outcome::kBroken:
        attachment.detach();
        client_.given_up->add_withdrawn({incarnation, slot, use, request.values()});
        fail_broken(choice, "an impossible state of a call");
      case HostChannel::Outcome::kLate:
      case HostChannel::Outcome::kInterrupted:
        attachment.detach();
        if (had_ended) {  // and yet it hasn't
          client_.given_up->add_withdrawn({incarnation, slot, use, request.values()});
          fail_broken(choice, "a state of a call that changes back");
        }
        give_up(choice, slot, request, outcome == HostChannel::Outcome::kLate);
        had_ended = true;
        break;
      case HostChannel::Outcome::kLostWaiting:
        attachment.detach();
        channel.release(slot);
        return std::nullopt;  // on a successor
      case HostChannel::Outcome::kLostStarted:
        attachment.detach();
        channel.release(slot);
        incarnation->kept_inputs.clear();
        if (retries_left_-- > 0) return std::nullopt;
        fail_dead(*incarnation);
    }
  }
}

}  // namespace

MultiprocessNeuropodBackend::MultiprocessNeuropodBackend(
    const std::string& neuropod_path, const std::vector<BackendLoadSpec>& overrides,
    const RuntimeOptions& options)
    : NeuropodBackend(neuropod_path, options_here(options)) {
  TickClock::start();
  try {
    multiprocess::check_ope_options(options, model_config_->stateful);
  } catch (const Error& error) {
    throw error.with_context(
        fmt::format("can't load model '{}' from '{}'", model_config_->name, neuropod_path));
  }
  std::unique_ptr<multiprocess::WorkerCgroup> unused;
  const uint64_t bytes = multiprocess::worker_limits(options, &unused).arena_bytes;
  auto memory =
      std::make_shared<ProcessMemory>([bytes] { return std::make_unique<InputMemory>(bytes); });
  rep_ = std::make_shared<Rep>(memory, std::filesystem::absolute(neuropod_path).string(),
                               model_config_->outputs);
  rep_->model = model_config_->name;
  rep_->platform = model_config_->platform;
  rep_->overrides = overrides;
  rep_->options = options;
  rep_->stateful = model_config_->stateful;
  std::vector<std::string> names;
  for (const TensorSpec& output : rep_->outputs) names.push_back(output.name);
  rep_->output_names = NameIndex(names);
  rep_->allocator = std::make_shared<multiprocess::ArenaAllocator>(
      [memory]() -> InputMemory& { return memory->get(); },
      [model = std::weak_ptr<Rep>(rep_)] {
        const auto rep = model.lock();
        Client* client = rep == nullptr ? nullptr : rep->clients.find();
        if (client == nullptr) return;
        if (WorkerPool* pool = client->pool.load()) pool->trim();
      });
}

MultiprocessNeuropodBackend::~MultiprocessNeuropodBackend() = default;

std::shared_ptr<NeuropodTensorAllocator> MultiprocessNeuropodBackend::get_tensor_allocator() {
  return rep_->allocator;
}

std::vector<WorkerInfo> MultiprocessNeuropodBackend::workers() const {
  Client* client = rep_->clients.find();
  WorkerPool* pool = client == nullptr ? nullptr : client->pool.load();
  return pool == nullptr ? std::vector<WorkerInfo>{} : pool->info();
}

int MultiprocessNeuropodBackend::concurrency() const {
  return rep_->ope().num_workers * rep_->ope().concurrency;
}

std::function<void(ModelStats*)> MultiprocessNeuropodBackend::worker_stats() const {
  return [model = std::weak_ptr<Rep>(rep_)](ModelStats* stats) {
    stats->has_workers = true;
    const auto rep = model.lock();
    Client* client = rep == nullptr ? nullptr : rep->clients.find();
    const WorkerPool* pool = client == nullptr ? nullptr : client->pool.load();
    if (pool == nullptr) return;
    stats->worker_deaths = pool->deaths();
    stats->worker_restarts = pool->restarts();
  };
}

void MultiprocessNeuropodBackend::load_model_internal() {
  try {
    Client& client = rep_->clients.get();
    rep_->load(client);
    for (const std::string& name : client.owned_pool->reply().inputs_with_defaults) {
      input_has_default(name);
    }
  } catch (const Error& error) {
    // The worker has said the same already.
    const std::string context =
        fmt::format("can't load model '{}' from '{}': ", model_config_->name, rep_->path);
    const std::string message = error.message();
    if (message.compare(0, context.size(), context) != 0) throw;
    throw Error(error.code(), message.substr(context.size()));
  }
}

std::unique_ptr<NeuropodValueMap> MultiprocessNeuropodBackend::infer_internal(
    const BoundInputs& inputs, const std::vector<std::string>& requested_outputs) {
  Client& client = rep_->clients.get();
  InputMemory& memory = rep_->memory->get();
  Call call(rep_->model, rep_->ope(), rep_->stateful, client, memory, rep_->pool(client));
  std::vector<uint32_t> requested;
  for (const std::string& name : requested_outputs) {
    requested.push_back(static_cast<uint32_t>(rep_->output_names.find(name)));
  }
  RequestWriter request(inputs, memory);
  Reply reply = call.run(CallKind::kInfer, requested, request, rep_->outputs);
  if (request.copied_bytes() > 0) internal::report_copied_bytes(request.copied_bytes());
  if (reply.outputs == nullptr) throw Error(reply.code, reply.message);
  return std::move(reply.outputs);
}

void MultiprocessNeuropodBackend::reset_internal() {
  Client& client = rep_->clients.get();
  InputMemory& memory = rep_->memory->get();
  Call call(rep_->model, rep_->ope(), rep_->stateful, client, memory, rep_->pool(client));
  const BoundInputs none(0);
  RequestWriter request(none, memory);
  const Reply reply = call.run(CallKind::kReset, {}, request, rep_->outputs);
  if (reply.outputs == nullptr) throw Error(reply.code, reply.message);
}

}  // namespace neuropod
