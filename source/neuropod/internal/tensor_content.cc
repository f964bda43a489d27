// Equality and printing: what two tensors or a reader see of the content.
#include <fmt/format.h>

#include <ostream>

#include "neuropod/internal/neuropod_tensor.hh"

namespace neuropod {
namespace {

constexpr size_t kPrintedInFull = 5;
constexpr size_t kPrintedAtEachEnd = 3;

template <typename T>
bool equal_elements(const TypedNeuropodTensor<T>& a, const TypedNeuropodTensor<T>& b) {
  const T* data = a.get_raw_data_ptr();
  return std::equal(data, data + a.get_num_elements(), b.get_raw_data_ptr());
}

bool equal_elements(const TypedNeuropodTensor<std::string>& a,
                    const TypedNeuropodTensor<std::string>& b) {
  for (size_t i = 0; i < a.get_num_elements(); ++i) {
    if (a.get_element(i) != b.get_element(i)) return false;
  }
  return true;
}

bool equal_content(const NeuropodTensor& a, const NeuropodTensor& b) {
  switch (a.get_tensor_type()) {
#define NEUROPOD_EQUAL(enumerator, value, name, cpp_type) \
  case enumerator:                                        \
    return equal_elements(*a.as_typed_tensor<cpp_type>(), *b.as_typed_tensor<cpp_type>());
    NEUROPOD_FOR_EACH_DTYPE(NEUROPOD_EQUAL)
#undef NEUROPOD_EQUAL
  }
  return false;
}

template <typename T>
void print_element(std::ostream& out, const T& value) {
  out << value;
}
void print_element(std::ostream& out, int8_t value) { out << static_cast<int>(value); }
void print_element(std::ostream& out, uint8_t value) { out << static_cast<int>(value); }
void print_element(std::ostream& out, bool value) { out << (value ? "true" : "false"); }
void print_element(std::ostream& out, float16 value) { out << static_cast<float>(value); }
void print_element(std::ostream& out, bfloat16 value) { out << static_cast<float>(value); }

void print_element(std::ostream& out, std::string_view value) {
  constexpr size_t kLongest = 60;
  out << '"';
  for (const char c : value.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out << '\\' << c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out << fmt::format("\\x{:02x}", byte);
    } else {
      out << c;
    }
  }
  out << '"';
  if (value.size() > kLongest) out << fmt::format("... ({} bytes)", value.size());
}

template <typename ElementAt>
void print_elements(std::ostream& out, size_t count, ElementAt element_at) {
  const auto print_range = [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      if (i > first) out << ", ";
      print_element(out, element_at(i));
    }
  };
  out << '[';
  if (count <= kPrintedInFull) {
    print_range(0, count);
  } else {
    print_range(0, kPrintedAtEachEnd);
    out << " ... ";
    print_range(count - kPrintedAtEachEnd, count);
  }
  out << ']';
}

template <typename T>
void print_typed(std::ostream& out, const TypedNeuropodTensor<T>& tensor) {
  const T* data = tensor.get_raw_data_ptr();
  print_elements(out, tensor.get_num_elements(), [data](size_t i) -> const T& { return data[i]; });
}

void print_typed(std::ostream& out, const TypedNeuropodTensor<std::string>& tensor) {
  print_elements(out, tensor.get_num_elements(), [&](size_t i) { return tensor.get_element(i); });
}

}  // namespace

bool NeuropodValue::operator==(const NeuropodValue& other) const {
  const NeuropodTensor& a = *as_tensor();
  const NeuropodTensor& b = *other.as_tensor();
  if (a.get_tensor_type() != b.get_tensor_type() || a.get_dims() != b.get_dims()) return false;
  return equal_content(a, b);
}

void internal::print_content(std::ostream& out, const NeuropodTensor& tensor) {
  if (tensor.get_device() != Device::CPU) {
    out << "(on device " << tensor.get_device() << ")";
    return;
  }
  switch (tensor.get_tensor_type()) {
#define NEUROPOD_PRINT(enumerator, value, name, cpp_type)  \
  case enumerator:                                         \
    print_typed(out, *tensor.as_typed_tensor<cpp_type>()); \
    return;
    NEUROPOD_FOR_EACH_DTYPE(NEUROPOD_PRINT)
#undef NEUROPOD_PRINT
  }
}

std::ostream& operator<<(std::ostream& out, const NeuropodTensor& tensor) {
  out << get_dtype_name(tensor.get_tensor_type()) << " (";
  for (size_t i = 0; i < tensor.get_dims().size(); ++i) {
    out << (i > 0 ? ", " : "") << tensor.get_dims()[i];
  }
  out << ") ";
  internal::print_content(out, tensor);
  return out;
}

}  // namespace neuropod
