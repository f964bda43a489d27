#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "neuropod/backends/metrics.hh"
#include "neuropod/backends/metrics_registry.hh"
#include "neuropod/base/utf8.hh"
#include "neuropod/version.hh"

namespace neuropod {
namespace {

struct Model {
  std::string labels;  // model="…",platform="…",load_id="…"
  std::string info;    // further labels of neuropod_model_info
  ModelStats stats;
};

// A label's value as the format wants it.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : valid_utf8(text)) {
    if (c == '\\' || c == '"') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result;
}

std::vector<Model> living_models() {
  std::vector<Model> models;
  for (const auto& metrics : internal::listed_models()) {
    const internal::ModelIdentity& identity = metrics->identity();
    models.push_back(
        {fmt::format(R"(model="{}",platform="{}",load_id="{}")", escaped(identity.name),
                     escaped(identity.platform), identity.load_id),
         fmt::format(R"(,version="{}",path="{}")", escaped(identity.version),
                     escaped(identity.path)),
         metrics->stats()});
  }
  return models;
}

// Seconds and counts, as short as they can be read back exactly.
std::string number(double value) { return fmt::format("{}", value); }
std::string number(uint64_t value) { return fmt::format("{}", value); }

class Text {
 public:
  explicit Text(const std::vector<Model>& models) : models_(models) {}

  void head(const char* name, const char* type, const char* help) {
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }

  void line(std::string_view name, std::string_view labels, const std::string& value) {
    text_ += fmt::format("{}{{{}}} {}\n", name, labels, value);
  }
  void line(std::string_view name, const std::string& value) {
    text_ += fmt::format("{} {}\n", name, value);
  }

  // One line per model.
  template <typename Get>
  void series(const char* name, const char* type, const char* help, Get&& get) {
    head(name, type, help);
    for (const Model& model : models_) line(name, model.labels, number(get(model.stats)));
  }

  void histogram(std::string_view name, const std::string& labels, const LatencyStats& stats) {
    const std::string bucket = fmt::format("{}_bucket", name);
    for (size_t i = 0; i < kLatencyBounds.size(); ++i) {
      line(bucket, fmt::format("{},le=\"{}\"", labels, kLatencyBounds[i]), number(stats.up_to[i]));
    }
    line(bucket, labels + ",le=\"+Inf\"", number(stats.count));
    line(fmt::format("{}_sum", name), labels, number(stats.total_seconds));
    line(fmt::format("{}_count", name), labels, number(stats.count));
  }

  std::string take() { return std::move(text_); }

 private:
  const std::vector<Model>& models_;
  std::string text_;
};

void write_process(Text& text) {
  text.head("neuropod_build_info", "gauge", "The version of the library; always 1.");
  text.line("neuropod_build_info", fmt::format("version=\"{}\"", library_version()), "1");
  const internal::LoadCounts loads = internal::load_counts();
  text.head("neuropod_model_loads_total", "counter", "Models that were loaded by this process.");
  text.line("neuropod_model_loads_total", number(loads.loads));
  text.head("neuropod_model_load_failures_total", "counter",
            "Loads that failed in this process, by error code.");
  for (size_t i = 0; i < loads.failures.size(); ++i) {
    text.line("neuropod_model_load_failures_total",
              fmt::format("code=\"{}\"", to_string(ErrorCode(i))), number(loads.failures[i]));
  }
}

void write_errors(Text& text, const std::vector<Model>& models) {
  constexpr const char* kName = "neuropod_call_errors_total";
  text.head(kName, "counter", "Calls that failed, by error code.");
  for (const Model& model : models) {
    for (int i = 0; i <= static_cast<int>(ErrorCode::kCancelled); ++i) {
      const auto code = static_cast<ErrorCode>(i);
      const auto found = model.stats.errors.find(code);
      text.line(kName, fmt::format("{},code=\"{}\"", model.labels, to_string(code)),
                number(found == model.stats.errors.end() ? uint64_t(0) : found->second));
    }
  }
}

void write_latencies(Text& text, const std::vector<Model>& models) {
  constexpr const char* kTotal = "neuropod_call_duration_seconds";
  text.head(kTotal, "histogram", "How long calls that succeeded took.");
  for (const Model& model : models) text.histogram(kTotal, model.labels, model.stats.total);

  constexpr const char* kPhase = "neuropod_call_phase_duration_seconds";
  text.head(kPhase, "histogram", "How long each part of the calls that succeeded took.");
  for (const Model& model : models) {
    std::vector<std::pair<const char*, const LatencyStats*>> phases{
        {"checks", &model.stats.checks},
        {"sealing", &model.stats.sealing},
        {"framework", &model.stats.framework},
        {"outputs", &model.stats.outputs}};
    if (model.stats.has_workers) {
      phases.emplace_back("queue", &model.stats.queue);
      phases.emplace_back("transport", &model.stats.transport);
    }
    for (const auto& [phase, stats] : phases) {
      text.histogram(kPhase, fmt::format("{},phase=\"{}\"", model.labels, phase), *stats);
    }
  }
}

// Of models in processes of their own only.
void write_workers(Text& text, const std::vector<Model>& models) {
  const auto write = [&](const char* name, const char* help, uint64_t ModelStats::* count) {
    bool told = false;
    for (const Model& model : models) {
      if (!model.stats.has_workers) continue;
      if (!told) text.head(name, "counter", help);
      told = true;
      text.line(name, model.labels, number(model.stats.*count));
    }
  };
  write("neuropod_worker_deaths_total", "Workers that died or were killed.",
        &ModelStats::worker_deaths);
  write("neuropod_worker_restarts_total", "Workers that were started in place of dead ones.",
        &ModelStats::worker_restarts);
}

void write_calls(Text& text, const std::vector<Model>& models) {
  text.head("neuropod_model_info", "gauge", "A loaded model's package; always 1.");
  for (const Model& model : models) {
    text.line("neuropod_model_info", model.labels + model.info, "1");
  }
  text.series("neuropod_model_load_duration_seconds", "gauge",
              "How long reading, verifying and loading the model took.",
              [](const ModelStats& stats) { return stats.load_seconds; });
  text.series("neuropod_calls_total", "counter", "Calls that ended, failed ones included.",
              [](const ModelStats& stats) { return stats.calls; });
  write_errors(text, models);
  text.series("neuropod_calls_in_flight", "gauge", "Calls that began and haven't ended.",
              [](const ModelStats& stats) { return stats.calls_in_flight; });
  write_latencies(text, models);
  write_workers(text, models);
  text.series("neuropod_input_bytes_total", "counter", "Bytes of inputs that passed the checks.",
              [](const ModelStats& stats) { return stats.input_bytes; });
  text.series("neuropod_output_bytes_total", "counter", "Bytes of outputs that were returned.",
              [](const ModelStats& stats) { return stats.output_bytes; });
  text.series("neuropod_copied_bytes_total", "counter",
              "Bytes of inputs that were copied: to a device, to a worker, or to make a tensor.",
              [](const ModelStats& stats) { return stats.copied_bytes; });
  text.series("neuropod_call_cpu_seconds_total", "counter",
              "CPU time of the calling threads inside calls.",
              [](const ModelStats& stats) { return stats.cpu_seconds; });
}

void write_allocators(Text& text) {
  text.series("neuropod_allocator_live_bytes", "gauge", "Bytes of the pool in tensors now.",
              [](const ModelStats& stats) { return stats.allocator.live_bytes; });
  text.series("neuropod_allocator_peak_live_bytes", "gauge", "The most that live bytes ever were.",
              [](const ModelStats& stats) { return stats.allocator.peak_live_bytes; });
  text.series("neuropod_allocator_kept_bytes", "gauge", "Free bytes that the pool keeps for reuse.",
              [](const ModelStats& stats) { return stats.allocator.kept_bytes; });
  text.series("neuropod_allocator_system_allocations_total", "counter",
              "Blocks that the pool asked of the system.",
              [](const ModelStats& stats) { return stats.allocator.system_allocations; });
  text.series("neuropod_allocator_reused_total", "counter",
              "Requests that a kept block of the pool served.",
              [](const ModelStats& stats) { return stats.allocator.reused; });
  text.series("neuropod_allocator_transfers_total", "counter", "Copies from one device to another.",
              [](const ModelStats& stats) { return stats.allocator.transfers; });
  text.series("neuropod_allocator_transferred_bytes_total", "counter",
              "Bytes of copies from one device to another.",
              [](const ModelStats& stats) { return stats.allocator.transferred_bytes; });
}

}  // namespace

std::string metrics_text() {
  const std::vector<Model> models = living_models();
  Text text(models);
  write_process(text);
  write_calls(text, models);
  write_allocators(text);
  return text.take();
}

}  // namespace neuropod
