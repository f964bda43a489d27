#pragma once

#include <string>
#include <vector>

#include "neuropod/internal/neuropod_loader.hh"

namespace neuropod {

/// Loads a package's libraries of custom operators and classes into torch, each content once.
///
/// torch ends the process when a namespace is registered twice. So a library that the process has
/// already, opened by whomever (a Python host's `torch.ops.load_library`), isn't opened again, and
/// one whose namespace another library has registered is Error(version_conflict). The latter is
/// told from the library's symbols; a stripped library can't be checked.
void load_custom_operators(NeuropodLoader& loader, const std::vector<std::string>& base_names);

}  // namespace neuropod
