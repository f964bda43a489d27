#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "neuropod/base/visibility.hh"
#include "neuropod/internal/deleter.hh"
#include "neuropod/options.hh"

namespace neuropod {

/// Counters of a pool. Bytes are those of size classes, calls are counted since the pool was made.
struct AllocatorStats {
  uint64_t system_allocations = 0;  ///< blocks asked of the system
  uint64_t reused = 0;              ///< requests served by a kept block
  uint64_t live_bytes = 0;          ///< in tensors now
  uint64_t peak_live_bytes = 0;
  uint64_t kept_bytes = 0;  ///< free, waiting for reuse
  uint64_t transfers = 0;   ///< copies from one device to another
  uint64_t transferred_bytes = 0;
};

/// Where a pool's memory comes from, one object per kind of device. Thread-safe.
class NEUROPOD_EXPORT DeviceMemory {
 public:
  virtual ~DeviceMemory();

  /// Whether it has such a device at all. Default: yes.
  virtual bool has_device(NeuropodDevice device) const noexcept;

  /// `bytes` > 0 bytes on `device`, 64-byte aligned; null if there are none to be had.
  /// `Device::CPU` memory may be special too (pinned, for a GPU model).
  virtual void* allocate(size_t bytes, NeuropodDevice device) noexcept = 0;
  virtual void free(void* data, size_t bytes, NeuropodDevice device) noexcept = 0;

  /// Copies between any two devices it knows. Error(invalid_argument) for one it doesn't.
  virtual void copy(void* to, NeuropodDevice to_device, const void* from,
                    NeuropodDevice from_device, size_t bytes) = 0;
};

/// Ordinary memory: CPU only.
NEUROPOD_EXPORT std::shared_ptr<DeviceMemory> host_memory();

/// Keeps freed blocks for the next request of a like size, one list per device and size class.
///
/// Size classes are at most 25 % apart. Kept memory stays at or below max(64 MiB, 2 × peak live
/// bytes); it is given back by trim(), after a minute in which it wasn't needed (looked at whenever
/// the pool is used), and before an allocation fails.
///
/// **Ownership**: blocks may outlive every other holder of the pool; its state lives as long as
/// they.
/// **Thread safety**: thread-safe.
class NEUROPOD_EXPORT MemoryPool : public std::enable_shared_from_this<MemoryPool> {
 public:
  /// A block, and what gives it back to the pool: call `release(data)` once. While the pool lives,
  /// further calls (of copies of `release`, too) do nothing.
  struct Block {
    void* data = nullptr;
    Deleter release;
  };

  /// Time since any fixed point; must never go back.
  using Clock = std::function<std::chrono::milliseconds()>;

  /// `clock`: for the minute of disuse; empty means the system's monotonic clock.
  static std::shared_ptr<MemoryPool> create(std::shared_ptr<DeviceMemory> memory = host_memory(),
                                            Clock clock = {});
  virtual ~MemoryPool();

  /// At least `bytes` uninitialised bytes (a valid block for 0 too), 64-byte aligned.
  /// Error(out_of_memory) naming the size and device if the system has none after trimming;
  /// Error(invalid_argument) for a device that the memory doesn't have.
  virtual Block allocate(size_t bytes, NeuropodDevice device) = 0;

  /// Copies and counts; see DeviceMemory::copy.
  virtual void copy(void* to, NeuropodDevice to_device, const void* from,
                    NeuropodDevice from_device, size_t bytes) = 0;

  virtual AllocatorStats stats() const = 0;
  virtual void trim() = 0;
};

}  // namespace neuropod
