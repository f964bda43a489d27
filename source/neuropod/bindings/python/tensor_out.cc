#include "neuropod/bindings/python/tensor_out.hh"

#include <nanobind/nanobind.h>

#include <utility>

#include "neuropod/bindings/python/dtypes.hh"
#include "neuropod/internal/neuropod_tensor_raw_data_access.hh"

namespace neuropod::python {
namespace {

namespace nb = nanobind;

using Holder = std::shared_ptr<NeuropodValue>;

void drop_holder(PyObject* capsule) {
  delete static_cast<Holder*>(PyCapsule_GetPointer(capsule, nullptr));
}

/// Owns a share of the tensor: the base of an array over its memory.
nb::object make_holder(Holder value) {
  auto holder = std::make_unique<Holder>(std::move(value));
  nb::object capsule = nb::steal(PyCapsule_New(holder.get(), nullptr, &drop_holder));
  if (!capsule.is_valid()) throw nb::python_error();
  static_cast<void>(holder.release());
  return capsule;
}

}  // namespace

PyObject* array_from_tensor(const std::shared_ptr<NeuropodValue>& value, StringForm form) {
  NeuropodTensor* tensor = value->as_tensor();
  if (tensor->get_tensor_type() == STRING_TENSOR) return array_from_strings(*tensor, form);

  Holder owner = value;
  if (tensor->get_device() != Device::CPU) {
    std::shared_ptr<NeuropodTensor> on_cpu = tensor->to(Device::CPU);
    tensor = on_cpu.get();
    owner = std::move(on_cpu);
  }
  const auto& dims = tensor->get_dims();
  static_assert(sizeof(npy_intp) == sizeof(int64_t));
  auto* shape = const_cast<npy_intp*>(reinterpret_cast<const npy_intp*>(dims.data()));
  // A tensor without elements may have no memory; NumPy then allocates a byte of its own.
  void* data = internal::RawDataAccess::get_untyped_data_ptr(*tensor);
  nb::object array = nb::steal(PyArray_NewFromDescr(
      &PyArray_Type, numpy_dtype(tensor->get_tensor_type()), static_cast<int>(dims.size()), shape,
      nullptr, data, data ? NPY_ARRAY_CARRAY : 0, nullptr));
  if (!array.is_valid()) throw nb::python_error();
  if (data && PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.ptr()),
                                    make_holder(std::move(owner)).release().ptr()) < 0) {
    throw nb::python_error();
  }
  return array.release().ptr();
}

}  // namespace neuropod::python
