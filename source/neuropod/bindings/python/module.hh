#pragma once

#include <nanobind/nanobind.h>

// neuropod._native: private, typed by python/neuropod/_native.pyi. Thin: it converts types and
// errors. Each file adds its part; module.cc calls them in order.
namespace neuropod::python {

namespace nb = nanobind;

void bind_errors(nb::module_& module);
void bind_specs(nb::module_& module);
void bind_backends(nb::module_& module);
void bind_package(nb::module_& module);
void bind_problem_api(nb::module_& module);
void bind_serialization(nb::module_& module);
void bind_signature(nb::module_& module);
void bind_options(nb::module_& module);
void bind_model(nb::module_& module);
void bind_metrics(nb::module_& module);
void bind_logging(nb::module_& module);

/// Tells the core how to find the framework that this Python has imported or would import.
void install_host_module_resolver();

}  // namespace neuropod::python
