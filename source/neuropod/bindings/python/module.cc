#define NEUROPOD_IMPORTS_NUMPY
#include "neuropod/bindings/python/numpy_api.hh"
// NumPy's header comes first: it decides which table this module shares.
#include "neuropod/bindings/python/gil.hh"
#include "neuropod/bindings/python/module.hh"

namespace {

void import_numpy() {
  if (_import_array() < 0) throw nanobind::python_error();
}

}  // namespace

NB_MODULE(_native, module) {
  module.doc() = "Neuropod's native module. Private: use `neuropod`.";
  import_numpy();
  neuropod::python::register_exit_handler();
  // A daemon thread or a module's global may hold a model when the interpreter ends: no bug of
  // ours.
  nanobind::set_leak_warnings(false);
  neuropod::python::bind_errors(module);
  neuropod::python::bind_specs(module);
  neuropod::python::bind_backends(module);
  neuropod::python::bind_package(module);
  neuropod::python::bind_problem_api(module);
  neuropod::python::bind_serialization(module);
  neuropod::python::bind_signature(module);
  neuropod::python::bind_options(module);
  neuropod::python::bind_model(module);
  neuropod::python::bind_metrics(module);
  neuropod::python::bind_logging(module);
  neuropod::python::install_host_module_resolver();
}
