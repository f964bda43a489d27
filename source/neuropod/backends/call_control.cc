#include "neuropod/backends/call_control.hh"

#include <utility>

namespace neuropod {
namespace {

thread_local CallControl* current_control = nullptr;

}  // namespace

CallControl::Scope::Scope(CallControl& control) noexcept
    : outer_(std::exchange(current_control, &control)) {}

CallControl::Scope::~Scope() { current_control = outer_; }

CallControl* CallControl::current() noexcept { return current_control; }

bool CallControl::cancel() {
  std::lock_guard lock(mutex_);
  if (cancelled_) return true;
  cancelled_ = !closed_ && (!withdraw_ || withdraw_());
  return cancelled_;
}

bool CallControl::attach(std::function<bool()> withdraw) {
  std::lock_guard lock(mutex_);
  if (cancelled_) return false;
  withdraw_ = std::move(withdraw);
  closed_ = false;
  return true;
}

void CallControl::detach() noexcept {
  std::lock_guard lock(mutex_);
  withdraw_ = nullptr;
}

bool CallControl::close() noexcept {
  std::lock_guard lock(mutex_);
  withdraw_ = nullptr;
  closed_ = true;
  return !cancelled_;
}

}  // namespace neuropod
