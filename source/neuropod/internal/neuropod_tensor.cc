#include "neuropod/internal/neuropod_tensor.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <limits>

namespace neuropod {
namespace {

std::string format_dims(const std::vector<int64_t>& dims) {
  return fmt::format("[{}]", fmt::join(dims, ", "));
}

}  // namespace

NeuropodTensor::NeuropodTensor(TensorType type, std::vector<int64_t> dims, NeuropodDevice device,
                               void* data)
    : NeuropodValue(true),
      type_(type),
      device_(device),
      dims_(std::move(dims)),
      num_elements_(internal::count_elements(type_, dims_)),
      data_(data) {}

NeuropodTensor::~NeuropodTensor() = default;

std::vector<int64_t> NeuropodTensor::get_strides() const {
  std::vector<int64_t> strides(dims_.size());
  int64_t stride = 1;
  for (size_t i = dims_.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(dims_[i], 1);
  }
  return strides;
}

std::shared_ptr<NeuropodTensor> NeuropodTensor::to(NeuropodDevice device) {
  if (device != device_) {
    throw_error(ErrorCode::kInvalidArgument,
                fmt::format("a {} tensor {} on device {} can't be moved to device {}: what made it "
                            "knows no such device; use the allocator of a model that runs there "
                            "(copy_to_device)",
                            get_dtype_name(type_), format_dims(dims_), device_, device));
  }
  const std::shared_ptr<NeuropodValue> self = weak_from_this().lock();
  if (!self) {
    throw_error(ErrorCode::kInvalidArgument,
                "to() needs a tensor that a std::shared_ptr holds; this one isn't held by any");
  }
  return std::static_pointer_cast<NeuropodTensor>(self);
}

void* NeuropodTensor::native_tensor(const void* /*key*/) noexcept { return nullptr; }

const char* NeuropodTensor::get_serialize_tag() const { return "neuropodtensor"; }

void NeuropodTensor::throw_not_on_cpu() const {
  throw_error(
      ErrorCode::kInvalidArgument,
      fmt::format("a {} tensor {} is on device {} (CPU is {}), so its content can't be read "
                  "or written here; call .to(CPU) first",
                  get_dtype_name(type_), format_dims(dims_), device_, Device::CPU));
}

void NeuropodTensor::throw_not_scalar() const {
  throw_error(ErrorCode::kInvalidArgument,
              fmt::format("as_scalar() needs a tensor of one element; this {} tensor {} has {}",
                          get_dtype_name(type_), format_dims(dims_), num_elements_));
}

std::vector<std::string> TypedNeuropodTensor<std::string>::get_data_as_vector() const {
  require_cpu();
  std::vector<std::string> strings;
  strings.reserve(get_num_elements());
  for (size_t i = 0; i < get_num_elements(); ++i) strings.emplace_back(get_element(i));
  return strings;
}

void TypedNeuropodTensor<std::string>::copy_from(const std::vector<std::string>& data) {
  require_cpu();
  if (data.size() != get_num_elements()) {
    internal::throw_wrong_element_count(get_num_elements(), data.size());
  }
  for (size_t i = 0; i < data.size(); ++i) set_element(i, data[i]);
}

namespace internal {

size_t count_elements(TensorType type, const std::vector<int64_t>& dims) {
  const uint64_t element_size = std::max<uint64_t>(get_bytes_per_element(type), 1);
  uint64_t bytes = element_size;
  bool empty = false;  // strides and frameworks multiply the other dimensions all the same
  for (const int64_t dim : dims) {
    if (dim < 0) {
      throw_error(ErrorCode::kInvalidArgument,
                  fmt::format("a {} tensor can't have the shape {}: dimension {} is negative; the "
                              "shape of a tensor must be known",
                              get_dtype_name(type), format_dims(dims), dim));
    }
    if (dim == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes) ||
               bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      throw_error(ErrorCode::kInvalidArgument,
                  fmt::format("a {} tensor can't have the shape {}: that is more than 2^63 bytes",
                              get_dtype_name(type), format_dims(dims)));
    }
  }
  return empty ? 0 : bytes / element_size;
}

void throw_wrong_dtype(TensorType actual, TensorType requested) {
  throw_error(ErrorCode::kInvalidArgument,
              fmt::format("this tensor holds {}, but it was accessed as {}; ask get_tensor_type() "
                          "which type it has",
                          get_dtype_name(actual), get_dtype_name(requested)));
}

void throw_unknown_dtype(TensorType type) {
  throw_error(ErrorCode::kInvalidArgument,
              fmt::format("dtype {} ({}) can't be used here; known are: {}", static_cast<int>(type),
                          get_dtype_name(type), list_dtype_names()));
}

void throw_wrong_element_count(size_t expected, size_t actual) {
  throw_error(
      ErrorCode::kInvalidArgument,
      fmt::format("copy_from() got {} elements for a tensor of {}; the counts must be equal",
                  actual, expected));
}

void throw_wrong_rank(const std::vector<int64_t>& dims, size_t requested) {
  throw_error(ErrorCode::kInvalidArgument,
              fmt::format("accessor<{}>() on a tensor of rank {}, shape {}; {}", requested,
                          dims.size(), format_dims(dims),
                          dims.empty() ? "use as_scalar()"
                                       : fmt::format("use accessor<{}>()", dims.size())));
}

void throw_bad_view(const int64_t* dims, size_t rank, size_t elements) {
  throw_error(
      ErrorCode::kInvalidArgument,
      fmt::format("view({}) on a tensor of {} elements; every dimension must be at least 0 and "
                  "their product {}",
                  fmt::join(dims, dims + rank, ", "), elements, elements));
}

bool dims_hold(const int64_t* dims, size_t rank, size_t elements) noexcept {
  size_t product = 1;
  bool overflow = false;
  bool empty = false;
  for (size_t i = 0; i < rank; ++i) {
    if (dims[i] < 0) return false;
    if (dims[i] == 0) {
      empty = true;
    } else {
      overflow |= __builtin_mul_overflow(product, static_cast<size_t>(dims[i]), &product);
    }
  }
  return !overflow && (empty ? 0 : product) == elements;
}

void copy_elements(void* to, const void* from, size_t bytes) {
  // Either may be null where there is nothing to copy.
  if (bytes > 0) std::memmove(to, from, bytes);
}

}  // namespace internal
}  // namespace neuropod
