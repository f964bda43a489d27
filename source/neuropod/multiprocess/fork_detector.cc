#include "neuropod/multiprocess/fork_detector.hh"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

namespace neuropod::multiprocess {
namespace {

// Process-wide, as a process's identity is. The page is zeros in a forked child.
std::atomic<uint64_t>* make_page() noexcept {
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  if (::madvise(page, 4096, MADV_WIPEONFORK) != 0) {
    ::munmap(page, 4096);
    return nullptr;
  }
  return static_cast<std::atomic<uint64_t>*>(page);
}

std::atomic<uint64_t>* const generation_page = make_page();
std::atomic<uint64_t> last_generation{0};  // inherited by children, so theirs are higher

}  // namespace

uint64_t process_generation() noexcept {
  if (generation_page == nullptr) return static_cast<uint64_t>(::getpid());
  const uint64_t known = generation_page->load(std::memory_order_acquire);
  if (known != 0) return known;
  uint64_t none = 0;
  const uint64_t next = last_generation.load() + 1;
  if (generation_page->compare_exchange_strong(none, next)) {
    last_generation.store(next);
    return next;
  }
  return none;
}

}  // namespace neuropod::multiprocess
