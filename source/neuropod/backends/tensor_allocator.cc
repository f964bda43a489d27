#include "neuropod/backends/tensor_allocator.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <random>

namespace neuropod {

NeuropodTensorAllocator::~NeuropodTensorAllocator() = default;

namespace internal {

size_t get_checked_num_bytes(const std::vector<int64_t>& dims, TensorType type) {
  const size_t element_size = get_bytes_per_element(type);
  return count_elements(type, dims) * element_size;
}

void throw_bad_arange(double start, double end, double step) {
  throw_error(
      ErrorCode::kInvalidArgument,
      fmt::format("arange({}, {}, {}): the step must not be 0, and start, end and step must be "
                  "finite",
                  start, end, step));
}

void check_lent_memory(TensorType type, const void* data, size_t bytes) {
  if (type == STRING_TENSOR) {
    throw_error(
        ErrorCode::kInvalidArgument,
        "tensor_from_memory() takes numbers only; for strings use allocate_tensor<std::string>() "
        "and copy_from()");
  }
  if (data == nullptr && bytes > 0) {
    throw_error(ErrorCode::kInvalidArgument,
                fmt::format("tensor_from_memory() got a null pointer for {} bytes of {}", bytes,
                            get_dtype_name(type)));
  }
}

void copy_strings(NeuropodTensor& to, const NeuropodTensor& from) {
  auto& written = *to.as_typed_tensor<std::string>();
  const auto& read = *from.as_typed_tensor<std::string>();
  for (size_t i = 0; i < read.get_num_elements(); ++i) written.set_element(i, read.get_element(i));
}

int64_t count_arange(double start, double end, double step) {
  if (step == 0 || !std::isfinite(start) || !std::isfinite(end) || !std::isfinite(step)) {
    throw_bad_arange(start, end, step);
  }
  const double count = std::ceil((end - start) / step);
  if (!(count > 0)) return 0;
  return count < 0x1p63 ? static_cast<int64_t>(count) : std::numeric_limits<int64_t>::max();
}

void fill_normal(double* values, size_t count, double mean, double stddev) {
  std::random_device seed;
  std::mt19937_64 generator((uint64_t{seed()} << 32) | seed());
  std::normal_distribution<double> distribution(0, 1);
  for (size_t i = 0; i < count; ++i) values[i] = mean + stddev * distribution(generator);
}

// Two events end its life: the deleter has run, and the allocator has let go. Whichever comes
// second frees it.
struct LentMemory::State {
  static constexpr int kRan = 1;
  static constexpr int kLetGo = 2;

  void run() {
    const int before = events.fetch_or(kRan);
    if ((before & kRan) != 0) return;
    const std::unique_ptr<State> freed((before & kLetGo) != 0 ? this : nullptr);
    if (deleter) deleter(data);
  }

  void* data;
  Deleter deleter;
  std::atomic<int> events{0};
};

LentMemory::LentMemory(void* data, const Deleter& deleter) try : state_(new State{data, deleter}) {
} catch (...) {
  if (deleter) deleter(data);
}

LentMemory::~LentMemory() {
  if (state_ == nullptr) return;
  state_->run();
  delete state_;
}

Deleter LentMemory::deleter() const {
  return [state = state_](void*) { state->run(); };
}

void LentMemory::hand_over() noexcept {
  State* state = std::exchange(state_, nullptr);
  if ((state->events.fetch_or(State::kLetGo) & State::kRan) != 0) delete state;
}

}  // namespace internal
}  // namespace neuropod
