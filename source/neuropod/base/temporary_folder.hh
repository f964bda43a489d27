#pragma once

#include <string>

#include "neuropod/base/visibility.hh"

namespace neuropod {

/// A private folder (mode 0700) below TMPDIR, or /tmp, named `neuropod_tmp_XXXXXX`. The destructor
/// removes it with everything in it, folders that were made read-only included; a child process
/// that was forked off doesn't remove its parent's.
///
/// **Errors**: Error(unavailable) naming the folder it should have been made in.
class NEUROPOD_EXPORT TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  /// Absolute, without a trailing slash.
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  const int owner_;
};

}  // namespace neuropod
