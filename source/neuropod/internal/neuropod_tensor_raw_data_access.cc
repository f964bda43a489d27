#include "neuropod/internal/neuropod_tensor_raw_data_access.hh"

namespace neuropod::internal {

void* RawDataAccess::get_untyped_data_ptr(NeuropodTensor& tensor) noexcept { return tensor.data_; }

const void* RawDataAccess::get_untyped_data_ptr(const NeuropodTensor& tensor) noexcept {
  return tensor.data_;
}

size_t RawDataAccess::get_num_bytes(const NeuropodTensor& tensor) noexcept {
  return tensor.get_num_elements() * get_bytes_per_element(tensor.get_tensor_type());
}

std::vector<std::string_view> RawDataAccess::get_string_views(const NeuropodTensor& tensor) {
  const auto& strings = *tensor.as_typed_tensor<std::string>();
  std::vector<std::string_view> views;
  views.reserve(strings.get_num_elements());
  for (size_t i = 0; i < strings.get_num_elements(); ++i) views.push_back(strings.get_element(i));
  return views;
}

}  // namespace neuropod::internal
