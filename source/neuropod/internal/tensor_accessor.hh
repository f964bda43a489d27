#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "neuropod/base/visibility.hh"

namespace neuropod {

/// One element of a string tensor: reads as a string and, unless `Tensor` is const, writes the
/// tensor when assigned to. Reading copies nothing (`view()`); the view is valid until the element
/// is written. Must not outlive the tensor.
template <typename Tensor>
class StringProxy {
 public:
  StringProxy(Tensor& tensor, size_t index) noexcept : tensor_(&tensor), index_(index) {}
  StringProxy(const StringProxy&) = default;

  std::string_view view() const { return tensor_->get_element(index_); }
  operator std::string_view() const { return view(); }
  operator std::string() const { return std::string(view()); }
  size_t size() const { return view().size(); }
  bool empty() const { return view().empty(); }

  /// Writes the element. These are const because the proxy, like a pointer, stays the same.
  const StringProxy& operator=(std::string_view value) const {
    static_assert(!std::is_const_v<Tensor>, "this tensor is const: its strings can only be read");
    tensor_->set_element(index_, value);
    return *this;
  }
  const StringProxy& operator=(const std::string& value) const {
    return *this = std::string_view(value);
  }
  const StringProxy& operator=(const char* value) const { return *this = std::string_view(value); }

  /// Copies the content of the other element, which may be the same tensor's.
  const StringProxy& operator=(const StringProxy& other) const {
    if (this == &other) return *this;
    return *this = std::string(other.view());
  }
  template <typename Other>
  const StringProxy& operator=(const StringProxy<Other>& other) const {
    return *this = std::string(other.view());
  }

 private:
  Tensor* tensor_;
  size_t index_;
};

template <typename A, typename B>
bool operator==(const StringProxy<A>& a, const StringProxy<B>& b) {
  return a.view() == b.view();
}
template <typename A>
bool operator==(const StringProxy<A>& a, std::string_view b) {
  return a.view() == b;
}
template <typename B>
bool operator==(std::string_view a, const StringProxy<B>& b) {
  return a == b.view();
}
template <typename A, typename B>
bool operator!=(const StringProxy<A>& a, const StringProxy<B>& b) {
  return a.view() != b.view();
}
template <typename A>
bool operator!=(const StringProxy<A>& a, std::string_view b) {
  return a.view() != b;
}
template <typename B>
bool operator!=(std::string_view a, const StringProxy<B>& b) {
  return a != b.view();
}
template <typename A, typename B>
bool operator<(const StringProxy<A>& a, const StringProxy<B>& b) {
  return a.view() < b.view();
}
template <typename A>
bool operator<(const StringProxy<A>& a, std::string_view b) {
  return a.view() < b;
}
template <typename B>
bool operator<(std::string_view a, const StringProxy<B>& b) {
  return a < b.view();
}
template <typename A>
std::ostream& operator<<(std::ostream& out, const StringProxy<A>& a) {
  return out << a.view();
}

namespace internal {

[[noreturn]] NEUROPOD_EXPORT void throw_wrong_rank(const std::vector<int64_t>& dims,
                                                   size_t requested);
[[noreturn]] NEUROPOD_EXPORT void throw_bad_view(const int64_t* dims, size_t rank, size_t elements);

/// True if every dimension is ≥ 0 and their product is `elements`.
NEUROPOD_EXPORT bool dims_hold(const int64_t* dims, size_t rank, size_t elements) noexcept;

/// A position in a container of elements: a pointer for numbers, tensor and index for strings.
template <typename Container>
class ElementCursor;

template <typename T>
class ElementCursor<T*> {
 public:
  using Reference = T&;
  explicit ElementCursor(T* data) noexcept : data_(data) {}
  ElementCursor at(int64_t offset) const noexcept { return ElementCursor(data_ + offset); }
  T& element(int64_t offset) const noexcept { return data_[offset]; }
  T* data() const noexcept { return data_; }

 private:
  T* data_;
};

template <typename Tensor>
class ElementCursor<Tensor&> {
 public:
  using Reference = StringProxy<Tensor>;
  explicit ElementCursor(Tensor& tensor, size_t index = 0) noexcept
      : tensor_(&tensor), index_(index) {}
  ElementCursor at(int64_t offset) const noexcept {
    return ElementCursor(*tensor_, index_ + static_cast<size_t>(offset));
  }
  Reference element(int64_t offset) const noexcept {
    return Reference(*tensor_, index_ + static_cast<size_t>(offset));
  }

 private:
  Tensor* tensor_;
  size_t index_;
};

}  // namespace internal

/// Indexed access to dense, row-major elements of rank N: `a[i][j]`, and range-for over rows, then
/// elements. `Container` is `T*` for numbers and `Tensor&` for strings; const ones only read.
///
/// A small value that carries its shape; rows are accessors in their own right. Indexing is pointer
/// arithmetic: nothing is allocated, indices aren't checked. Must not outlive the tensor; a const
/// accessor writes like any other, as a pointer would.
/// **Thread safety**: that of the tensor.
template <typename Container, size_t N>
class TensorAccessor {
  static_assert(N > 0, "there is no accessor of rank 0; use as_scalar()");
  using Cursor = internal::ElementCursor<Container>;

 public:
  /// What indexing yields: a row, or for N = 1 an element (`T&`, or a StringProxy).
  using Reference =
      std::conditional_t<N == 1, typename Cursor::Reference, TensorAccessor<Container, N - 1>>;

  /// Goes over rows or elements; for numbers of rank 1, begin() and end() are plain pointers.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = std::remove_reference_t<Reference>;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = Reference;

    Iterator(const TensorAccessor& accessor, int64_t index) noexcept
        : accessor_(accessor), index_(index) {}
    Reference operator*() const { return accessor_[index_]; }
    Iterator& operator++() noexcept {
      ++index_;
      return *this;
    }
    Iterator operator++(int) noexcept {
      Iterator before = *this;
      ++index_;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) noexcept {
      return a.index_ == b.index_;
    }
    friend bool operator!=(const Iterator& a, const Iterator& b) noexcept {
      return a.index_ != b.index_;
    }

   private:
    TensorAccessor accessor_;
    int64_t index_;
  };

  /// `dims` and `strides` (in elements) hold N numbers each; they are copied.
  TensorAccessor(Cursor cursor, const int64_t* dims, const int64_t* strides) noexcept
      : cursor_(cursor) {
    for (size_t i = 0; i < N; ++i) {
      dims_[i] = dims[i];
      strides_[i] = strides[i];
    }
  }

  Reference operator[](int64_t index) const {
    if constexpr (N == 1) {
      return cursor_.element(index);
    } else {
      return Reference(cursor_.at(index * strides_[0]), dims_.data() + 1, strides_.data() + 1);
    }
  }

  auto begin() const {
    if constexpr (N == 1 && std::is_pointer_v<Container>) {
      return cursor_.data();
    } else {
      return Iterator(*this, 0);
    }
  }
  auto end() const {
    if constexpr (N == 1 && std::is_pointer_v<Container>) {
      return begin() + dims_[0];
    } else {
      return Iterator(*this, dims_[0]);
    }
  }

  /// Number of rows, or of elements for N = 1.
  int64_t size() const noexcept { return dims_[0]; }
  const std::array<int64_t, N>& dims() const noexcept { return dims_; }

 private:
  Cursor cursor_;
  std::array<int64_t, N> dims_{};
  std::array<int64_t, N> strides_{};
};

/// The same elements under another shape: an accessor whose shape isn't the tensor's.
template <typename Container, size_t N>
using TensorView = TensorAccessor<Container, N>;

namespace internal {

template <typename Container, size_t N>
TensorAccessor<Container, N> make_row_major(ElementCursor<Container> cursor, const int64_t* dims) {
  std::array<int64_t, N> strides{};
  int64_t stride = 1;
  for (size_t i = N; i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return TensorAccessor<Container, N>(cursor, dims, strides.data());
}

}  // namespace internal

/// The accessor of a whole tensor. Error(invalid_argument) naming both ranks if `dims` hasn't N
/// dimensions.
template <typename Container, size_t N>
TensorAccessor<Container, N> make_accessor(Container container, const std::vector<int64_t>& dims) {
  static_assert(N > 0, "there is no accessor of rank 0; use as_scalar()");
  if (dims.size() != N) internal::throw_wrong_rank(dims, N);
  return internal::make_row_major<Container, N>(internal::ElementCursor<Container>(container),
                                                dims.data());
}

/// Error(invalid_argument) if a dimension is negative or their product isn't `num_elements`.
template <typename Container, size_t N>
TensorView<Container, N> make_view(Container container, size_t num_elements,
                                   const std::array<int64_t, N>& dims) {
  static_assert(N > 0, "there is no view of rank 0; use as_scalar()");
  if (!internal::dims_hold(dims.data(), N, num_elements)) {
    internal::throw_bad_view(dims.data(), N, num_elements);
  }
  return internal::make_row_major<Container, N>(internal::ElementCursor<Container>(container),
                                                dims.data());
}

}  // namespace neuropod
