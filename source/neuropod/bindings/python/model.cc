#include "neuropod/bindings/python/model.hh"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>

#include "neuropod/backends/model_metrics.hh"
#include "neuropod/bindings/python/gil.hh"
#include "neuropod/bindings/python/lent_memory.hh"
#include "neuropod/bindings/python/module.hh"
#include "neuropod/bindings/python/package.hh"
#include "neuropod/bindings/python/stats.hh"
#include "neuropod/bindings/python/tensor_out.hh"
#include "neuropod/multiprocess/worker_list.hh"
#include "neuropod/package/nearest_name.hh"

namespace neuropod::python {
namespace {

// Asked while a call, or the loading of a model, waits for its worker: whether a signal has come
// whose handler raises, Ctrl-C above all. Only on the main thread are there any.
bool signal_raised() {
  const WithGil gil;
  return gil && PyErr_CheckSignals() != 0;
}

// Runs `load` without the GIL; Ctrl-C ends it while it waits for a worker.
template <typename Function>
auto load_interruptibly(Function load) {
  try {
    WithoutGil no_gil;
    CallControl control(signal_raised);
    const CallControl::Scope scope(control);
    return load();
  } catch (const Error&) {
    if (PyErr_Occurred()) throw nb::python_error();  // a signal's handler ended it
    throw;
  }
}

Neuropod load(const std::string& path, const std::vector<BackendLoadSpec>& overrides,
              const RuntimeOptions& options) {
  return load_interruptibly([&] { return Neuropod(path, overrides, options); });
}

NameIndex index_of(const std::vector<TensorSpec>& specs) {
  std::vector<std::string> names;
  for (const TensorSpec& spec : specs) names.push_back(spec.name);
  return NameIndex(names);
}

std::string_view utf8_of(PyObject* text) {
  Py_ssize_t size = 0;
  const char* utf8 = PyUnicode_AsUTF8AndSize(text, &size);
  if (!utf8) {
    PyErr_Clear();
    throw_error(ErrorCode::kInvalidArgument,
                "a tensor's name holds a lone surrogate; it must be UTF-8");
  }
  return {utf8, static_cast<size_t>(size)};
}

/// The items of a mapping, held, because converting a value can run code that changes the mapping.
std::vector<std::pair<nb::object, nb::object>> items_of(nb::handle mapping) {
  std::vector<std::pair<nb::object, nb::object>> items;
  if (PyDict_CheckExact(mapping.ptr())) {
    items.reserve(static_cast<size_t>(PyDict_GET_SIZE(mapping.ptr())));
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(mapping.ptr(), &position, &key, &value)) {
      items.emplace_back(nb::borrow(key), nb::borrow(value));
    }
    return items;
  }
  if (!nb::hasattr(mapping, "keys") || !PyMapping_Check(mapping.ptr())) {
    throw_error(ErrorCode::kInvalidArgument,
                fmt::format("inputs is expected to be a dict of tensors by name, but is a {}",
                            Py_TYPE(mapping.ptr())->tp_name));
  }
  const nb::object keys = nb::steal(PyMapping_Keys(mapping.ptr()));
  if (!keys.is_valid()) throw nb::python_error();
  for (nb::handle key : keys) {
    items.emplace_back(nb::borrow(key), nb::borrow(mapping[key]));
  }
  return items;
}

nb::list worker_list(const std::vector<WorkerInfo>& infos) {
  nb::list list;
  for (const WorkerInfo& info : infos) {
    nb::dict worker;
    worker["pid"] = info.pid;
    worker["host_pid"] = info.host_pid;
    worker["model"] = info.model;
    worker["platform"] = info.platform;
    worker["package"] = info.package;
    worker["state"] = info.state;
    worker["cpu_seconds"] = info.cpu_seconds;
    worker["memory_bytes"] = info.memory_bytes;
    worker["input_bytes"] = info.input_bytes;
    worker["output_bytes"] = info.output_bytes;
    worker["restarts"] = info.restarts;
    worker["calls"] = info.calls;
    worker["calls_in_flight"] = info.calls_in_flight;
    worker["running_seconds"] = info.running_seconds;
    list.append(std::move(worker));
  }
  return list;
}

}  // namespace

Model::Model(const std::string& path, const std::vector<BackendLoadSpec>& overrides,
             const RuntimeOptions& options)
    : neuropod_(load(path, overrides, options)),
      allocator_(neuropod_.get_tensor_allocator()),
      check_dtypes_(!options.disable_shape_and_type_checking),
      collects_metrics_(options.collect_metrics),
      in_worker_(options.use_ope),
      input_names_(index_of(neuropod_.get_inputs())) {
  for (const TensorSpec& spec : neuropod_.get_outputs())
    output_names_.push_back(nb::cast(spec.name));
}

nb::dict Model::infer(nb::handle inputs, nb::handle requested) const {
  if (!in_worker_) return infer_with(inputs, requested, nullptr);
  CallControl control(signal_raised);
  return infer_with(inputs, requested, &control);
}

nb::dict Model::infer_controlled(nb::handle inputs, nb::handle requested,
                                 CallControl& control) const {
  return infer_with(inputs, requested, &control);
}

nb::dict Model::infer_with(nb::handle inputs, nb::handle requested, CallControl* control) const {
  drop_released();
  std::vector<std::string> names;
  NeuropodValueMap values;
  try {
    names = names_from(requested);
    values = values_from(inputs);
  } catch (const Error& error) {
    neuropod_.count_failed_call(error.code());
    throw;
  } catch (...) {  // what a value's own conversion raised
    neuropod_.count_failed_call(ErrorCode::kInvalidArgument);
    throw;
  }
  std::unique_ptr<NeuropodValueMap> outputs;
  try {
    WithoutGil no_gil;
    std::optional<CallControl::Scope> scope;
    if (control != nullptr) scope.emplace(*control);
    outputs = neuropod_.infer(values, names);
  } catch (const Error&) {
    if (PyErr_Occurred()) throw nb::python_error();  // a signal's handler ended the call
    throw;
  }
  return arrays_from(*outputs, names);
}

NeuropodValueMap Model::values_from(nb::handle inputs) const {
  NeuropodValueMap values;
  for (const auto& [name, value] : items_of(inputs)) add_value(name.ptr(), value.ptr(), &values);
  return values;
}

void Model::add_value(PyObject* name, PyObject* value, NeuropodValueMap* values) const {
  if (!PyUnicode_Check(name)) {
    throw_error(ErrorCode::kInvalidArgument,
                fmt::format("model '{}': the name of an input is expected to be a str, but is a {}",
                            neuropod_.get_name(), Py_TYPE(name)->tp_name));
  }
  const std::string_view key = utf8_of(name);
  const size_t index = input_names_.find(key);
  if (index == NameIndex::kNotFound) {
    // The core refuses it together with all other unknown names; the value is never looked at.
    values->emplace(key, allocator_->allocate_tensor({}, UINT8_TENSOR));
    return;
  }
  bool lent = false;
  const InputSlot slot{neuropod_.get_name(), key, &neuropod_.get_inputs()[index], check_dtypes_,
                       &lent};
  std::shared_ptr<NeuropodValue> tensor = tensor_from_python(value, slot, *allocator_);
  if (collects_metrics_ && !lent) internal::count_copy_for_next_call(*tensor->as_tensor());
  values->emplace(key, std::move(tensor));
}

std::vector<std::string> Model::names_from(nb::handle requested) const {
  std::vector<std::string> names;
  if (requested.is_none()) return names;
  if (PyUnicode_Check(requested.ptr()) || PyBytes_Check(requested.ptr())) {
    throw_error(
        ErrorCode::kInvalidArgument,
        "requested_outputs is expected to be a list of names, but is one string; put it in a list");
  }
  const nb::object items = nb::steal(PySequence_Tuple(requested.ptr()));
  if (!items.is_valid()) throw nb::python_error();
  for (nb::handle item : nb::borrow<nb::tuple>(items)) {
    if (!PyUnicode_Check(item.ptr())) {
      throw_error(ErrorCode::kInvalidArgument,
                  fmt::format("requested_outputs is expected to hold names, but holds a {}",
                              Py_TYPE(item.ptr())->tp_name));
    }
    names.emplace_back(utf8_of(item.ptr()));
  }
  return names;
}

nb::dict Model::arrays_from(const NeuropodValueMap& outputs,
                            const std::vector<std::string>& requested) const {
  nb::dict arrays;
  const auto add = [&](PyObject* name, const std::shared_ptr<NeuropodValue>& value) {
    const nb::object array = nb::steal(array_from_tensor(value));
    if (PyDict_SetItem(arrays.ptr(), name, array.ptr()) < 0) throw nb::python_error();
  };
  if (!requested.empty()) {
    for (const std::string& name : requested) {
      const auto output = outputs.find(name);
      if (output != outputs.end()) add(nb::cast(name).ptr(), output->second);
    }
    return arrays;
  }
  const std::vector<TensorSpec>& specs = neuropod_.get_outputs();
  for (size_t i = 0; i < specs.size(); ++i) {
    const auto output = outputs.find(specs[i].name);
    if (output != outputs.end()) add(output_names_[i].ptr(), output->second);
  }
  if (nb::len(arrays) == outputs.size()) return arrays;
  // Without checks a model may return more than its spec says.
  for (const auto& [name, value] : outputs) {
    const nb::object key = nb::cast(name);
    if (!arrays.contains(key)) add(key.ptr(), value);
  }
  return arrays;
}

void Model::load_model() {
  load_interruptibly([this] { neuropod_.load_model(); });
}

void Model::reset() {
  WithoutGil no_gil;
  neuropod_.reset();
}

nb::object Model::allocate(const std::string& name, const std::vector<int64_t>& shape) const {
  const size_t index = input_names_.find(name);
  if (index == NameIndex::kNotFound) {
    constexpr size_t kMostNames = 10;
    std::vector<std::string> names;
    for (const TensorSpec& spec : neuropod_.get_inputs()) names.push_back(spec.name);
    const std::string nearest = nearest_name(name, names);
    std::string known;
    for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i) {
      known += fmt::format("{}'{}'", i == 0 ? "" : ", ", names[i]);
    }
    if (names.size() > kMostNames) known += fmt::format(" … ({} in all)", names.size());
    throw_error(
        ErrorCode::kNotFound,
        fmt::format("model '{}' has no input '{}'{}; it has {}", neuropod_.get_name(), name,
                    nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest), known));
  }
  const TensorType type = neuropod_.get_inputs()[index].type;
  if (type == STRING_TENSOR) {
    throw_error(
        ErrorCode::kInvalidArgument,
        fmt::format("input '{}' of model '{}' is of strings, which have no memory to write into; "
                    "pass a list or an array of them",
                    name, neuropod_.get_name()));
  }
  return nb::steal(array_from_tensor(allocator_->allocate_tensor(shape, type)));
}

nb::list Model::workers() const {
  std::vector<WorkerInfo> infos;
  {
    WithoutGil no_gil;
    infos = neuropod_.workers();
  }
  return worker_list(infos);
}

nb::dict Model::allocator_stats() const { return allocator_dict(allocator_->stats()); }

nb::dict Model::stats() const {
  ModelStats stats;
  {
    WithoutGil no_gil;
    stats = neuropod_.stats();
  }
  return stats_dict(stats);
}

void bind_model(nb::module_& module) {
  nb::class_<CallControl>(module, "CallControl", "Withdraws a call from another thread.")
      .def(nb::init<>())
      .def("cancel", &CallControl::cancel,
           "True: the call hadn't begun and never will. False: it goes on.");
  module.def(
      "list_workers", [] { return worker_list(multiprocess::list_workers()); },
      nb::sig("def list_workers() -> list[dict[str, typing.Any]]"),
      "Every worker process of this user.");
  nb::class_<Model>(module, "Model", "A loaded package. `neuropod.Neuropod` documents the methods.")
      .def(
          "__init__",
          [](Model* self, nb::handle path, const std::vector<BackendLoadSpec>& overrides,
             const RuntimeOptions& options) {
            new (self) Model(package_path(path), overrides, options);
          },
          nb::arg("path").none(), nb::arg("backend_overrides") = std::vector<BackendLoadSpec>(),
          nb::arg("options") = RuntimeOptions(),
          nb::sig("def __init__(self, path: " NEUROPOD_PATH_TYPE ", backend_overrides: "
                  "collections.abc.Sequence[BackendLoadSpec] = ..., "
                  "options: RuntimeOptions = ...) -> None"))
      .def("infer", &Model::infer, nb::arg("inputs").none(),
           nb::arg("requested_outputs").none() = nb::none(),
           nb::sig("def infer(self, inputs: collections.abc.Mapping[str, typing.Any], "
                   "requested_outputs: "
                   "collections.abc.Sequence[str] | None = None) -> dict[str, "
                   "numpy.typing.NDArray[typing.Any]]"))
      .def("infer_controlled", &Model::infer_controlled, nb::arg("inputs").none(),
           nb::arg("requested_outputs").none(), nb::arg("control"),
           nb::sig(
               "def infer_controlled(self, inputs: collections.abc.Mapping[str, typing.Any], "
               "requested_outputs: collections.abc.Sequence[str] | None, control: CallControl) -> "
               "dict[str, numpy.typing.NDArray[typing.Any]]"))
      .def("allocate", &Model::allocate, nb::arg("name"), nb::arg("shape"),
           nb::sig("def allocate(self, name: str, shape: collections.abc.Sequence[int]) -> "
                   "numpy.typing.NDArray[typing.Any]"))
      .def("workers", &Model::workers, nb::sig("def workers(self) -> list[dict[str, typing.Any]]"))
      .def("concurrency", [](const Model& self) { return self.neuropod().concurrency(); })
      .def("load_model", &Model::load_model)
      .def("reset", &Model::reset)
      .def("get_name", [](const Model& self) { return self.neuropod().get_name(); })
      .def("get_platform", [](const Model& self) { return self.neuropod().get_platform(); })
      .def("get_inputs", [](const Model& self) { return self.neuropod().get_inputs(); })
      .def("get_outputs", [](const Model& self) { return self.neuropod().get_outputs(); })
      .def(
          "get_config", [](const Model& self) { return config_dict(self.neuropod().get_config()); },
          nb::sig("def get_config(self) -> dict[str, typing.Any]"))
      .def("stats", &Model::stats, nb::sig("def stats(self) -> dict[str, typing.Any]"))
      .def("allocator_stats", &Model::allocator_stats,
           nb::sig("def allocator_stats(self) -> dict[str, int]"));
}

}  // namespace neuropod::python
