#pragma once

namespace neuropod::multiprocess {

/// A place where a test can make this process fail: NEUROPOD_TEST_FAULT="NAME:ACTION" in its
/// environment, with the actions kill, exit, abort, segv, hang, hang_once (one thread) and
/// sleep=MILLISECONDS. Read once; without the variable this does nothing.
///
/// In a worker, in the order of its life: start, connected, before_adopt, before_load, after_load,
/// before_reply, taken, before_infer, after_infer, before_finish, finished.
void fault_point(const char* name) noexcept;

}  // namespace neuropod::multiprocess
