#pragma once

#include <string>

#include "neuropod/base/visibility.hh"

namespace neuropod {

/// A version of semver 2.0.0: major.minor.patch[-prerelease][+build]. Missing minor and patch are
/// 0, and Python-style suffixes ("2.13.0+cpu", "2.4.0rc1") are taken as semver would write them.
///
/// Error(invalid_argument) naming `version` if it isn't one. Returns <0, 0, >0 as a is older, the
/// same, newer.
NEUROPOD_EXPORT int compare_versions(const std::string& a, const std::string& b);

/// True if `version` is in `range`, written as npm writes ranges: "*", "1.2.3", "3.8", "1.x",
/// "^2.0",
/// "~1.4", ">=1.4.0 <2.0.0", "1.4.0 - 1.6.0", alternatives by "||". Pre-releases satisfy a range
/// only where npm says so. Error(invalid_argument) if either isn't valid. Grammar:
/// https://github.com/npm/node-semver#range-grammar
NEUROPOD_EXPORT bool version_satisfies(const std::string& version, const std::string& range);

/// Error(invalid_argument) saying what is wrong with `range`.
NEUROPOD_EXPORT void check_version_range(const std::string& range);

}  // namespace neuropod
