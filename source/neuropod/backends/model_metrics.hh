#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "neuropod/backends/model_stats.hh"
#include "neuropod/backends/tensor_allocator.hh"
#include "neuropod/base/error.hh"
#include "neuropod/base/tick_clock.hh"
#include "neuropod/base/visibility.hh"
#include "neuropod/core/latency_histogram.hh"

namespace neuropod::internal {

/// The parts of a call, in their order.
enum class CallPhase { kChecks, kSealing, kFramework, kOutputs, kQueue, kTransport };
inline constexpr size_t kNumCallPhases = 6;
inline constexpr size_t kNumLocalPhases = 4;  // the first; the others are those of workers' calls

/// What was measured of one call. Times in ticks.
struct CallFigures {
  std::array<uint64_t, kNumCallPhases> phases{};
  uint64_t total = 0;
  uint64_t input_bytes = 0;
  uint64_t output_bytes = 0;
  uint64_t copied_bytes = 0;
  bool remote = false;  // a worker ran it: kQueue and kTransport were measured
  bool cpu_sampled = false;
  uint64_t cpu_nanoseconds = 0;
  const ErrorCode* error = nullptr;  // null: succeeded
};

/// Who a model is, in the labels of metrics_text().
struct ModelIdentity {
  std::string name;
  std::string platform;
  std::string version;  // of the package; or empty
  std::string path;
  uint64_t load_id = 0;  // 1, 2, 3, … over the process; fixed before the first call
};

/// Counts the calls of one model.
///
/// A call must cost next to nothing, on any number of threads. So the counts lie in up to 16 shards
/// that threads choose by a number of their own; a shard is taken for the few nanoseconds of an
/// update (one uncontended exchange), and a thread that finds it taken goes to the next. Nothing
/// depends on which thread wrote a shard: no count is lost when a thread ends, and memory is
/// bounded (11 KiB a shard).
///
/// **Thread safety**: thread-safe, but identity()'s number must not be read during set_loaded().
class ModelMetrics {
 public:
  explicit ModelMetrics(ModelIdentity identity);
  ~ModelMetrics();
  ModelMetrics(const ModelMetrics&) = delete;
  ModelMetrics& operator=(const ModelMetrics&) = delete;

  /// Once, before the first call that can succeed.
  void set_loaded(uint64_t load_id, double load_seconds,
                  std::weak_ptr<NeuropodTensorAllocator> allocator,
                  std::function<void(ModelStats*)> worker_stats = {});

  const ModelIdentity& identity() const noexcept { return identity_; }
  ModelStats stats() const;

  /// Counts a call as in flight. The result goes to end_call(), on this or another thread.
  size_t begin_call() noexcept;
  void end_call(size_t shard, const CallFigures& figures) noexcept;

  /// Whether CPU time is measured for a call that begins at `ticks`. The clock of a thread's CPU
  /// time is a system call (0.5 µs twice): it is read for one call of 256, which the ticks choose
  /// by chance, and for each if the last one took a millisecond.
  bool samples_cpu(uint64_t ticks) const noexcept {
    return last_was_slow_.load(std::memory_order_relaxed) ||
           (ticks * 0x9e3779b97f4a7c15u) >> 56 == 0;
  }

 private:
  struct Shard;
  static constexpr size_t kNumShards = 16;

  Shard& take_shard(size_t index) noexcept;
  void add_shard(Shard& shard, Shard* sum) const;
  double cpu_seconds(const Shard& sum) const;

  // Constant after construction, but for the number of the load.
  ModelIdentity identity_;
  uint64_t slow_ticks_;

  // Constant once `loaded_` is set.
  double load_seconds_ = 0;
  std::weak_ptr<NeuropodTensorAllocator> allocator_;
  std::function<void(ModelStats*)> worker_stats_;  // or nothing

  // Synchronize themselves. A shard is made by the first thread that needs it; shard 0 is there.
  std::array<std::atomic<Shard*>, kNumShards> shards_{};
  std::atomic<bool> last_was_slow_{true};  // the first call is measured
  std::atomic<bool> loaded_{false};
};

/// Bytes of an element by dtype; 0 for strings.
inline constexpr auto kElementBytes = [] {
  std::array<uint8_t, 32> bytes{};
#define NEUROPOD_ELEMENT_BYTES(enumerator, value, name, cpp_type) bytes[value] = sizeof(cpp_type);
  NEUROPOD_FOR_EACH_NUMERIC_DTYPE(NEUROPOD_ELEMENT_BYTES)
#undef NEUROPOD_ELEMENT_BYTES
  return bytes;
}();

/// Exact for few elements; otherwise estimated from 8, evenly spaced.
uint64_t string_bytes(const NeuropodTensor& strings) noexcept;

inline uint64_t tensor_bytes(const NeuropodTensor& tensor) noexcept {
  const TensorType type = tensor.get_tensor_type();
  if (type == STRING_TENSOR) return string_bytes(tensor);
  return tensor.get_num_elements() * kElementBytes[size_t(type)];
}

/// For bindings: the next call on this thread has `tensor` among its inputs, and its content was
/// copied to make it. Only for models that collect metrics.
NEUROPOD_EXPORT void count_copy_for_next_call(const NeuropodTensor& tensor) noexcept;

/// For what runs a call in a worker, on the thread of the call: what of the time in
/// infer_internal() went into waiting for the worker and into running the model there; the rest is
/// transport.
NEUROPOD_EXPORT void report_remote_times(uint64_t queue_ticks, uint64_t run_ticks) noexcept;
/// The same: bytes of inputs that had to be copied to where the worker sees them.
NEUROPOD_EXPORT void report_copied_bytes(uint64_t bytes) noexcept;

/// Measures one call, on its stack. Null metrics: does nothing.
class CallMeter {
 public:
  explicit CallMeter(ModelMetrics* metrics) noexcept;
  /// A call that neither succeeded nor failed was unwound by the end of its thread: cancelled.
  ~CallMeter();
  CallMeter(const CallMeter&) = delete;
  CallMeter& operator=(const CallMeter&) = delete;

  bool on() const noexcept { return metrics_ != nullptr; }

  /// The first phase begins now: after waiting, and for a second try.
  void restart() noexcept {
    if (metrics_ == nullptr) return;
    figures_.input_bytes = 0;
    figures_.copied_bytes = copied_before_;
    last_ = TickClock::now();
  }

  /// `phase` ends and the next begins.
  void end(CallPhase phase) noexcept {
    if (metrics_ == nullptr) return;
    const uint64_t now = TickClock::now();
    figures_.phases[size_t(phase)] = TickClock::between(last_, now);
    last_ = now;
  }

  /// While it lives, report_remote_times() on this thread is about this call.
  class Scope {
   public:
    explicit Scope(CallMeter* meter) noexcept;
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    CallMeter* const outer_;
  };

  void succeed() noexcept {
    if (metrics_ != nullptr) finish(nullptr);
  }
  void fail(ErrorCode code) noexcept {
    if (metrics_ != nullptr) finish(&code);
  }

  // Of use only if on().
  void count_input(uint64_t bytes) noexcept { figures_.input_bytes += bytes; }
  void count_input(const NeuropodTensor& tensor) noexcept {
    figures_.input_bytes += tensor_bytes(tensor);
  }
  void count_output(uint64_t bytes) noexcept { figures_.output_bytes += bytes; }
  void count_output(const NeuropodTensor& tensor) noexcept {
    figures_.output_bytes += tensor_bytes(tensor);
  }
  void count_copy(const NeuropodTensor& tensor) noexcept {
    figures_.copied_bytes += tensor_bytes(tensor);
  }
  void count_copy(uint64_t bytes) noexcept { figures_.copied_bytes += bytes; }

 private:
  friend void report_remote_times(uint64_t queue_ticks, uint64_t run_ticks) noexcept;
  void finish(const ErrorCode* error) noexcept;
  void tell_observer() const noexcept;

  ModelMetrics* metrics_;  // null after the end of the call
  size_t shard_ = 0;
  uint64_t start_ = 0;
  uint64_t last_ = 0;
  uint64_t cpu_start_ = 0;
  uint64_t copied_before_ = 0;  // by the binding
  CallFigures figures_;
};

}  // namespace neuropod::internal
