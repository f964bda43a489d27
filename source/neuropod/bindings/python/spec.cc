#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "neuropod/bindings/python/module.hh"
#include "neuropod/internal/config_utils.hh"
#include "neuropod/internal/tensor_types.hh"

namespace neuropod::python {
namespace {

std::string describe(const Dimension& dimension) {
  if (dimension.value >= 0) return std::to_string(dimension.value);
  return dimension.symbol.empty() ? "any" : dimension.symbol;
}

std::string represent(const TensorSpec& spec) {
  return fmt::format("<TensorSpec {}{}>", to_string(spec), spec.optional ? ", optional" : "");
}

}  // namespace

void bind_specs(nb::module_& module) {
  nb::enum_<TensorType> type(module, "TensorType",
                             "Element type; members are named as in packages.");
#define NEUROPOD_ENUM_VALUE(enumerator, number, name, cpp_type) type.value(name, enumerator);
  NEUROPOD_FOR_EACH_DTYPE(NEUROPOD_ENUM_VALUE)
#undef NEUROPOD_ENUM_VALUE

  nb::class_<Dimension>(module, "Dimension",
                        "One dimension of a spec: a size, any size (-1) or a symbol (-2).")
      .def_ro("value", &Dimension::value, "The size; -1 for any, -2 for a symbol.")
      .def_ro("symbol", &Dimension::symbol, "The symbol, or an empty string.")
      .def(
          "__eq__", [](const Dimension& self, const Dimension& other) { return self == other; },
          nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__",
           [](const Dimension& self) { return nb::hash(nb::make_tuple(self.value, self.symbol)); })
      .def("__repr__",
           [](const Dimension& self) { return fmt::format("<Dimension {}>", describe(self)); });

  nb::class_<TensorSpec>(module, "TensorSpec", "One input or output of a problem API.")
      .def_ro("name", &TensorSpec::name)
      .def_ro("type", &TensorSpec::type)
      .def_ro("dims", &TensorSpec::dims)
      .def_ro("optional", &TensorSpec::optional, "An input that may be left out.")
      .def("__str__", [](const TensorSpec& self) { return to_string(self); })
      .def("__repr__", &represent);
}

}  // namespace neuropod::python
