#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "neuropod/bindings/python/module.hh"
#include "neuropod/options.hh"

namespace neuropod::python {

void bind_options(nb::module_& module) {
  nb::class_<RuntimeOptions>(module, "RuntimeOptions",
                             "How a model is loaded and run. `neuropod.load_neuropod` documents "
                             "the fields.")
      .def(nb::init<>())
      .def_rw("use_ope", &RuntimeOptions::use_ope)
      .def_rw("visible_device", &RuntimeOptions::visible_device)
      .def_rw("load_model_at_construction", &RuntimeOptions::load_model_at_construction)
      .def_rw("disable_shape_and_type_checking", &RuntimeOptions::disable_shape_and_type_checking)
      .def_rw("verify_hashes", &RuntimeOptions::verify_hashes)
      .def_rw("threads", &RuntimeOptions::threads)
      .def_rw("strict", &RuntimeOptions::strict)
      .def_rw("collect_metrics", &RuntimeOptions::collect_metrics)
      .def_rw("allow_native_code", &RuntimeOptions::allow_native_code)
      .def_rw("require_signature", &RuntimeOptions::require_signature);
}

}  // namespace neuropod::python
