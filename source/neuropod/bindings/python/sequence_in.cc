#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/nanobind.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "neuropod/bindings/python/dtypes.hh"
#include "neuropod/bindings/python/number_in.hh"
#include "neuropod/bindings/python/tensor_in.hh"

namespace neuropod::python {
namespace {

namespace nb = nanobind;
using StringTensor = TypedNeuropodTensor<std::string>;

constexpr size_t kMaxRank = 64;

bool is_sequence(PyObject* value) { return PyList_Check(value) || PyTuple_Check(value); }

Py_ssize_t size_of(PyObject* sequence) {
  return PyList_Check(sequence) ? PyList_GET_SIZE(sequence) : PyTuple_GET_SIZE(sequence);
}

/// Another thread can shorten a list while a conversion runs Python code: invalid then.
nb::object item_of(PyObject* sequence, Py_ssize_t index) {
  if (index >= size_of(sequence)) return {};
  return nb::borrow(PyList_Check(sequence) ? PyList_GET_ITEM(sequence, index)
                                           : PyTuple_GET_ITEM(sequence, index));
}

/// The shape that nested lists have if they are regular: read off their first elements.
struct SequenceShape {
  std::vector<int64_t> dims;
  size_t depth = 0;  ///< of the lists; dims past it are those of arrays inside them
};

SequenceShape shape_of(PyObject* value, const InputSlot& slot) {
  SequenceShape shape;
  nb::object first = nb::borrow(value);
  while (is_sequence(first.ptr())) {
    if (shape.dims.size() == kMaxRank) refuse(slot, "is nested more than 64 deep");
    const Py_ssize_t size = size_of(first.ptr());
    shape.dims.push_back(size);
    if (size == 0) break;
    first = item_of(first.ptr(), 0);
  }
  shape.depth = shape.dims.size();
  if (PyArray_Check(first.ptr())) {
    auto* const array = reinterpret_cast<PyArrayObject*>(first.ptr());
    shape.dims.insert(shape.dims.end(), PyArray_DIMS(array),
                      PyArray_DIMS(array) + PyArray_NDIM(array));
  }
  return shape;
}

/// Walks nested lists in row-major order and hands each element to `Writer`, which has
/// `write(index, element, where)` and `write_array(index, array)`.
template <typename Writer>
class SequenceReader {
 public:
  SequenceReader(const SequenceShape& shape, const InputSlot& slot, Writer* writer)
      : shape_(shape), slot_(slot), writer_(writer) {}

  void read(PyObject* value) {
    const size_t depth = path_.size();
    if (depth < shape_.depth) {
      read_items(value, depth);
    } else if (depth < shape_.dims.size()) {
      read_array(value);
    } else if (is_sequence(value)) {
      refuse(slot_, fmt::format("is ragged: {} is a {}, the first element isn't", where(),
                                Py_TYPE(value)->tp_name));
    } else {
      writer_->write(next_++, value, [this] { return where(); });
    }
  }

 private:
  void read_items(PyObject* value, size_t depth) {
    const int64_t expected = shape_.dims[depth];
    if (!is_sequence(value)) {
      refuse(slot_, fmt::format("is ragged: {} is a {}, the first element is a list of {}", where(),
                                Py_TYPE(value)->tp_name, expected));
    }
    if (size_of(value) != expected) {
      refuse(slot_, fmt::format("is ragged: {} has {} elements, the first one {}", where(),
                                size_of(value), expected));
    }
    for (int64_t i = 0; i < expected; ++i) {
      const nb::object item = item_of(value, i);
      if (!item.is_valid()) refuse(slot_, "was changed by another thread while it was read");
      path_.push_back(i);
      read(item.ptr());
      path_.pop_back();
    }
  }

  void read_array(PyObject* value) {
    auto* const array = reinterpret_cast<PyArrayObject*>(value);
    const std::vector<int64_t> expected(shape_.dims.begin() + static_cast<int64_t>(shape_.depth),
                                        shape_.dims.end());
    if (!PyArray_Check(value) || !std::equal(expected.begin(), expected.end(), PyArray_DIMS(array),
                                             PyArray_DIMS(array) + PyArray_NDIM(array))) {
      refuse(slot_, fmt::format("is ragged: {} is expected to be an array of shape ({})", where(),
                                fmt::join(expected, ", ")));
    }
    writer_->write_array(next_, array);
    next_ += static_cast<size_t>(PyArray_SIZE(array));
  }

  std::string where() const {
    return path_.empty() ? "the value" : fmt::format("[{}]", fmt::join(path_, "]["));
  }

  const SequenceShape& shape_;
  const InputSlot& slot_;
  Writer* const writer_;
  std::vector<int64_t> path_;
  size_t next_ = 0;
};

/// A number as Python prints it, cut where it gets long.
std::string repr(PyObject* value) {
  constexpr size_t kLongest = 60;
  const nb::object text = nb::steal(PyObject_Repr(value));
  if (!text.is_valid()) {
    PyErr_Clear();  // an int of more than 4300 digits
    return fmt::format("a {}", Py_TYPE(value)->tp_name);
  }
  const std::string full = nb::str(text).c_str();
  return full.size() <= kLongest ? full : full.substr(0, kLongest) + "…";
}

template <typename T>
class NumberWriter {
 public:
  NumberWriter(TypedNeuropodTensor<T>* tensor, const InputSlot& slot)
      : data_(tensor->get_raw_data_ptr()), slot_(slot) {}

  template <typename Where>
  void write(size_t index, PyObject* element, const Where& where) {
    const char* reason = number_from_python(element, data_ + index);
    if (!reason) return;
    refuse(slot_, fmt::format("is expected to be {0}: {1} ({2}) {3} {0}",
                              get_dtype_name(get_tensor_type_from_cpp<T>()), where(), repr(element),
                              reason));
  }

  void write_array(size_t index, PyArrayObject* array) {
    constexpr TensorType expected = get_tensor_type_from_cpp<T>();
    TensorType type;
    if (!tensor_type_of(PyArray_DESCR(array), &type) || type != expected) {
      refuse(slot_, fmt::format("is expected to be {0}, but holds an array of {1}; pass it with "
                                ".astype(\"{0}\") if the values fit",
                                get_dtype_name(expected), describe_dtype(PyArray_DESCR(array))));
    }
    copy_array(array, type, data_ + index);
  }

 private:
  T* const data_;
  const InputSlot& slot_;
};

class StringWriter {
 public:
  StringWriter(StringTensor* tensor, const InputSlot& slot, NeuropodTensorAllocator* allocator)
      : tensor_(tensor), slot_(slot), allocator_(allocator) {}

  template <typename Where>
  void write(size_t index, PyObject* element, const Where& where) {
    std::string_view text;
    if (!string_view_of(element, &text)) refuse_string(element, slot_, where());
    tensor_->set_element(index, text);
  }

  void write_array(size_t index, PyArrayObject* array) {
    const std::shared_ptr<NeuropodValue> part =
        tensor_from_array(array, {slot_.model, slot_.name, slot_.spec, true}, *allocator_);
    const auto* strings = part->as_typed_tensor<std::string>();
    for (size_t i = 0; i < strings->get_num_elements(); ++i) {
      tensor_->set_element(index + i, strings->get_element(i));
    }
  }

 private:
  StringTensor* const tensor_;
  const InputSlot& slot_;
  NeuropodTensorAllocator* const allocator_;
};

template <typename T>
std::shared_ptr<NeuropodValue> numbers_from(PyObject* value, const SequenceShape& shape,
                                            const InputSlot& slot,
                                            NeuropodTensorAllocator& allocator) {
  auto tensor = allocator.allocate_tensor<T>(shape.dims);
  NumberWriter<T> writer(tensor.get(), slot);
  SequenceReader<NumberWriter<T>>(shape, slot, &writer).read(value);
  return tensor;
}

std::shared_ptr<NeuropodValue> strings_from(PyObject* value, const SequenceShape& shape,
                                            const InputSlot& slot,
                                            NeuropodTensorAllocator& allocator) {
  auto tensor = allocator.allocate_tensor<std::string>(shape.dims);
  StringWriter writer(tensor.get(), slot, &allocator);
  SequenceReader<StringWriter>(shape, slot, &writer).read(value);
  return tensor;
}

}  // namespace

std::shared_ptr<NeuropodValue> tensor_from_sequence(PyObject* value, const InputSlot& slot,
                                                    NeuropodTensorAllocator& allocator) {
  if (!slot.spec) refuse(slot, "needs a dtype: pass a NumPy array");
  const SequenceShape shape = shape_of(value, slot);
  switch (slot.spec->type) {
#define NEUROPOD_NUMBERS_FROM(enumerator, number, name, cpp_type) \
  case enumerator:                                                \
    return numbers_from<cpp_type>(value, shape, slot, allocator);
    NEUROPOD_FOR_EACH_NUMERIC_DTYPE(NEUROPOD_NUMBERS_FROM)
#undef NEUROPOD_NUMBERS_FROM
    case STRING_TENSOR:
      return strings_from(value, shape, slot, allocator);
  }
  refuse(slot, "has a dtype that is not known here");
}

}  // namespace neuropod::python
