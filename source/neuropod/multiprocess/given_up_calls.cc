#include "neuropod/multiprocess/given_up_calls.hh"

#include <algorithm>
#include <iterator>
#include <utility>

#include "neuropod/base/error.hh"
#include "neuropod/multiprocess/reply_reader.hh"
#include "neuropod/multiprocess/supervisor_loop.hh"

namespace neuropod::multiprocess {

void GivenUpCalls::add(Entry entry) {
  std::lock_guard lock(mutex_);
  entries_.push_back(std::move(entry));
  any_.store(true);
}

void GivenUpCalls::add_withdrawn(Call call) { add({std::move(call), {}}); }

void GivenUpCalls::add_running(Call call, std::chrono::milliseconds grace,
                               std::function<void()> kill) {
  const auto when = SupervisorLoop::Clock::now() + grace;
  SupervisorLoop& loop = SupervisorLoop::instance();
  const Call watched{call.incarnation, call.slot, call.use, {}};
  add({std::move(call), kill});
  loop.post([&loop, when, watched, kill = std::move(kill), self = shared_from_this()] {
    loop.at(when, [watched, kill, self] {
      if (!is_over(watched)) kill();
      self->sweep();
    });
  });
}

// The worker is through with it, or dead.
void GivenUpCalls::finish(const Entry& entry) {
  const Call& call = entry.call;
  HostChannel& channel = *call.incarnation->channel;
  if (entry.kill && !channel.lost()) {
    try {
      keep_inputs(call.incarnation, channel.slot(call.slot), call.values);
    } catch (const Error&) {  // what it wrote can't be
      entry.kill();
    }
  }
  channel.release(call.slot);
}

void GivenUpCalls::sweep() {
  if (!any_.load(std::memory_order_relaxed)) return;
  std::vector<Entry> over;  // goes without the lock
  {
    std::lock_guard lock(mutex_);
    const auto first = std::stable_partition(
        entries_.begin(), entries_.end(), [](const Entry& entry) { return !is_over(entry.call); });
    std::move(first, entries_.end(), std::back_inserter(over));
    entries_.erase(first, entries_.end());
    any_.store(!entries_.empty());
  }
  for (const Entry& entry : over) finish(entry);
}

}  // namespace neuropod::multiprocess
