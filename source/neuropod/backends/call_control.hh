#pragma once

#include <functional>
#include <mutex>

#include "neuropod/base/visibility.hh"

namespace neuropod {

/// Lets others end a call that waits for a worker. Put one on the stack of the thread that calls
/// infer() and open a Scope; in a model in this process a call that has begun can't be stopped.
///
/// **Thread safety**: cancel() from any thread; the rest belongs to the calling thread.
class NEUROPOD_EXPORT CallControl {
 public:
  CallControl() = default;
  /// `interrupted` is asked on the calling thread when a signal came and at least every 50 ms; true
  /// ends the call with Error(cancelled).
  explicit CallControl(std::function<bool()> interrupted) : interrupted_(std::move(interrupted)) {}
  CallControl(const CallControl&) = delete;
  CallControl& operator=(const CallControl&) = delete;

  /// Makes it the control of the calls that this thread makes while the scope lives.
  class NEUROPOD_EXPORT Scope {
   public:
    explicit Scope(CallControl& control) noexcept;
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    CallControl* const outer_;
  };

  /// Withdraws the call. True: it hadn't begun and never will; infer() ends with Error(cancelled).
  /// False: it runs, or has ended, and goes on as if nobody had asked.
  bool cancel();

  /// Of the calling thread; null if there is none.
  static CallControl* current() noexcept;

  // For what runs the call.

  /// Whether to go on: false after cancel(). `withdraw`, which cancel() calls from now on, returns
  /// whether it stopped the call before it began; it is never called after detach().
  bool attach(std::function<bool()> withdraw);
  void detach() noexcept;
  /// The call has begun where nothing can stop it, or is over: from now on cancel() says false. It
  /// returns false after cancel(), when the call must end with Error(cancelled).
  bool close() noexcept;

  bool can_be_interrupted() const noexcept { return bool(interrupted_); }
  bool interrupted() const { return interrupted_ && interrupted_(); }

 private:
  const std::function<bool()> interrupted_;
  std::mutex mutex_;
  bool cancelled_ = false;
  bool closed_ = false;
  std::function<bool()> withdraw_;
};

}  // namespace neuropod
