#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "neuropod/bindings/python/package.hh"
#include "neuropod/internal/neuropod_loader.hh"

namespace neuropod::python {
namespace {

nb::dict devices_of(const ModelConfig& config) {
  nb::dict devices;
  for (const auto& [name, device] : config.input_tensor_device) {
    devices[nb::cast(name)] = device == DeviceType::CPU ? "CPU" : "GPU";
  }
  return devices;
}

}  // namespace

std::string package_path(nb::handle path) {
  PyObject* bytes = nullptr;
  if (!PyUnicode_FSConverter(path.ptr(), static_cast<void*>(&bytes))) throw nb::python_error();
  const nb::object owned = nb::steal(bytes);
  return {PyBytes_AS_STRING(bytes), static_cast<size_t>(PyBytes_GET_SIZE(bytes))};
}

nb::dict config_dict(const ModelConfig& config) {
  nb::dict result;
  result["name"] = config.name;
  result["platform"] = config.platform;
  result["platform_version_semver"] = config.platform_version_semver;
  result["inputs"] = config.inputs;
  result["outputs"] = config.outputs;
  result["custom_ops"] = config.custom_ops;
  result["input_tensor_device"] = devices_of(config);
  result["format_version"] = config.format_version;
  result["stateful"] = config.stateful;
  result["version"] = config.version;
  result["description"] = config.description;
  result["author"] = config.author;
  result["license"] = config.license;
  result["created"] = config.created;
  return result;
}

void bind_package(nb::module_& module) {
  module.def(
      "read_config",
      [](nb::handle path) { return config_dict(*load_model_config(package_path(path))); },
      nb::arg("path"),
      nb::sig("def read_config(path: " NEUROPOD_PATH_TYPE ") -> dict[str, typing.Any]"),
      "What a package's config.json says, with defaults; `inputs` and `outputs` hold TensorSpec.");
  module.def(
      "list_files",
      [](nb::handle path) {
        const std::unique_ptr<NeuropodLoader> loader = get_loader(package_path(path));
        std::vector<std::pair<std::string, uint64_t>> files;
        for (const std::string& name : loader->list_files()) {
          files.emplace_back(name, loader->get_file_size(name));
        }
        return files;
      },
      nb::arg("path"),
      nb::sig("def list_files(path: " NEUROPOD_PATH_TYPE ") -> list[tuple[str, int]]"),
      "Every file of a package, by name, with its size in bytes.");
  module.def(
      "read_file",
      [](nb::handle path, const std::string& name) {
        const std::string content = get_loader(package_path(path))->read_file(name);
        return nb::bytes(content.data(), content.size());
      },
      nb::arg("path"), nb::arg("name"),
      nb::sig("def read_file(path: " NEUROPOD_PATH_TYPE ", name: str) -> bytes"),
      "The content of one file of a package.");
  module.def(
      "hash_file",
      [](nb::handle path, const std::string& name) {
        return get_loader(package_path(path))->get_hash_for_file(name);
      },
      nb::arg("path"), nb::arg("name"),
      nb::sig("def hash_file(path: " NEUROPOD_PATH_TYPE ", name: str) -> str"),
      "Hex SHA-256 of one file of a package.");
  module.def(
      "verify_manifest", [](nb::handle path) { verify_manifest(*get_loader(package_path(path))); },
      nb::arg("path"), nb::sig("def verify_manifest(path: " NEUROPOD_PATH_TYPE ") -> None"),
      "Compares every file with the manifest; CorruptPackageError names the first that differs.");
}

}  // namespace neuropod::python
