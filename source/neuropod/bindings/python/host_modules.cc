#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <filesystem>
#include <optional>
#include <string>

#include "neuropod/bindings/python/module.hh"
#include "neuropod/internal/backend_registration.hh"

namespace neuropod::python {
namespace {

std::optional<std::string> directory_of(nb::handle file) {
  if (file.is_none()) return std::nullopt;
  return std::filesystem::path(nb::cast<std::string>(nb::str(file))).parent_path().string();
}

/// The directory of a module that is imported, or that an import statement would find; found
/// without importing it. A module that can't be found, or whose finder raises, is one that Python
/// can't import.
std::optional<std::string> find_module(const std::string& name) {
  nb::gil_scoped_acquire gil;
  try {
    const nb::object modules = nb::module_::import_("sys").attr("modules");
    const nb::object imported = modules.attr("get")(name);
    if (!imported.is_none()) return directory_of(nb::getattr(imported, "__file__", nb::none()));
    const nb::object spec = nb::module_::import_("importlib.util").attr("find_spec")(name);
    if (spec.is_none()) return std::nullopt;
    return directory_of(spec.attr("origin"));
  } catch (const nb::python_error&) {
    return std::nullopt;
  }
}

}  // namespace

void install_host_module_resolver() { set_host_module_resolver(&find_module); }

}  // namespace neuropod::python
