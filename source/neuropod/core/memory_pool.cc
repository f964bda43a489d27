#include "neuropod/core/memory_pool.hh"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "neuropod/base/error.hh"

namespace neuropod {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kKeptAlways = uint64_t{64} << 20;
constexpr milliseconds kDisuse = std::chrono::minutes(1);

// Four classes per power of two: 64, 80, 96, 112, 128, 160, … bytes. The step is at most a quarter.
constexpr size_t kLargestRequest = size_t{1} << 60;
constexpr size_t kClasses = (60 - 6) * 4 + 1;

uint32_t class_of(size_t bytes) {
  if (bytes <= 64) return 0;
  const uint32_t power = static_cast<uint32_t>(std::bit_width(bytes - 1)) - 1;
  const uint32_t quarter = static_cast<uint32_t>((bytes - 1) >> (power - 2)) & 3;
  return (power - 6) * 4 + quarter + 1;
}

size_t class_bytes(uint32_t size_class) {
  if (size_class == 0) return 64;
  const uint32_t power = (size_class - 1) / 4 + 4;
  return static_cast<size_t>((size_class - 1) % 4 + 5) << power;
}

// The coarse clock costs a quarter of the exact one, and ticks every few milliseconds.
milliseconds system_clock() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return milliseconds(int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000);
}

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

// A block of the system, from its allocation to its return. While kept, it is in two lists: that of
// its size class (the newest on top, so that warm memory is reused first) and that of all kept
// blocks.
struct Entry {
  void* data = nullptr;
  uint32_t size_class = 0;
  NeuropodDevice device = Device::CPU;
  uint32_t generation = 0;  // counts the uses: a release of an earlier use is recognised
  bool live = false;
  milliseconds freed_at{};
  uint32_t below = kNone, above = kNone;  // in the class
  uint32_t older = kNone, newer = kNone;  // of all; `older` also chains unused entries
};

// What blocks refer to: it lives until the pool and the last live block are gone.
class PoolState {
 public:
  PoolState(std::shared_ptr<DeviceMemory> memory, MemoryPool::Clock clock)
      : memory_(std::move(memory)), clock_(std::move(clock)) {}

  MemoryPool::Block allocate(size_t bytes, NeuropodDevice device);
  void release(uint32_t index, uint32_t generation) noexcept;
  void copy(void* to, NeuropodDevice to_device, const void* from, NeuropodDevice from_device,
            size_t bytes);
  AllocatorStats stats() const;
  void trim() noexcept;

  // The pool is gone: nobody can reuse what is kept.
  void close() noexcept;

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct DeviceLists {
    NeuropodDevice device;
    std::array<uint32_t, kClasses> newest;
  };

  milliseconds now() const { return clock_ ? clock_() : system_clock(); }
  uint32_t& newest(uint32_t size_class, NeuropodDevice device);
  MemoryPool::Block hand_out(uint32_t index);
  uint32_t take_kept(uint32_t size_class, NeuropodDevice device);
  void unlink(uint32_t index) noexcept;
  void keep(uint32_t index, milliseconds time) noexcept;
  uint32_t add_entry();
  void drop_oldest(Lock& lock) noexcept;
  void give_back_disused(Lock& lock, milliseconds time) noexcept;
  void unreference(Lock& lock) noexcept;

  const std::shared_ptr<DeviceMemory> memory_;
  const MemoryPool::Clock clock_;

  // The rest is guarded by mutex_.
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  uint32_t unused_ = kNone;  // entries without a block
  std::vector<DeviceLists> devices_;
  uint32_t oldest_ = kNone, newest_ = kNone;  // of the kept blocks, whatever their class
  AllocatorStats stats_;
  size_t references_ = 1;  // the pool, each live block and each release in progress
  bool closed_ = false;
};

uint32_t& PoolState::newest(uint32_t size_class, NeuropodDevice device) {
  for (DeviceLists& lists : devices_) {
    if (lists.device == device) return lists.newest[size_class];
  }
  DeviceLists& lists = devices_.emplace_back();
  lists.device = device;
  lists.newest.fill(kNone);
  return lists.newest[size_class];
}

uint32_t PoolState::take_kept(uint32_t size_class, NeuropodDevice device) {
  const uint32_t index = newest(size_class, device);
  if (index != kNone) unlink(index);
  return index;
}

void PoolState::unlink(uint32_t index) noexcept {
  Entry& entry = entries_[index];
  (entry.above == kNone ? newest(entry.size_class, entry.device) : entries_[entry.above].below) =
      entry.below;
  if (entry.below != kNone) entries_[entry.below].above = entry.above;
  (entry.newer == kNone ? newest_ : entries_[entry.newer].older) = entry.older;
  (entry.older == kNone ? oldest_ : entries_[entry.older].newer) = entry.newer;
  stats_.kept_bytes -= class_bytes(entry.size_class);
}

void PoolState::keep(uint32_t index, milliseconds time) noexcept {
  Entry& entry = entries_[index];
  uint32_t& top = newest(entry.size_class, entry.device);
  entry.freed_at = time;
  entry.above = entry.newer = kNone;
  entry.below = top;
  entry.older = newest_;
  if (top != kNone) entries_[top].above = index;
  (newest_ == kNone ? oldest_ : entries_[newest_].newer) = index;
  top = newest_ = index;
  stats_.kept_bytes += class_bytes(entry.size_class);
}

uint32_t PoolState::add_entry() {
  if (unused_ == kNone) {
    entries_.emplace_back();
    return static_cast<uint32_t>(entries_.size() - 1);
  }
  return std::exchange(unused_, entries_[unused_].older);
}

MemoryPool::Block PoolState::hand_out(uint32_t index) {
  Entry& entry = entries_[index];
  entry.live = true;
  const uint32_t generation = ++entry.generation;
  stats_.live_bytes += class_bytes(entry.size_class);
  stats_.peak_live_bytes = std::max(stats_.peak_live_bytes, stats_.live_bytes);
  ++references_;
  return {entry.data, [this, index, generation](void*) { release(index, generation); }};
}

MemoryPool::Block PoolState::allocate(size_t bytes, NeuropodDevice device) {
  if (!memory_->has_device(device)) {
    throw_error(ErrorCode::kInvalidArgument,
                fmt::format("no memory on device {}: this allocator doesn't know it (CPU is {})",
                            device, Device::CPU));
  }
  void* data = nullptr;
  const uint32_t size_class = bytes <= kLargestRequest ? class_of(bytes) : 0;
  if (bytes <= kLargestRequest) {
    Lock lock(mutex_);
    const uint32_t kept = take_kept(size_class, device);
    give_back_disused(lock, now());
    if (kept != kNone) {
      ++stats_.reused;
      return hand_out(kept);
    }
    lock.unlock();
    data = memory_->allocate(class_bytes(size_class), device);
    if (data == nullptr) {
      trim();
      data = memory_->allocate(class_bytes(size_class), device);
    }
  }
  if (data == nullptr) {
    throw_error(
        ErrorCode::kOutOfMemory,
        fmt::format("no {} bytes to be had on device {} (CPU is {}), after kept memory was given "
                    "back; {} bytes are live in this pool. Free tensors or use smaller ones",
                    bytes, device, Device::CPU, stats().live_bytes));
  }
  const Lock lock(mutex_);
  uint32_t index = kNone;
  try {
    newest(size_class, device);  // its list exists from now on, so that a release can't fail
    index = add_entry();
  } catch (...) {
    memory_->free(data, class_bytes(size_class), device);
    throw_error(ErrorCode::kOutOfMemory, "no memory for the pool's own list of blocks");
  }
  Entry& entry = entries_[index];
  entry.data = data;
  entry.size_class = size_class;
  entry.device = device;
  ++stats_.system_allocations;
  return hand_out(index);
}

void PoolState::release(uint32_t index, uint32_t generation) noexcept {
  Lock lock(mutex_);
  Entry& entry = entries_[index];
  if (!entry.live || entry.generation != generation) return;
  entry.live = false;
  stats_.live_bytes -= class_bytes(entry.size_class);
  const milliseconds time = now();
  keep(index, time);
  const uint64_t most = closed_ ? 0 : std::max(kKeptAlways, 2 * stats_.peak_live_bytes);
  while (stats_.kept_bytes > most) drop_oldest(lock);
  give_back_disused(lock, time);
  unreference(lock);
}

// Gives the oldest kept block back to the system, without the lock meanwhile: that may take long.
void PoolState::drop_oldest(Lock& lock) noexcept {
  const uint32_t index = oldest_;
  unlink(index);
  Entry& entry = entries_[index];
  void* data = std::exchange(entry.data, nullptr);
  const size_t bytes = class_bytes(entry.size_class);
  const NeuropodDevice device = entry.device;
  entry.older = unused_;
  unused_ = index;
  lock.unlock();
  memory_->free(data, bytes, device);
  lock.lock();
}

void PoolState::give_back_disused(Lock& lock, milliseconds time) noexcept {
  while (oldest_ != kNone && entries_[oldest_].freed_at + kDisuse <= time) drop_oldest(lock);
}

void PoolState::unreference(Lock& lock) noexcept {
  const bool last = --references_ == 0;
  lock.unlock();
  if (last) delete this;
}

void PoolState::copy(void* to, NeuropodDevice to_device, const void* from,
                     NeuropodDevice from_device, size_t bytes) {
  memory_->copy(to, to_device, from, from_device, bytes);
  if (to_device == from_device) return;
  const Lock lock(mutex_);
  ++stats_.transfers;
  stats_.transferred_bytes += bytes;
}

AllocatorStats PoolState::stats() const {
  const Lock lock(mutex_);
  return stats_;
}

void PoolState::trim() noexcept {
  Lock lock(mutex_);
  while (oldest_ != kNone) drop_oldest(lock);
}

void PoolState::close() noexcept {
  Lock lock(mutex_);
  closed_ = true;
  while (oldest_ != kNone) drop_oldest(lock);
  unreference(lock);
}

class PoolOfState final : public MemoryPool {
 public:
  PoolOfState(std::shared_ptr<DeviceMemory> memory, Clock clock)
      : state_(std::make_unique<PoolState>(std::move(memory), std::move(clock)).release()) {}
  ~PoolOfState() override { state_->close(); }

  Block allocate(size_t bytes, NeuropodDevice device) override {
    return state_->allocate(bytes, device);
  }
  void copy(void* to, NeuropodDevice to_device, const void* from, NeuropodDevice from_device,
            size_t bytes) override {
    state_->copy(to, to_device, from, from_device, bytes);
  }
  AllocatorStats stats() const override { return state_->stats(); }
  void trim() override { state_->trim(); }

 private:
  PoolState* const state_;  // shared with the live blocks, see PoolState::unreference
};

}  // namespace

MemoryPool::~MemoryPool() = default;

std::shared_ptr<MemoryPool> MemoryPool::create(std::shared_ptr<DeviceMemory> memory, Clock clock) {
  return std::make_shared<PoolOfState>(std::move(memory), std::move(clock));
}

}  // namespace neuropod
