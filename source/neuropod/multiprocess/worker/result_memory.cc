#include "neuropod/multiprocess/worker/result_memory.hh"

#include <algorithm>
#include <utility>

#include "neuropod/multiprocess/fork_detector.hh"

namespace neuropod::multiprocess {
namespace {

thread_local ResultArena* current_arena = nullptr;

}  // namespace

ResultArena::ResultArena(std::shared_ptr<Arena> arena)
    : arena_(std::move(arena)), pool_(MemoryPool::create(std::make_shared<ArenaBlocks>(arena_))) {}

void* ResultArena::allocate(size_t bytes) noexcept {
  try {
    MemoryPool::Block block = pool_->allocate(bytes, Device::CPU);
    std::lock_guard lock(mutex_);
    live_[block.data] = {bytes, std::move(block.release)};
    return block.data;
  } catch (...) {
    return nullptr;
  }
}

void ResultArena::free(void* data) noexcept {
  Deleter release;
  {
    std::lock_guard lock(mutex_);
    const auto found = live_.find(data);
    if (found == live_.end()) return;
    release = std::move(found->second.release);
    live_.erase(found);
  }
  release(data);
}

std::optional<ResultArena::Block> ResultArena::find(const void* data, size_t bytes) const {
  const auto offset = arena_->offset_of(data, bytes);
  if (!offset) return std::nullopt;
  std::lock_guard lock(mutex_);
  // A framework's results begin where their memory does; one that doesn't is copied.
  const auto found = live_.find(data);
  if (found == live_.end() || found->second.bytes < bytes) return std::nullopt;
  return Block{*offset, found->second.bytes};
}

bool ResultArena::close() noexcept {
  std::lock_guard lock(mutex_);
  closed_ = true;
  return live_.empty();
}

bool ResultArena::is_dead() const noexcept {
  std::lock_guard lock(mutex_);
  return closed_ && live_.empty();
}

ResultMemory::ResultMemory() : generation_(process_generation()) {}

ResultMemory& ResultMemory::instance() {
  static auto* const memory = new ResultMemory;
  return *memory;
}

void* ResultMemory::allocate(size_t bytes) noexcept {
  if (current_arena == nullptr || process_generation() != generation_) return nullptr;
  return current_arena->allocate(bytes);
}

std::shared_ptr<ResultArena> ResultMemory::arena_of(const void* data) const {
  std::shared_lock lock(mutex_);
  for (const std::shared_ptr<ResultArena>& arena : arenas_) {
    if (arena->arena().offset_of(data, 0)) return arena;
  }
  return nullptr;
}

void ResultMemory::free(void* data) noexcept {
  // A forked child must leave alone what its parent's host reads; it gets nothing from here anyway.
  if (process_generation() != generation_) return;
  const std::shared_ptr<ResultArena> arena = arena_of(data);
  if (arena == nullptr) return;
  arena->free(data);
  if (!arena->is_dead()) return;
  std::unique_lock lock(mutex_);
  arenas_.erase(std::remove(arenas_.begin(), arenas_.end(), arena), arenas_.end());
}

bool ResultMemory::owns(const void* data) const noexcept { return arena_of(data) != nullptr; }

std::shared_ptr<ResultArena> ResultMemory::add(std::shared_ptr<Arena> arena) {
  auto added = std::make_shared<ResultArena>(std::move(arena));
  std::unique_lock lock(mutex_);
  arenas_.push_back(added);
  return added;
}

void ResultMemory::remove(const std::shared_ptr<ResultArena>& arena) {
  if (!arena->close()) return;
  std::unique_lock lock(mutex_);
  arenas_.erase(std::remove(arenas_.begin(), arenas_.end(), arena), arenas_.end());
}

ResultMemory::Call::Call(ResultArena& arena) noexcept { current_arena = &arena; }
ResultMemory::Call::~Call() { current_arena = nullptr; }

}  // namespace neuropod::multiprocess
