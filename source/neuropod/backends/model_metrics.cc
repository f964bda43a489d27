#include "neuropod/backends/model_metrics.hh"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "neuropod/backends/metrics_observer.hh"

namespace neuropod::internal {
namespace {

constexpr size_t kNumErrorCodes = size_t(ErrorCode::kCancelled) + 1;
constexpr auto kSlowCall = std::chrono::milliseconds(1);
constexpr size_t kMeasuredStrings = 8;
// A process that was forked while a thread held a shard finds it taken for ever.
constexpr int kMaxRounds = 10000;

// Process-wide, because a thread keeps its number for all models: threads that are there at the
// same time seldom share one.
std::atomic<size_t> next_thread_number{0};
thread_local size_t thread_number = size_t(-1);

thread_local uint64_t copied_for_next_call = 0;
thread_local CallMeter* current_meter = nullptr;

size_t this_thread_number() noexcept {
  if (thread_number == size_t(-1)) {
    thread_number = next_thread_number.fetch_add(1, std::memory_order_relaxed);
  }
  return thread_number;
}

uint64_t thread_cpu_nanoseconds() noexcept {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

LatencyStats latency_stats(const LatencyHistogram& histogram, double seconds_per_tick) {
  LatencyStats stats;
  stats.count = histogram.count();
  stats.total_seconds = static_cast<double>(histogram.sum()) * seconds_per_tick;
  stats.max_seconds = static_cast<double>(histogram.max()) * seconds_per_tick;
  stats.p50_seconds = histogram.quantile(0.50) * seconds_per_tick;
  stats.p95_seconds = histogram.quantile(0.95) * seconds_per_tick;
  stats.p99_seconds = histogram.quantile(0.99) * seconds_per_tick;
  for (size_t i = 0; i < kLatencyBounds.size(); ++i) {
    stats.up_to[i] = histogram.count_up_to(kLatencyBounds[i] / seconds_per_tick);
  }
  return stats;
}

}  // namespace

// Guarded by `taken`, but for `begun`. On cache lines of its own.
struct alignas(128) ModelMetrics::Shard {
  std::atomic<bool> taken{false};
  std::atomic<uint64_t> begun{0};
  uint64_t calls = 0;
  uint64_t input_bytes = 0;
  uint64_t output_bytes = 0;
  uint64_t copied_bytes = 0;
  uint64_t ticks = 0;  // of all calls, failed ones included
  uint64_t sampled_ticks = 0;
  uint64_t sampled_cpu_nanoseconds = 0;
  std::array<uint64_t, kNumErrorCodes> errors{};
  LatencyHistogram total;
  std::array<LatencyHistogram, kNumCallPhases> phases;

  bool take() noexcept {
    return !taken.load(std::memory_order_relaxed) &&
           !taken.exchange(true, std::memory_order_acquire);
  }
  void release() noexcept { taken.store(false, std::memory_order_release); }
};

ModelMetrics::ModelMetrics(ModelIdentity identity) : identity_(std::move(identity)) {
  TickClock::start();
  slow_ticks_ = TickClock::rough_ticks(kSlowCall);
  shards_[0] = new Shard;
}

ModelMetrics::~ModelMetrics() {
  for (const std::atomic<Shard*>& shard : shards_) delete shard.load();
}

void ModelMetrics::set_loaded(uint64_t load_id, double load_seconds,
                              std::weak_ptr<NeuropodTensorAllocator> allocator,
                              std::function<void(ModelStats*)> worker_stats) {
  identity_.load_id = load_id;
  load_seconds_ = load_seconds;
  allocator_ = std::move(allocator);
  worker_stats_ = std::move(worker_stats);
  loaded_.store(true, std::memory_order_release);
}

size_t ModelMetrics::begin_call() noexcept {
  const size_t index = this_thread_number() % kNumShards;
  Shard* shard = shards_[index].load(std::memory_order_acquire);
  if (shard == nullptr) {
    auto* const made = new (std::nothrow) Shard;
    if (made == nullptr) {
      shards_[0].load(std::memory_order_relaxed)->begun.fetch_add(1, std::memory_order_relaxed);
      return 0;
    }
    if (shards_[index].compare_exchange_strong(shard, made, std::memory_order_acq_rel)) {
      shard = made;
    } else {
      delete made;
    }
  }
  shard->begun.fetch_add(1, std::memory_order_relaxed);
  return index;
}

// The first shard that is free, from that of `index`, which is there, on.
ModelMetrics::Shard& ModelMetrics::take_shard(size_t index) noexcept {
  for (int round = 0; round < kMaxRounds; ++round) {
    for (size_t i = 0; i < kNumShards; ++i) {
      Shard* const shard = shards_[(index + i) % kNumShards].load(std::memory_order_acquire);
      if (shard != nullptr && shard->take()) return *shard;
    }
    sched_yield();  // all are taken: their threads were interrupted
  }
  return *shards_[index].load(std::memory_order_acquire);
}

void ModelMetrics::end_call(size_t index, const CallFigures& figures) noexcept {
  Shard& shard = take_shard(index);
  ++shard.calls;
  shard.ticks += figures.total;
  shard.input_bytes += figures.input_bytes;
  shard.output_bytes += figures.output_bytes;
  shard.copied_bytes += figures.copied_bytes;
  if (figures.error == nullptr) {
    shard.total.add(figures.total);
    const size_t phases = figures.remote ? kNumCallPhases : kNumLocalPhases;
    for (size_t i = 0; i < phases; ++i) shard.phases[i].add(figures.phases[i]);
  } else {
    ++shard.errors[size_t(*figures.error)];
  }
  if (figures.cpu_sampled) {
    shard.sampled_ticks += figures.total;
    shard.sampled_cpu_nanoseconds += figures.cpu_nanoseconds;
  }
  shard.release();

  const bool slow = figures.total >= slow_ticks_;
  if (last_was_slow_.load(std::memory_order_relaxed) != slow) {
    last_was_slow_.store(slow, std::memory_order_relaxed);
  }
}

// Adds `shard`, unchanged meanwhile, to `sum`.
void ModelMetrics::add_shard(Shard& shard, Shard* sum) const {
  bool taken = false;
  for (int round = 0; round < kMaxRounds && !(taken = shard.take()); ++round) sched_yield();
  sum->calls += shard.calls;
  sum->input_bytes += shard.input_bytes;
  sum->output_bytes += shard.output_bytes;
  sum->copied_bytes += shard.copied_bytes;
  sum->ticks += shard.ticks;
  sum->sampled_ticks += shard.sampled_ticks;
  sum->sampled_cpu_nanoseconds += shard.sampled_cpu_nanoseconds;
  for (size_t i = 0; i < kNumErrorCodes; ++i) sum->errors[i] += shard.errors[i];
  sum->total.add(shard.total);
  for (size_t i = 0; i < kNumCallPhases; ++i) sum->phases[i].add(shard.phases[i]);
  if (taken) shard.release();
}

// The share of CPU time in the sampled calls, applied to all. Reading the CPU's clock is a part of
// what it shows, which a very short call mustn't get more than all of its time from.
double ModelMetrics::cpu_seconds(const Shard& sum) const {
  if (sum.sampled_ticks == 0) return 0;
  const double rate = TickClock::seconds_per_tick();
  const double share = 1e-9 * static_cast<double>(sum.sampled_cpu_nanoseconds) /
                       (static_cast<double>(sum.sampled_ticks) * rate);
  return std::min(share, 1.0) * static_cast<double>(sum.ticks) * rate;
}

ModelStats ModelMetrics::stats() const {
  const auto sum = std::make_unique<Shard>();
  // What has begun is read last: a call that begins and ends meanwhile is in flight at worst.
  for (const std::atomic<Shard*>& shard : shards_) {
    if (Shard* const made = shard.load(std::memory_order_acquire)) add_shard(*made, sum.get());
  }
  uint64_t begun = 0;
  for (const std::atomic<Shard*>& shard : shards_) {
    if (const Shard* const made = shard.load(std::memory_order_acquire)) {
      begun += made->begun.load(std::memory_order_relaxed);
    }
  }

  const double rate = TickClock::seconds_per_tick();
  ModelStats stats;
  stats.collected = true;
  stats.calls = sum->calls;
  stats.calls_in_flight = begun - std::min(begun, sum->calls);
  for (size_t i = 0; i < kNumErrorCodes; ++i) {
    if (sum->errors[i] > 0) stats.errors[ErrorCode(i)] = sum->errors[i];
  }
  stats.total = latency_stats(sum->total, rate);
  stats.checks = latency_stats(sum->phases[size_t(CallPhase::kChecks)], rate);
  stats.sealing = latency_stats(sum->phases[size_t(CallPhase::kSealing)], rate);
  stats.framework = latency_stats(sum->phases[size_t(CallPhase::kFramework)], rate);
  stats.outputs = latency_stats(sum->phases[size_t(CallPhase::kOutputs)], rate);
  stats.queue = latency_stats(sum->phases[size_t(CallPhase::kQueue)], rate);
  stats.transport = latency_stats(sum->phases[size_t(CallPhase::kTransport)], rate);
  stats.input_bytes = sum->input_bytes;
  stats.output_bytes = sum->output_bytes;
  stats.copied_bytes = sum->copied_bytes;
  stats.cpu_seconds = cpu_seconds(*sum);
  if (!loaded_.load(std::memory_order_acquire)) return stats;
  stats.load_seconds = load_seconds_;
  if (const auto allocator = allocator_.lock()) stats.allocator = allocator->stats();
  if (worker_stats_) worker_stats_(&stats);
  return stats;
}

uint64_t string_bytes(const NeuropodTensor& tensor) noexcept {
  const auto& strings = static_cast<const TypedNeuropodTensor<std::string>&>(tensor);
  const size_t count = strings.get_num_elements();
  const size_t measured = std::min(count, kMeasuredStrings);
  uint64_t bytes = 0;
  try {
    for (size_t i = 0; i < measured; ++i) {
      bytes += strings.get_element(i * count / measured).size();
    }
  } catch (...) {
    return 0;
  }
  return count == measured ? bytes : bytes * count / measured;
}

void count_copy_for_next_call(const NeuropodTensor& tensor) noexcept {
  copied_for_next_call += tensor_bytes(tensor);
}

void report_remote_times(uint64_t queue_ticks, uint64_t run_ticks) noexcept {
  if (current_meter == nullptr) return;
  CallFigures& figures = current_meter->figures_;
  figures.remote = true;
  figures.phases[size_t(CallPhase::kQueue)] = queue_ticks;
  figures.phases[size_t(CallPhase::kTransport)] = run_ticks;  // until the phase ends, see finish()
}

void report_copied_bytes(uint64_t bytes) noexcept {
  if (current_meter != nullptr) current_meter->count_copy(bytes);
}

CallMeter::Scope::Scope(CallMeter* meter) noexcept
    : outer_(std::exchange(current_meter, meter->on() ? meter : nullptr)) {}
CallMeter::Scope::~Scope() { current_meter = outer_; }

CallMeter::CallMeter(ModelMetrics* metrics) noexcept : metrics_(metrics) {
  if (metrics_ == nullptr) return;
  figures_.copied_bytes = copied_before_ = std::exchange(copied_for_next_call, 0);
  shard_ = metrics_->begin_call();
  start_ = TickClock::now();
  if (metrics_->samples_cpu(start_)) {
    figures_.cpu_sampled = true;
    cpu_start_ = thread_cpu_nanoseconds();
    start_ = TickClock::now();
  }
  last_ = start_;
}

CallMeter::~CallMeter() { fail(ErrorCode::kCancelled); }

void CallMeter::finish(const ErrorCode* error) noexcept {
  figures_.total = TickClock::between(start_, error == nullptr ? last_ : TickClock::now());
  if (figures_.remote) {
    // What infer_internal() took is waiting, running there, and all that is between.
    uint64_t& framework = figures_.phases[size_t(CallPhase::kFramework)];
    uint64_t& queue = figures_.phases[size_t(CallPhase::kQueue)];
    uint64_t& transport = figures_.phases[size_t(CallPhase::kTransport)];
    queue = std::min(queue, framework);
    const uint64_t run = std::min(transport, framework - queue);
    transport = framework - queue - run;
    framework = run;
  }
  if (figures_.cpu_sampled) figures_.cpu_nanoseconds = thread_cpu_nanoseconds() - cpu_start_;
  figures_.error = error;
  metrics_->end_call(shard_, figures_);
  if (has_metrics_observer.load(std::memory_order_relaxed)) tell_observer();
  metrics_ = nullptr;
}

void CallMeter::tell_observer() const noexcept {
  try {
    const double rate = TickClock::seconds_per_tick();
    const auto seconds = [&](CallPhase phase) {
      return static_cast<double>(figures_.phases[size_t(phase)]) * rate;
    };
    CallRecord record;
    record.model = metrics_->identity().name;
    record.platform = metrics_->identity().platform;
    record.load_id = metrics_->identity().load_id;
    if (figures_.error != nullptr) record.error = *figures_.error;
    record.total_seconds = static_cast<double>(figures_.total) * rate;
    record.checks_seconds = seconds(CallPhase::kChecks);
    record.sealing_seconds = seconds(CallPhase::kSealing);
    record.framework_seconds = seconds(CallPhase::kFramework);
    record.outputs_seconds = seconds(CallPhase::kOutputs);
    record.queue_seconds = seconds(CallPhase::kQueue);
    record.transport_seconds = seconds(CallPhase::kTransport);
    record.input_bytes = figures_.input_bytes;
    record.output_bytes = figures_.output_bytes;
    record.copied_bytes = figures_.copied_bytes;
    tell_metrics_observer(record);
  } catch (...) {
  }
}

}  // namespace neuropod::internal
