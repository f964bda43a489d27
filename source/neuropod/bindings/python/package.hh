#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "neuropod/bindings/python/module.hh"
#include "neuropod/internal/config_utils.hh"

/// What a path may be, in a stub's signature.
#define NEUROPOD_PATH_TYPE "str | bytes | os.PathLike[str] | os.PathLike[bytes]"

namespace neuropod::python {

/// A str, bytes or path-like as the bytes the file system knows; TypeError for anything else.
std::string package_path(nb::handle path);

/// A configuration as a dict, keys as in config.json, but `inputs` and `outputs` hold TensorSpec.
nb::dict config_dict(const ModelConfig& config);

}  // namespace neuropod::python
