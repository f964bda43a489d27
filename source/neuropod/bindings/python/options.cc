#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <optional>
#include <string>

#include "neuropod/bindings/python/module.hh"
#include "neuropod/options.hh"

namespace neuropod::python {

namespace {

using OPEOptions = RuntimeOptions::OPEOptions;

// Spans are milliseconds on this side; `neuropod.OPEOptions` has seconds.
std::optional<int64_t> milliseconds_of(const std::optional<std::chrono::milliseconds>& span) {
  return span ? std::optional<int64_t>(span->count()) : std::nullopt;
}

void bind_ope_options(nb::module_& module) {
  nb::class_<OPEOptions>(module, "OPEOptions", "See `neuropod.OPEOptions`; spans in milliseconds.")
      .def(nb::init<>())
      .def_rw("control_queue_name", &OPEOptions::control_queue_name)
      .def_rw("cpus", &OPEOptions::cpus)
      .def_rw("cpu_quota", &OPEOptions::cpu_quota)
      .def_rw("threads", &OPEOptions::threads)
      .def_rw("nice", &OPEOptions::nice)
      .def_rw("memory_limit", &OPEOptions::memory_limit)
      .def_rw("gpu", &OPEOptions::gpu)
      .def_rw("env", &OPEOptions::env)
      .def_prop_rw(
          "startup_timeout", [](const OPEOptions& self) { return self.startup_timeout.count(); },
          [](OPEOptions& self, int64_t span) {
            self.startup_timeout = std::chrono::milliseconds(span);
          })
      .def_prop_rw(
          "timeout", [](const OPEOptions& self) { return milliseconds_of(self.timeout); },
          [](OPEOptions& self, std::optional<int64_t> span) {
            self.timeout.reset();
            if (span) self.timeout = std::chrono::milliseconds(*span);
          },
          nb::arg().none())
      .def_prop_rw(
          "kill_grace", [](const OPEOptions& self) { return self.kill_grace.count(); },
          [](OPEOptions& self, int64_t span) { self.kill_grace = std::chrono::milliseconds(span); })
      .def_rw("retries", &OPEOptions::retries)
      .def_rw("num_workers", &OPEOptions::num_workers)
      .def_rw("concurrency", &OPEOptions::concurrency)
      .def_prop_rw(
          "spin", [](const OPEOptions& self) { return static_cast<int>(self.spin); },
          [](OPEOptions& self, int spin) { self.spin = static_cast<RuntimeOptions::Spin>(spin); })
      .def_rw("core_dumps", &OPEOptions::core_dumps);
}

}  // namespace

void bind_options(nb::module_& module) {
  bind_ope_options(module);
  nb::class_<RuntimeOptions>(module, "RuntimeOptions",
                             "How a model is loaded and run. `neuropod.load_neuropod` documents "
                             "the fields.")
      .def(nb::init<>())
      .def_rw("use_ope", &RuntimeOptions::use_ope)
      .def_rw("ope_options", &RuntimeOptions::ope_options)
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
