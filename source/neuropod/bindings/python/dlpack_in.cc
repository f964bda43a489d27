#include <fmt/format.h>
#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "neuropod/bindings/python/dtypes.hh"
#include "neuropod/bindings/python/tensor_in.hh"
#include "neuropod/conversions/dlpack.hh"

namespace neuropod::python {
namespace {

namespace nb = nanobind;

/// The capsule that `value` offers: of today's protocol, which tells read-only memory, or the older
/// one.
nb::object request_capsule(PyObject* value, const InputSlot& slot) {
  const nb::object method = nb::getattr(nb::handle(value), "__dlpack__");
  try {
    return method(nb::arg("max_version") =
                      nb::make_tuple(dlpack::kMajorVersion, dlpack::kMinorVersion));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) {
      refuse(slot, fmt::format("of type {} can't be taken through DLPack: {}",
                               Py_TYPE(value)->tp_name, nb::str(error.value()).c_str()));
    }
  }
  try {
    return method();
  } catch (nb::python_error& error) {
    refuse(slot, fmt::format("of type {} can't be taken through DLPack: {}",
                             Py_TYPE(value)->tp_name, nb::str(error.value()).c_str()));
  }
}

template <typename Managed>
void finish(Managed* managed) {
  if (managed->deleter) managed->deleter(managed);
}

template <typename Managed>
void finish_capsule(PyObject* capsule) {
  finish(static_cast<Managed*>(PyCapsule_GetPointer(capsule, nullptr)));
}

bool dtype_of(const dlpack::DataType& dtype, TensorType* type) {
  if (dtype.lanes != 1) return false;
  struct Row {
    uint8_t code;
    uint8_t bits;
    TensorType type;
  };
  static constexpr Row kRows[] = {
      {0, 8, INT8_TENSOR},       {0, 16, INT16_TENSOR},       {0, 32, INT32_TENSOR},
      {0, 64, INT64_TENSOR},     {1, 8, UINT8_TENSOR},        {1, 16, UINT16_TENSOR},
      {1, 32, UINT32_TENSOR},    {1, 64, UINT64_TENSOR},      {2, 16, FLOAT16_TENSOR},
      {2, 32, FLOAT_TENSOR},     {2, 64, DOUBLE_TENSOR},      {4, 16, BFLOAT16_TENSOR},
      {5, 64, COMPLEX64_TENSOR}, {5, 128, COMPLEX128_TENSOR}, {6, 8, BOOL_TENSOR},
  };
  for (const Row& row : kRows) {
    if (row.code != dtype.code || row.bits != dtype.bits) continue;
    *type = row.type;
    return true;
  }
  return false;
}

bool is_on_cpu(const dlpack::DeviceId& device) {
  return device.type == dlpack::kCpuDevice || device.type == dlpack::kCudaHostDevice ||
         device.type == dlpack::kRocmHostDevice;
}

std::vector<npy_intp> byte_strides(const dlpack::Tensor& tensor, size_t element_bytes) {
  std::vector<npy_intp> strides(static_cast<size_t>(tensor.ndim));
  auto row_major = static_cast<npy_intp>(element_bytes);
  for (size_t i = strides.size(); i-- > 0;) {
    strides[i] =
        tensor.strides ? tensor.strides[i] * static_cast<npy_intp>(element_bytes) : row_major;
    row_major *= tensor.shape[i];
  }
  return strides;
}

/// `owner` is a capsule that calls the tensor's deleter.
PyObject* make_array(const dlpack::Tensor& tensor, bool read_only, nb::object owner,
                     const InputSlot& slot) {
  if (!is_on_cpu(tensor.device)) {
    refuse(slot,
           "is a tensor on another device than the CPU; bring it over first, e.g. with .cpu()");
  }
  TensorType type;
  if (!dtype_of(tensor.dtype, &type)) {
    refuse(slot, fmt::format(
                     "has an element type that no tensor here has (DLPack code {}, {} bits, {} "
                     "lanes); there are: {}",
                     tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes, list_dtype_names()));
  }
  std::vector<npy_intp> strides = byte_strides(tensor, get_bytes_per_element(type));
  std::vector<npy_intp> shape(tensor.shape, tensor.shape + tensor.ndim);
  void* data = tensor.data ? static_cast<char*>(tensor.data) + tensor.byte_offset : nullptr;
  nb::object array = nb::steal(PyArray_NewFromDescr(
      &PyArray_Type, numpy_dtype(type), tensor.ndim, shape.data(), data ? strides.data() : nullptr,
      data, data && !read_only ? NPY_ARRAY_WRITEABLE : 0, nullptr));
  if (!array.is_valid() ||
      (data && PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.ptr()),
                                     owner.release().ptr()) < 0)) {
    throw nb::python_error();
  }
  return array.release().ptr();
}

/// Takes the tensor out of `capsule`, as the protocol asks, into a capsule that frees it. `name`
/// and `used_name` are the protocol's.
template <typename Managed>
nb::object take_over(PyObject* capsule, const char* name, const char* used_name,
                     Managed** managed) {
  *managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (!*managed || PyCapsule_SetName(capsule, used_name) < 0) throw nb::python_error();
  nb::object owner = nb::steal(PyCapsule_New(*managed, nullptr, &finish_capsule<Managed>));
  if (!owner.is_valid()) {
    finish(*managed);
    throw nb::python_error();
  }
  return owner;
}

}  // namespace

PyObject* array_from_dlpack(PyObject* value, const InputSlot& slot) {
  const nb::object capsule = request_capsule(value, slot);
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    dlpack::ManagedTensorVersioned* managed = nullptr;
    nb::object owner =
        take_over(capsule.ptr(), "dltensor_versioned", "used_dltensor_versioned", &managed);
    if (managed->version.major != dlpack::kMajorVersion) {
      refuse(slot,
             fmt::format("was offered in DLPack {}.{}, but {}.x is understood",
                         managed->version.major, managed->version.minor, dlpack::kMajorVersion));
    }
    const bool read_only = (managed->flags & dlpack::kReadOnlyFlag) != 0;
    return make_array(managed->dl_tensor, read_only, std::move(owner), slot);
  }
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    dlpack::ManagedTensor* managed = nullptr;
    nb::object owner = take_over(capsule.ptr(), "dltensor", "used_dltensor", &managed);
    return make_array(managed->dl_tensor, false, std::move(owner), slot);
  }
  refuse(slot, fmt::format("of type {} offers DLPack, but not a tensor capsule",
                           Py_TYPE(value)->tp_name));
}

}  // namespace neuropod::python
