#include "neuropod/backends/metrics.hh"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "neuropod/bindings/python/callbacks.hh"
#include "neuropod/bindings/python/gil.hh"
#include "neuropod/bindings/python/module.hh"
#include "neuropod/bindings/python/stats.hh"

namespace neuropod::python {
namespace {

nb::dict latency_dict(const LatencyStats& stats) {
  nb::dict result;
  result["count"] = stats.count;
  result["total_seconds"] = stats.total_seconds;
  result["mean_seconds"] = stats.count > 0 ? stats.total_seconds / double(stats.count) : 0.0;
  result["p50_seconds"] = stats.p50_seconds;
  result["p95_seconds"] = stats.p95_seconds;
  result["p99_seconds"] = stats.p99_seconds;
  result["max_seconds"] = stats.max_seconds;
  // Where there is none yet, and where all are, says nothing.
  nb::dict up_to;
  for (size_t i = 0; i < kLatencyBounds.size(); ++i) {
    if (stats.up_to[i] == 0) continue;
    up_to[nb::float_(kLatencyBounds[i])] = stats.up_to[i];
    if (stats.up_to[i] == stats.count) break;
  }
  result["up_to"] = up_to;
  return result;
}

nb::tuple arguments_of(const CallRecord& record) {
  nb::dict result;
  result["model"] = lenient_str(record.model.data(), record.model.size());
  result["platform"] = lenient_str(record.platform.data(), record.platform.size());
  result["load_id"] = record.load_id;
  result["error"] = record.error ? nb::object(nb::str(to_string(*record.error))) : nb::none();
  result["total_seconds"] = record.total_seconds;
  result["checks_seconds"] = record.checks_seconds;
  result["sealing_seconds"] = record.sealing_seconds;
  result["framework_seconds"] = record.framework_seconds;
  result["outputs_seconds"] = record.outputs_seconds;
  result["queue_seconds"] = record.queue_seconds;
  result["transport_seconds"] = record.transport_seconds;
  result["input_bytes"] = record.input_bytes;
  result["output_bytes"] = record.output_bytes;
  result["copied_bytes"] = record.copied_bytes;
  return nb::make_tuple(result);
}

void set_observer(nb::handle callable) {
  if (callable.is_none()) {
    set_metrics_observer(nullptr);
    return;
  }
  const Callback callback(callable, "metrics callback");
  set_metrics_observer(
      [callback](const CallRecord& record) { callback([&] { return arguments_of(record); }); });
}

std::string text_without_gil() {
  WithoutGil no_gil;
  return metrics_text();
}

}  // namespace

nb::dict allocator_dict(const AllocatorStats& stats) {
  nb::dict result;
  result["system_allocations"] = stats.system_allocations;
  result["reused"] = stats.reused;
  result["live_bytes"] = stats.live_bytes;
  result["peak_live_bytes"] = stats.peak_live_bytes;
  result["kept_bytes"] = stats.kept_bytes;
  result["transfers"] = stats.transfers;
  result["transferred_bytes"] = stats.transferred_bytes;
  return result;
}

nb::dict stats_dict(const ModelStats& stats) {
  nb::dict errors;
  for (const auto& [code, count] : stats.errors) errors[to_string(code)] = count;
  nb::dict latency;
  latency["total"] = latency_dict(stats.total);
  latency["checks"] = latency_dict(stats.checks);
  latency["sealing"] = latency_dict(stats.sealing);
  latency["framework"] = latency_dict(stats.framework);
  latency["outputs"] = latency_dict(stats.outputs);
  if (stats.has_workers) {
    latency["queue"] = latency_dict(stats.queue);
    latency["transport"] = latency_dict(stats.transport);
  }

  nb::dict result;
  if (stats.has_workers) {
    result["worker_deaths"] = stats.worker_deaths;
    result["worker_restarts"] = stats.worker_restarts;
  }
  result["collected"] = stats.collected;
  result["calls"] = stats.calls;
  result["calls_in_flight"] = stats.calls_in_flight;
  result["errors"] = errors;
  result["latency"] = latency;
  result["input_bytes"] = stats.input_bytes;
  result["output_bytes"] = stats.output_bytes;
  result["copied_bytes"] = stats.copied_bytes;
  result["cpu_seconds"] = stats.cpu_seconds;
  result["load_seconds"] = stats.load_seconds;
  result["allocator"] = allocator_dict(stats.allocator);
  return result;
}

void bind_metrics(nb::module_& module) {
  module.def("metrics_text", &text_without_gil, "`neuropod.metrics_text` documents it.");
  module.def("set_metrics_callback", &set_observer, nb::arg("callback").none(),
             nb::sig("def set_metrics_callback(callback: "
                     "collections.abc.Callable[[dict[str, typing.Any]], object] | None) -> None"),
             "`neuropod.set_metrics_callback` documents it.");
}

}  // namespace neuropod::python
