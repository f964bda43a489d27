#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "neuropod/bindings/python/module.hh"
#include "neuropod/bindings/python/package.hh"
#include "neuropod/package/problem_api.hh"

namespace neuropod::python {

void bind_problem_api(nb::module_& module) {
  nb::class_<ProblemApi>(module, "ProblemApi",
                         "The tensors that a problem's models take and return. "
                         "`neuropod.ProblemAPI` is the public face.")
      .def(nb::init<std::vector<TensorSpec>, std::vector<TensorSpec>>(), nb::arg("inputs"),
           nb::arg("outputs"))
      .def_ro("inputs", &ProblemApi::inputs)
      .def_ro("outputs", &ProblemApi::outputs);

  nb::class_<ApiDifference>(module, "ApiDifference", "One point in which two problem APIs differ.")
      .def_prop_ro("side",
                   [](const ApiDifference& self) {
                     return self.side == ApiSide::kInput ? "input" : "output";
                   })
      .def_ro("tensor", &ApiDifference::tensor)
      .def_ro("text", &ApiDifference::text)
      .def_ro("breaking", &ApiDifference::breaking);

  module.def(
      "read_problem_api", [](nb::handle path) { return read_problem_api(package_path(path)); },
      nb::arg("path"), nb::sig("def read_problem_api(path: " NEUROPOD_PATH_TYPE ") -> ProblemApi"),
      "Reads a problem-API file; errors hold line and key.");
  module.def(
      "parse_problem_api",
      [](const std::string& text, const std::string& source) {
        return parse_problem_api(text, source);
      },
      nb::arg("text"), nb::arg("source"),
      "The same for the content of such a file, which messages call `source`.");
  module.def(
      "read_package_problem_api",
      [](nb::handle path) { return problem_api_of(*load_model_config(package_path(path))); },
      nb::arg("path"),
      nb::sig("def read_package_problem_api(path: " NEUROPOD_PATH_TYPE ") -> ProblemApi"),
      "What a package's config.json promises.");
  module.def("problem_api_text", &problem_api_text, nb::arg("api"),
             "The content of a problem-API file.");
  module.def("compare_problem_apis", &compare_problem_apis, nb::arg("old"), nb::arg("new"),
             "How `new` differs from `old`.");
  module.def(
      "require_fulfilled", &require_fulfilled, nb::arg("required"), nb::arg("found"),
      nb::arg("what"),
      "InvalidArgumentError that lists the differences if `found` can't replace `required`.");
}

}  // namespace neuropod::python
