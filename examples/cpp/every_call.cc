// Every public call of the C++ interface once, on a package that adds two tensors:
//
//     neuropod_every_call models/addition
//
// Ends with "ok", or with the first expectation that isn't met.
#include <neuropod/core/generic_tensor.hh>
#include <neuropod/neuropod.hh>
#include <neuropod/serialization/serialization.hh>
#if __has_include(<Eigen/Core>)
#include <neuropod/conversions/eigen.hh>
#endif

#include <cstdint>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using neuropod::Neuropod;
using neuropod::NeuropodValueMap;

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::logic_error("not as expected: " + what);
}

// Whatever the library throws is a std::runtime_error whose text starts with "Neuropod Error: ".
template <typename Call>
void expect_error(Call&& call, const std::string& part) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    const std::string text = error.what();
    expect(text.rfind("Neuropod Error: ", 0) == 0, text);
    expect(text.find(part) != std::string::npos, text);
    return;
  }
  throw std::logic_error("no error about " + part);
}

void load_in_every_way(const std::string& path) {
  neuropod::RuntimeOptions options;
  options.use_ope = false;
  options.ope_options.free_memory_every_cycle = true;
  options.ope_options.control_queue_name = "";
  options.visible_device = neuropod::Device::CPU;
  options.load_model_at_construction = false;
  options.disable_shape_and_type_checking = false;
  Neuropod later(path, options);
  later.load_model();
  expect(later.get_name() == "addition" && later.get_platform() == "echo", "name and platform");

  options.load_model_at_construction = true;
  const neuropod::BackendLoadSpec nowhere{"another", "1.0.0", "/nowhere/libanother.so"};
  expect(nowhere == neuropod::BackendLoadSpec{"another", "1.0.0", "/nowhere/libanother.so"}, "==");
  Neuropod with_overrides(path, {nowhere}, options);

  std::shared_ptr<neuropod::NeuropodBackend> backend = neuropod::load_backend(path, {}, options);
  backend->load_model();
  Neuropod around_a_backend(path, backend);

  std::vector<Neuropod> models{later, with_overrides};
  models.push_back(around_a_backend);
  for (const Neuropod& model : models) expect(model.get_inputs().size() == 2, "inputs");
  expect_error([] { Neuropod missing("/nowhere/model.neuropod"); }, "/nowhere/model.neuropod");
}

void read_the_specs(const Neuropod& model, const std::string& path) {
  const std::vector<neuropod::TensorSpec>& inputs = model.get_inputs();
  expect(inputs[0].name == "x" && inputs[0].type == neuropod::FLOAT_TENSOR, "first input");
  expect(inputs[0].dims[0] == neuropod::Dimension("batch_size"), "a symbol");
  expect(inputs[0].dims[1] == neuropod::Dimension(3), "a fixed dimension");
  expect(inputs[0].dims[0].value == -2 && inputs[0].dims[0].symbol == "batch_size", "a symbol");
  expect(model.get_outputs()[1].type == neuropod::STRING_TENSOR, "second output");

  const std::unique_ptr<neuropod::ModelConfig> config = neuropod::load_model_config(path);
  expect(config->name == "addition" && config->platform_version_semver == "^1.0.0", "config");
  expect(config->custom_ops.empty(), "custom operators");
  expect(config->input_tensor_device.at("x") == neuropod::DeviceType::CPU, "device");
  expect(config->input_tensor_device.at("y") == neuropod::DeviceType::GPU, "device");

  std::unique_ptr<neuropod::NeuropodLoader> loader = neuropod::get_loader(path);
  const std::unique_ptr<std::istream> stream = loader->get_istream_for_file("config.json");
  expect(neuropod::load_model_config(*stream)->inputs.size() == 2, "config from a stream");
  expect(loader->get_istream_for_file("no such file") == nullptr, "a missing file");
  expect(loader->get_hash_for_file("config.json").size() == 64, "hash");
  expect(std::ifstream(loader->get_file_path("config.json")).good(), "path");
  expect(!loader->ensure_local().empty(), "local copy");
  expect_error([&] { loader->get_file_path("/etc/passwd"); }, "/etc/passwd");
}

template <typename T>
void use_numbers(const Neuropod& model, neuropod::TensorType type) {
  const std::shared_ptr<neuropod::TypedNeuropodTensor<T>> tensor = model.allocate_tensor<T>({2, 3});
  expect(tensor->get_tensor_type() == type, "type");
  expect(neuropod::get_tensor_type_from_cpp<T>() == type, "type of a C++ type");
  const std::vector<T> content{1, 2, 3, 4, 5, 6};
  tensor->copy_from(content);
  tensor->copy_from(content.data(), content.size());
  expect(tensor->get_data_as_vector() == content, "content");
  expect(tensor->get_num_elements() == 6 && tensor->get_dims().size() == 2, "size");
  expect(tensor->get_device() == neuropod::Device::CPU, "device");

  auto rows = tensor->template accessor<2>();
  rows[1][2] = T(9);
  T sum = 0;
  for (auto row : rows) {
    for (T& element : row) sum = T(sum + element);
  }
  expect(sum == T(24), "sum by range-for");
  expect(tensor->view(3, 2)[2][1] == T(9) && tensor->flat()[5] == T(9), "views");
  expect(tensor->get_raw_data_ptr()[5] == T(9), "raw data");
  expect_error([&] { tensor->template accessor<3>(); }, "3");
  expect_error([&] { tensor->view(4, 4); }, "6");
  expect_error([&] { tensor->copy_from({T(1)}); }, "6");

  auto scalar = model.allocate_tensor<T>({1});
  scalar->as_scalar() = T(7);
  neuropod::NeuropodTensor& untyped = *scalar;
  expect(untyped.as_scalar<T>() == T(7), "scalar");
  neuropod::NeuropodValue& value = untyped;
  expect(value.as_tensor() == &untyped, "value as tensor");
  expect(value.as_typed_tensor<T>() == scalar.get(), "value as typed tensor");
  expect(*scalar == *scalar && !(*scalar == *tensor), "equality");
}

void use_strings(const Neuropod& model) {
  auto tensor = model.allocate_tensor<std::string>({2, 2});
  tensor->copy_from({"a", "b", "c", "d"});
  auto rows = tensor->accessor<2>();
  rows[1][0] = "changed";
  expect(rows[1][0] == "changed", "a string element");
  const std::string copy = rows[0][1];
  expect(copy == "b", "a string out of an element");
  tensor->flat()[0] = std::string("flat");
  expect(tensor->view(4)[2] == "changed", "view of strings");
  expect(tensor->get_data_as_vector() == std::vector<std::string>{"flat", "b", "changed", "d"},
         "strings");
  expect_error([&] { tensor->as_typed_tensor<float>(); }, "string");
}

void make_tensors(const Neuropod& model) {
#define USE_NUMBERS(cpp_type, type) use_numbers<cpp_type>(model, neuropod::type);
  FOR_EACH_TYPE_MAPPING_EXCEPT_STRING(USE_NUMBERS)
#undef USE_NUMBERS
  use_strings(model);

  const std::shared_ptr<neuropod::NeuropodTensorAllocator> allocator = model.get_tensor_allocator();
  expect(allocator->full<float>({2}, 3.5f)->get_data_as_vector()[1] == 3.5f, "full");
  expect(allocator->zeros<int32_t>({2})->get_data_as_vector()[1] == 0, "zeros");
  expect(allocator->ones<double>({2})->get_data_as_vector()[1] == 1, "ones");
  expect(allocator->arange<int64_t>(3)->get_data_as_vector() == std::vector<int64_t>{0, 1, 2},
         "arange");
  expect(allocator->arange<float>(1, 2, 0.5f)->get_data_as_vector() == std::vector<float>{1, 1.5f},
         "arange with a step");
  expect(allocator->eye<float>(2, 2)->get_data_as_vector() == std::vector<float>{1, 0, 0, 1},
         "eye");
  expect(allocator->randn<float>({100}, 5, 0.1f)->get_num_elements() == 100, "randn");

  const std::unique_ptr<neuropod::NeuropodTensor> untyped =
      allocator->allocate_tensor({2}, neuropod::INT8_TENSOR);
  expect(untyped->get_tensor_type() == neuropod::INT8_TENSOR, "untyped");
  const std::unique_ptr<neuropod::NeuropodTensorAllocator> generic =
      neuropod::get_generic_tensor_allocator();
  expect(generic->allocate_tensor<float>({2})->get_num_elements() == 2, "generic");
}

void lend_memory(const Neuropod& model) {
  int deleted = 0;
  const neuropod::Deleter deleter = [&](void* data) {
    delete[] static_cast<float*>(data);
    ++deleted;
  };
  model.tensor_from_memory<float>({4}, new float[4]{}, deleter);
  expect(deleted == 1, "deleter of a typed tensor");
  model.get_tensor_allocator()->tensor_from_memory({4}, neuropod::FLOAT_TENSOR, new float[4]{},
                                                   deleter);
  expect(deleted == 2, "deleter of an untyped tensor");
  void* handle = neuropod::register_deleter(deleter, new float[4]{});
  neuropod::run_deleter(handle);
  expect(deleted == 3, "deleter behind a handle");
}

void infer(Neuropod& model) {
  auto x = model.allocate_tensor<float>({2, 3});
  auto y = model.allocate_tensor<float>({2, 3});
  x->copy_from({1, 2, 3, 4, 5, 6});
  y->copy_from({10, 20, 30, 40, 50, 60});
  const NeuropodValueMap inputs{{"x", x}, {"y", y}};

  const std::unique_ptr<NeuropodValueMap> outputs = model.infer(inputs);
  const auto* out = outputs->at("out")->as_typed_tensor<float>();
  expect(out->accessor<2>()[1][2] == 66, "sum");
  expect(outputs->at("unit")->as_typed_tensor<std::string>()->get_data_as_vector()[0] == "metres",
         "unit");

  const auto requested = model.infer(inputs, {"out"});
  expect(requested->size() == 1, "requested outputs");
  expect_error([&] { model.infer(inputs, {"out_wrong"}); }, "out_wrong");
  expect_error([&] { model.infer({{"x", x}, {"z", y}}); }, "are not found in the input spec");
  auto vector = model.allocate_tensor<float>({2});
  expect_error([&] { model.infer({{"x", vector}, {"y", y}}); },
               "in the input spec is expected to have 2 dimensions, but had 1");
  neuropod::validate_tensors_against_specs(inputs, model.get_inputs());
  neuropod::validate_tensors_against_specs(*outputs, model.get_outputs(), "output spec");

#if __has_include(<Eigen/Core>)
  expect(neuropod::as_eigen(*x).row(1).sum() == 15, "Eigen");
  expect(neuropod::as_eigen<float>(*outputs->at("out")->as_tensor())(0, 0) == 11, "Eigen, untyped");
#endif
}

void print_and_serialize(const Neuropod& model) {
  auto tensor = model.allocate_tensor<float>({7});
  tensor->copy_from({0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f, 6.5f});
  std::ostringstream printed;
  printed << *tensor << " " << tensor->get_tensor_type();
  expect(printed.str().find("[0.5, 1.5, 2.5 ... 4.5, 5.5, 6.5]") != std::string::npos,
         printed.str());
  expect(printed.str().find("FLOAT_TENSOR") != std::string::npos, printed.str());

  std::stringstream stream;
  const NeuropodValueMap map{{"a", tensor}};
  neuropod::serialize(stream, *tensor);
  neuropod::serialize(stream, map);
  const auto allocator = model.get_tensor_allocator();
  const auto value =
      neuropod::deserialize<std::shared_ptr<neuropod::NeuropodValue>>(stream, *allocator);
  expect(*value == *tensor, "a tensor through bytes");
  const auto read = neuropod::deserialize<NeuropodValueMap>(stream, *allocator);
  expect(*read.at("a") == *tensor, "a map through bytes");
}

void run(const std::string& path) {
  static_assert(NEUROPOD_MAJOR_VERSION >= 0 && NEUROPOD_MINOR_VERSION >= 0 &&
                NEUROPOD_PATCH_VERSION >= 0);
  expect(std::strcmp(neuropod::library_version(), NEUROPOD_VERSION) == 0, "version");
  static_assert(neuropod::Device::CPU == -1 && neuropod::Device::GPU7 == 7);
  load_in_every_way(path);
  Neuropod model(path);
  read_the_specs(model, path);
  make_tensors(model);
  lend_memory(model);
  infer(model);
  print_and_serialize(model);
  std::cout << "ok\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " models/addition\n";
    return 2;
  }
  try {
    run(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << "\n";
    return 1;
  }
  return 0;
}
