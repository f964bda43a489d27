#include "neuropod/multiprocess/shm/arena_blocks.hh"

#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "neuropod/base/error.hh"

namespace neuropod::multiprocess {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kWorthGivingBack = 64 << 10;

uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

struct ArenaBlocks::State {
  std::shared_ptr<Arena> arena;
  mutable std::mutex mutex;
  std::map<uint64_t, uint64_t> by_offset;             // free: offset → length
  std::set<std::pair<uint64_t, uint64_t>> by_length;  // free: (length, offset)
  uint64_t used = 0;

  void add(uint64_t offset, uint64_t length) {
    if (length == 0) return;
    by_offset.emplace(offset, length);
    by_length.emplace(length, offset);
  }
  void remove(std::map<uint64_t, uint64_t>::iterator range) {
    by_length.erase({range->second, range->first});
    by_offset.erase(range);
  }
  void free(uint64_t offset, uint64_t length) {
    auto next = by_offset.lower_bound(offset);
    if (next != by_offset.end() && next->first == offset + length) {
      length += next->second;
      remove(next++);
    }
    if (next != by_offset.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        length += before->second;
        remove(before);
      }
    }
    add(offset, length);
  }
};

ArenaBlocks::ArenaBlocks(std::shared_ptr<Arena> arena, uint64_t reserved)
    : state_(std::make_unique<State>()) {
  state_->arena = std::move(arena);
  const uint64_t begin = aligned(reserved);
  if (begin < state_->arena->size()) state_->add(begin, state_->arena->size() - begin);
}

ArenaBlocks::~ArenaBlocks() = default;

bool ArenaBlocks::has_device(NeuropodDevice device) const noexcept { return device == Device::CPU; }

void* ArenaBlocks::allocate(size_t bytes, NeuropodDevice) noexcept {
  const uint64_t length = aligned(bytes == 0 ? 1 : bytes);
  if (length < bytes) return nullptr;
  try {
    std::lock_guard lock(state_->mutex);
    const auto found = state_->by_length.lower_bound({length, 0});
    if (found == state_->by_length.end()) return nullptr;
    const auto [whole, offset] = *found;
    state_->remove(state_->by_offset.find(offset));
    state_->add(offset + length, whole - length);
    state_->used += length;
    return state_->arena->data() + offset;
  } catch (...) {  // no memory for the list of free ranges
    return nullptr;
  }
}

void ArenaBlocks::free(void* data, size_t bytes, NeuropodDevice) noexcept {
  const uint64_t length = aligned(bytes == 0 ? 1 : bytes);
  const auto offset = static_cast<uint64_t>(static_cast<char*>(data) - state_->arena->data());
  if (length >= kWorthGivingBack) state_->arena->give_back(offset, length);
  try {
    std::lock_guard lock(state_->mutex);
    state_->used -= length;
    state_->free(offset, length);
  } catch (...) {  // the range is lost, nothing else
  }
}

void ArenaBlocks::copy(void* to, NeuropodDevice to_device, const void* from,
                       NeuropodDevice from_device, size_t bytes) {
  if (to_device != Device::CPU || from_device != Device::CPU) {
    throw_error(
        ErrorCode::kInvalidArgument,
        "a model in a process of its own takes tensors on the CPU; the worker brings them to "
        "its GPU");
  }
  std::memcpy(to, from, bytes);
}

const std::shared_ptr<Arena>& ArenaBlocks::arena() const noexcept { return state_->arena; }

uint64_t ArenaBlocks::used_bytes() const noexcept {
  std::lock_guard lock(state_->mutex);
  return state_->used;
}

}  // namespace neuropod::multiprocess
