#include "neuropod/core/generic_tensor.hh"

namespace neuropod {

GenericNeuropodTensor<std::string>::GenericNeuropodTensor(std::vector<int64_t> dims)
    : TypedNeuropodTensor<std::string>(std::move(dims)), elements_(get_num_elements()) {}

GenericNeuropodTensor<std::string>::~GenericNeuropodTensor() = default;

std::string_view GenericNeuropodTensor<std::string>::get_element(size_t index) const {
  return elements_[index];
}

void GenericNeuropodTensor<std::string>::set_element(size_t index, std::string_view value) {
  elements_[index].assign(value);
}

std::unique_ptr<NeuropodTensorAllocator> get_generic_tensor_allocator() {
  return std::make_unique<DefaultTensorAllocator<GenericNeuropodTensor>>();
}

}  // namespace neuropod
