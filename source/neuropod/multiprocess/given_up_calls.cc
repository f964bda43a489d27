#include "neuropod/multiprocess/given_up_calls.hh"

#include <algorithm>
#include <iterator>
#include <utility>

#include "neuropod/multiprocess/supervisor_loop.hh"

namespace neuropod::multiprocess {

void GivenUpCalls::add(std::shared_ptr<Incarnation> incarnation, uint32_t slot, uint64_t use,
                       Values values, std::optional<std::chrono::milliseconds> grace,
                       std::function<void()> kill) {
  if (grace) {
    const auto when = SupervisorLoop::Clock::now() + *grace;
    SupervisorLoop& loop = SupervisorLoop::instance();
    loop.post(
        [&loop, when, incarnation, slot, use, kill = std::move(kill), self = shared_from_this()] {
          loop.at(when, [incarnation, slot, use, kill, self] {
            if (!incarnation->channel->lost() && !incarnation->channel->is_finished(slot, use))
              kill();
            self->sweep();
          });
        });
  }
  std::lock_guard lock(mutex_);
  calls_.push_back({std::move(incarnation), slot, use, std::move(values)});
  any_.store(true);
}

void GivenUpCalls::sweep() {
  if (!any_.load(std::memory_order_relaxed)) return;
  std::vector<Call> over;  // goes without the lock
  std::lock_guard lock(mutex_);
  const auto first = std::stable_partition(calls_.begin(), calls_.end(),
                                           [](const Call& call) { return !call.is_over(); });
  std::move(first, calls_.end(), std::back_inserter(over));
  calls_.erase(first, calls_.end());
  any_.store(!calls_.empty());
}

}  // namespace neuropod::multiprocess
