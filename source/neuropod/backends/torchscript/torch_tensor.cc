#include "torch_tensor.hh"

#include <ATen/ops/from_blob.h>

#include "neuropod/base/error.hh"
#include "neuropod/internal/neuropod_tensor_raw_data_access.hh"
#include "torch_dtypes.hh"

namespace neuropod {

const char kTorchTensorKey = 0;

namespace {

c10::List<std::string> empty_strings(size_t count) {
  auto list = c10::impl::GenericList(c10::StringType::get());
  const c10::IValue empty{std::string()};
  list.resize(count, empty);
  return c10::impl::toTypedList<std::string>(list);
}

c10::IValue copy_strings(const NeuropodTensor& tensor) {
  c10::List<std::string> list;
  list.reserve(tensor.get_num_elements());
  for (const std::string_view element : internal::RawDataAccess::get_string_views(tensor)) {
    list.push_back(std::string(element));
  }
  return list;
}

}  // namespace

at::Tensor wrap_memory(const std::vector<int64_t>& dims, TensorType type, void* data,
                       Deleter deleter, NeuropodDevice device) {
  const c10::Device torch_device = to_torch_device(device);
  const auto options = at::TensorOptions().dtype(to_scalar_type(type)).device(torch_device);
  if (device == Device::CPU) return at::from_blob(data, dims, std::move(deleter), options);
  return at::for_blob(data, dims)
      .deleter(std::move(deleter))
      .options(options)
      .target_device(torch_device)
      .make_tensor();
}

bool is_sole_owner(const c10::IValue& value) noexcept {
  const at::Tensor& tensor = value.toTensor();
  return tensor.use_count() == 1 && tensor.has_storage() && tensor.storage().use_count() == 1 &&
         tensor.storage().allocator() != nullptr;
}

bool is_held_elsewhere(const c10::IValue& value) noexcept {
  const at::Tensor& tensor = value.toTensor();
  return tensor.use_count() != 1 || !tensor.has_storage() || tensor.storage().use_count() != 1;
}

TorchNeuropodTensor<std::string>::TorchNeuropodTensor(std::vector<int64_t> dims)
    : TypedNeuropodTensor<std::string>(std::move(dims)),
      value_(empty_strings(get_num_elements())) {}

TorchNeuropodTensor<std::string>::TorchNeuropodTensor(std::vector<int64_t> dims,
                                                      c10::List<std::string> strings)
    : TypedNeuropodTensor<std::string>(std::move(dims)), value_(std::move(strings)) {}

std::string_view TorchNeuropodTensor<std::string>::get_element(size_t index) const {
  return value_.toListRef()[index].toStringRef();
}

void TorchNeuropodTensor<std::string>::set_element(size_t index, std::string_view value) {
  value_.toList().set(index, std::string(value));
}

std::shared_ptr<NeuropodTensor> wrap_torch_tensor(at::Tensor tensor) {
  TensorType type;
  if (!from_scalar_type(tensor.scalar_type(), &type)) {
    throw_error(ErrorCode::kModelError,
                std::string("a torch tensor of dtype '") + c10::toString(tensor.scalar_type()) +
                    "' can't leave the model; let the model convert it with "
                    ".to(...) to one of " +
                    list_dtype_names());
  }
  switch (type) {
#define NEUROPOD_WRAP(enumerator, value, name, cpp_type) \
  case enumerator:                                       \
    return std::make_shared<TorchNeuropodTensor<cpp_type>>(std::move(tensor));
    NEUROPOD_FOR_EACH_NUMERIC_DTYPE(NEUROPOD_WRAP)
#undef NEUROPOD_WRAP
    case STRING_TENSOR:
      break;
  }
  throw_error(ErrorCode::kModelError, "a torch tensor can't hold strings");
}

c10::IValue to_ivalue(const std::shared_ptr<NeuropodValue>& value) {
  void* own = value->as_tensor()->native_tensor(&kTorchTensorKey);
  if (own == nullptr) return wrap_value(value);
  const auto& native = *static_cast<const c10::IValue*>(own);
  return native.isTensor() ? native : c10::IValue(native.toList().copy());
}

c10::IValue wrap_value(const std::shared_ptr<NeuropodValue>& value) {
  NeuropodTensor& tensor = *value->as_tensor();
  const TensorType type = tensor.get_tensor_type();
  if (type == STRING_TENSOR) return copy_strings(tensor);
  return wrap_memory(
      tensor.get_dims(), type, internal::RawDataAccess::get_untyped_data_ptr(tensor),
      [value](void*) {}, tensor.get_device());
}

}  // namespace neuropod
