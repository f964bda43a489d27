// Every interleaving of one slot's two sides, by exhaustive search over a model of them.
//
// Each step below is one atomic access of host_channel.cc or worker_channel.cc, in their order: the
// host's submit(), wait(), withdraw(), abandon() and release(); the worker's take(), finish() and
// retire(), with their sleeping; lose() by the supervisor at any moment. All accesses there are
// sequentially consistent, so interleavings are all there is.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "neuropod/multiprocess/channel/channel_layout.hh"

namespace neuropod::multiprocess {
namespace {

enum Host : int {
  kIdle,
  kStoreSubmitted,  // submit(): state ← submitted
  kPush,            // into the queue
  kCountEvent,      // events + 1
  kLookForSleeper,  // sleepers ≠ 0 → wake
  kLookForLoss,     // lost → lost_waiting
  kSetSleeping,     // wait(): sleeping ← 1
  kLookAtState,
  kSleepInKernel,  // futex_wait(state, seen): atomically looks once more
  kAsleep,
  kLate,         // the deadline came: withdraw() …
  kLateRunning,  // … or abandon()
  kHasOutcome,
  kGaveUp,
};

enum Worker : int {
  kPop,
  kBegin,         // CAS submitted → running, or withdrawn → retired
  kCountSleeper,  // nothing there: sleepers + 1
  kReadEvents,
  kPopAgain,
  kWorkerSleeps,  // futex_wait(events, seen)
  kWorkerAsleep,
  kRuns,
  kFinish,         // CAS running → done
  kRetire,         // or it was abandoned: ← retired
  kLookForWaiter,  // sleeping → wake
  kDead,
};

struct World {
  int host = kIdle, worker = kPop;
  int state = 0;  // CallState
  int host_saw = 0;
  bool sleeping = false, woken = false;
  bool queued = false;
  int events = 0, sleepers = 0, worker_saw = 0;
  bool worker_woken = false, counted = false;
  bool popped = false;
  bool lost = false;
  int calls = 0;  // finished or given up by the host
  int began = 0;  // times the worker began the current call

  auto key() const {
    return std::tuple(host, worker, state, host_saw, sleeping, woken, queued, events, sleepers,
                      worker_saw, worker_woken, counted, popped, lost, calls, began);
  }
  bool operator<(const World& other) const { return key() < other.key(); }
  CallState now() const { return static_cast<CallState>(state); }
  void set(CallState next) { state = static_cast<int>(next); }
  bool is(CallState what) const { return now() == what; }
};

constexpr int kCalls = 2;

bool is_outcome(CallState state) {
  return state == CallState::kDone || state == CallState::kLostWaiting ||
         state == CallState::kLostStarted;
}

void add_host_steps(const World& w, std::vector<World>* next) {
  World n = w;
  switch (w.host) {
    case kIdle:
      if (w.calls == kCalls || w.lost || !w.is(CallState::kFree)) return;
      n.host = kStoreSubmitted;
      n.set(CallState::kFilling);
      n.began = 0;
      break;
    case kStoreSubmitted:
      n.sleeping = false;
      n.set(CallState::kSubmitted);
      n.host = kPush;
      break;
    case kPush:
      n.queued = true;
      n.host = kCountEvent;
      break;
    case kCountEvent:
      n.events = w.events + 1;
      n.host = kLookForSleeper;
      break;
    case kLookForSleeper:
      if (w.sleepers > 0 && w.worker == kWorkerAsleep) n.worker_woken = true;
      n.host = kLookForLoss;
      break;
    case kLookForLoss:
      if (w.lost && w.is(CallState::kSubmitted)) n.set(CallState::kLostWaiting);
      n.host = kSetSleeping;
      break;
    case kSetSleeping:
      n.sleeping = true;
      n.host = kLookAtState;
      break;
    case kLookAtState:
      n.host_saw = w.state;
      n.host = is_outcome(w.now()) ? kHasOutcome : kSleepInKernel;
      if (n.host == kSleepInKernel) {  // or the deadline is over
        World late = n;
        late.host = kLate;
        next->push_back(late);
      }
      break;
    case kSleepInKernel:
      n.woken = false;
      n.host = w.state == w.host_saw ? kAsleep : kSetSleeping;
      break;
    case kAsleep:
      if (!w.woken) {
        World late = n;  // the timeout wakes it, too
        late.host = kSetSleeping;
        next->push_back(late);
        return;
      }
      n.host = kSetSleeping;
      break;
    case kLate:
      if (w.is(CallState::kSubmitted)) {
        n.set(CallState::kWithdrawn);
        n.host = kGaveUp;
      } else {
        n.host = kLateRunning;
      }
      break;
    case kLateRunning:
      if (w.is(CallState::kRunning)) {
        n.set(CallState::kAbandoned);
        n.host = kGaveUp;
      } else {
        n.host = kSetSleeping;  // it has just ended
      }
      break;
    case kHasOutcome:
      n.set(CallState::kFree);
      n.calls = w.calls + 1;
      n.host = kIdle;
      break;
    case kGaveUp:
      if (!w.is(CallState::kRetired)) return;  // release() comes after that
      n.set(CallState::kFree);
      n.calls = w.calls + 1;
      n.host = kIdle;
      break;
    default:
      FAIL() << "no such step";
  }
  next->push_back(n);
}

void add_worker_steps(const World& w, std::vector<World>* next) {
  World n = w;
  switch (w.worker) {
    case kPop:
    case kPopAgain:
      if (w.queued) {
        n.queued = false;
        n.worker = kBegin;
      } else {
        n.worker = w.worker == kPop ? kCountSleeper : kWorkerSleeps;
      }
      break;
    case kBegin:
      if (w.is(CallState::kSubmitted)) {
        n.set(CallState::kRunning);
        n.began = w.began + 1;
        n.worker = kRuns;
      } else {
        if (w.is(CallState::kWithdrawn)) n.set(CallState::kRetired);
        n.worker = kPop;
      }
      if (w.counted) {  // found when it was about to sleep
        n.counted = false;
        n.sleepers = w.sleepers - 1;
      }
      break;
    case kCountSleeper:
      n.sleepers = w.sleepers + 1;
      n.counted = true;
      n.worker = kReadEvents;
      break;
    case kReadEvents:
      n.worker_saw = w.events;
      n.worker = kPopAgain;
      break;
    case kWorkerSleeps:
      n.worker_woken = false;
      if (w.events == w.worker_saw) {
        n.worker = kWorkerAsleep;
      } else {
        n.counted = false;
        n.sleepers = w.sleepers - 1;
        n.worker = kPop;
      }
      break;
    case kWorkerAsleep:
      if (!w.worker_woken) return;
      n.counted = false;
      n.sleepers = w.sleepers - 1;
      n.worker = kPop;
      break;
    case kRuns:
      n.worker = kFinish;
      break;
    case kFinish:
      if (w.is(CallState::kRunning)) {
        n.set(CallState::kDone);
        n.worker = kLookForWaiter;
      } else {
        n.worker = kRetire;
      }
      break;
    case kRetire:
      n.set(CallState::kRetired);
      n.worker = kPop;
      break;
    case kLookForWaiter:
      if (w.sleeping && w.host == kAsleep) n.woken = true;
      n.worker = kPop;
      break;
    case kDead:
      return;
    default:
      FAIL() << "no such step";
  }
  next->push_back(n);
}

// The kernel kills the worker, then the supervisor ends every wait.
void add_death(const World& w, std::vector<World>* next) {
  World n = w;
  if (w.worker != kDead) {
    n.worker = kDead;
    next->push_back(n);
    return;
  }
  if (w.lost) return;
  n.lost = true;
  const CallState now = w.now();
  if (now == CallState::kSubmitted || now == CallState::kWithdrawn) n.set(CallState::kLostWaiting);
  if (now == CallState::kRunning || now == CallState::kAbandoned) n.set(CallState::kLostStarted);
  if (w.host == kAsleep) n.woken = true;
  next->push_back(n);
}

std::set<World> reachable(bool with_death) {
  std::set<World> seen;
  std::deque<World> open{World{}};
  while (!open.empty()) {
    const World world = open.front();
    open.pop_front();
    if (!seen.insert(world).second) continue;
    std::vector<World> next;
    add_host_steps(world, &next);
    add_worker_steps(world, &next);
    if (with_death) add_death(world, &next);
    for (const World& one : next) open.push_back(one);
  }
  return seen;
}

// A waiter that sleeps while its answer is there must have been woken, or be about to be.
bool sleeps_for_ever(const World& w) {
  return w.host == kAsleep && !w.woken && is_outcome(w.now()) && w.worker != kLookForWaiter &&
         !(w.worker == kDead && !w.lost);
}

// A worker that sleeps while a call waits likewise.
bool oversleeps(const World& w) {
  const bool about_to_wake = w.host == kCountEvent || w.host == kLookForSleeper;
  return w.worker == kWorkerAsleep && !w.worker_woken && w.queued && !about_to_wake;
}

TEST(SlotModelTest, NoWakeUpIsLost) {
  for (const World& world : reachable(false)) {
    ASSERT_FALSE(sleeps_for_ever(world)) << world.state;
    ASSERT_FALSE(oversleeps(world)) << world.host;
  }
}

TEST(SlotModelTest, ADeathEndsEveryWait) {
  for (const World& world : reachable(true)) ASSERT_FALSE(sleeps_for_ever(world)) << world.state;
}

TEST(SlotModelTest, ACallBeginsAtMostOnceAndASlotIsNeverHandedOutTwice) {
  for (const World& world : reachable(true)) {
    ASSERT_LE(world.began, 1);
    // While the worker is with a call, the slot is that call's.
    if (world.worker == kRuns || world.worker == kFinish || world.worker == kRetire) {
      ASSERT_TRUE(world.is(CallState::kRunning) || world.is(CallState::kAbandoned)) << world.state;
    }
  }
}

TEST(SlotModelTest, EveryCallCanEnd) {
  bool all_ended = false;
  size_t count = 0;
  for (const World& world : reachable(false)) {
    ++count;
    all_ended |= world.calls == kCalls && world.host == kIdle;
    std::vector<World> next;
    add_host_steps(world, &next);
    add_worker_steps(world, &next);
    const bool stuck = next.empty();
    ASSERT_TRUE(!stuck || world.calls == kCalls)
        << "host " << world.host << " worker " << world.worker;
  }
  EXPECT_TRUE(all_ended);
  EXPECT_GT(count, 1000u);
}

}  // namespace
}  // namespace neuropod::multiprocess
