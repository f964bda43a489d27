#include <dlfcn.h>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "neuropod/base/semver.hh"
#include "neuropod/bindings/python/gil.hh"
#include "neuropod/bindings/python/module.hh"
#include "neuropod/internal/backend_registration.hh"
#include "neuropod/version.hh"

namespace neuropod::python {
namespace {

std::string library_path() {
  Dl_info info{};
  return dladdr(reinterpret_cast<const void*>(&library_version), &info) && info.dli_fname
             ? info.dli_fname
             : "";
}

void bind_load_spec(nb::module_& module) {
  nb::class_<BackendLoadSpec>(module, "BackendLoadSpec",
                              "Points at a plug-in that is not on the search path.")
      .def(
          "__init__",
          [](BackendLoadSpec* self, std::string type, std::string version, std::string path) {
            new (self) BackendLoadSpec{std::move(type), std::move(version), std::move(path)};
          },
          nb::arg("type"), nb::arg("version"), nb::arg("path"),
          "`path`: its shared library, or the directory of its backend.json.")
      .def_rw("type", &BackendLoadSpec::type, "Platform, e.g. \"torchscript\".")
      .def_rw("version", &BackendLoadSpec::version, "Version of its framework, e.g. \"2.13.0\".")
      .def_rw("path", &BackendLoadSpec::path,
              "Its shared library, or the directory of its backend.json.")
      .def(
          "__eq__",
          [](const BackendLoadSpec& self, const BackendLoadSpec& other) { return self == other; },
          nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", [](const BackendLoadSpec& self) {
        return fmt::format("BackendLoadSpec('{}', '{}', '{}')", self.type, self.version, self.path);
      });
}

void bind_search(nb::module_& module) {
  nb::class_<BackendManifest>(module, "BackendManifest", "What a plug-in's backend.json says.")
      .def_ro("platform", &BackendManifest::platform)
      .def_ro("framework", &BackendManifest::framework)
      .def_ro("framework_version", &BackendManifest::framework_version)
      .def_ro("neuropod_abi", &BackendManifest::neuropod_abi)
      .def_ro("library", &BackendManifest::library, "Absolute path of the plug-in.")
      .def_ro("libraries", &BackendManifest::libraries,
              "The framework's, absolute paths, in load order.")
      .def_ro("python_module", &BackendManifest::python_module,
              "The module whose import loads the same libraries, or an empty string.")
      .def_ro("gpu", &BackendManifest::gpu)
      .def_ro("directory", &BackendManifest::directory, "Where the manifest was found.");

  nb::class_<BackendCandidate>(module, "BackendCandidate", "One plug-in that was looked at.")
      .def_ro("manifest", &BackendCandidate::manifest)
      .def_ro("source", &BackendCandidate::source, "The kind of place where it was found.")
      .def_ro("rejected", &BackendCandidate::rejected, "Why it can't be used; empty if it can.");

  nb::class_<BackendSearch>(module, "BackendSearch", "The result of looking for plug-ins.")
      .def_ro("candidates", &BackendSearch::candidates, "Best first.")
      .def_ro("searched", &BackendSearch::searched, "Each place that was searched.");

  module.def(
      "find_backends",
      [](const std::string& platform, const std::string& version_range,
         const std::vector<BackendLoadSpec>& overrides) {
        return find_backends(overrides, platform, version_range);
      },
      nb::arg("platform") = "", nb::arg("version_range") = "*",
      nb::arg("overrides") = std::vector<BackendLoadSpec>(),
      "Looks for plug-ins of `platform` ('' means all) without opening any.");
  module.def(
      "find_library_conflict", &find_library_conflict, nb::arg("manifest"),
      nb::call_guard<WithoutGil>(),
      "Why this process can't load the plug-in beside what it holds; an empty string if it can.");
}

}  // namespace

void bind_backends(nb::module_& module) {
  bind_load_spec(module);
  bind_search(module);
  module.def("user_backend_folder", &user_backend_folder,
             "The user's data folder for plug-ins; an empty string without a home.");
  module.def("version_satisfies", &version_satisfies, nb::arg("version"), nb::arg("range"),
             "Whether a version is in a range as npm writes ranges.");
  module.def(
      "library_version", [] { return std::string(library_version()); },
      "The version of the native library.");
  module.def("library_path", &library_path, "The file that the native library was loaded from.");
  module.attr("ABI_VERSION") = NEUROPOD_ABI_VERSION;
}

}  // namespace neuropod::python
