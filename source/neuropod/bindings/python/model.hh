#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "neuropod/backends/call_control.hh"
#include "neuropod/bindings/python/tensor_in.hh"
#include "neuropod/neuropod.hh"
#include "neuropod/package/call_plan.hh"

namespace neuropod::python {

namespace nb = nanobind;

/// A loaded package as Python sees it.
///
/// **Thread safety**: as Neuropod. Every method needs the GIL; loading, resetting and running
/// release it.
class Model {
 public:
  Model(const std::string& path, const std::vector<BackendLoadSpec>& overrides,
        const RuntimeOptions& options);

  /// `inputs`: a mapping of str to what tensor_from_python() takes. `requested`: None or a sequence
  /// of str. Returns a new dict of arrays, in the order of the output spec, or of `requested`.
  nb::dict infer(nb::handle inputs, nb::handle requested) const;

  /// The same; `control` lets another thread withdraw the call.
  nb::dict infer_controlled(nb::handle inputs, nb::handle requested, CallControl& control) const;

  /// A new array of input `name`'s dtype, over memory that the model takes without a copy.
  nb::object allocate(const std::string& name, const std::vector<int64_t>& shape) const;
  nb::list workers() const;

  void load_model();
  void reset();
  nb::dict allocator_stats() const;
  nb::dict stats() const;
  const Neuropod& neuropod() const { return neuropod_; }

 private:
  nb::dict infer_with(nb::handle inputs, nb::handle requested, CallControl* control) const;
  NeuropodValueMap values_from(nb::handle inputs) const;
  void add_value(PyObject* name, PyObject* value, NeuropodValueMap* values) const;
  std::vector<std::string> names_from(nb::handle requested) const;
  nb::dict arrays_from(const NeuropodValueMap& outputs,
                       const std::vector<std::string>& requested) const;

  Neuropod neuropod_;
  const std::shared_ptr<NeuropodTensorAllocator> allocator_;
  const bool check_dtypes_;
  const bool collects_metrics_;
  const bool in_worker_;
  NameIndex input_names_;
  std::vector<nb::object> output_names_;  // str, in the order of the output spec
};

}  // namespace neuropod::python
