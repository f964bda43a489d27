#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "neuropod/base/visibility.hh"

namespace neuropod {

/// The name among `known` that `name` was probably meant to be, a few letters apart; empty if none
/// is near.
NEUROPOD_EXPORT std::string nearest_name(std::string_view name,
                                         const std::vector<std::string>& known);

}  // namespace neuropod
