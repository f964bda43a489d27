// Reads NumPy's .npy files: just enough of the format for the digits demo.

#pragma once

#include <cctype>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace demo {

// An array in row-major order.
template <typename T>
struct NpyArray {
  std::vector<int64_t> shape;
  std::vector<T> data;
};

namespace detail {

// The value that follows `'key':` in the header, up to the end of the header.
inline std::string header_value(const std::string& header, const std::string& key) {
  const size_t at = header.find("'" + key + "':");
  if (at == std::string::npos) {
    throw std::runtime_error("the .npy header lacks '" + key + "'");
  }
  return header.substr(header.find_first_not_of(' ', at + key.size() + 3));
}

// The sizes in a Python tuple such as `(450, 8, 8), …` or `(450,), …`.
inline std::vector<int64_t> parse_shape(const std::string& tuple) {
  std::vector<int64_t> shape;
  for (size_t i = 0; i < tuple.size() && tuple[i] != ')';) {
    if (std::isdigit(static_cast<unsigned char>(tuple[i])) == 0) {
      ++i;
      continue;
    }
    size_t digits = 0;
    shape.push_back(std::stoll(tuple.substr(i), &digits));
    i += digits;
  }
  return shape;
}

}  // namespace detail

// Reads a little-endian, row-major array whose NumPy type is `dtype` ("<f4", "<i8"), which must be
// the type that `T` is. Throws std::runtime_error, naming the file, if it is anything else.
template <typename T>
NpyArray<T> read_npy(const std::string& path, const std::string& dtype) {
  std::ifstream file(path, std::ios::binary);
  char start[8] = {};
  if (!file.read(start, sizeof(start)) || std::memcmp(start, "\x93NUMPY", 6) != 0) {
    throw std::runtime_error(path + " is not a .npy file");
  }

  // Version 1 counts the header in two bytes, later ones in four; least significant first.
  uint32_t header_size = 0;
  for (int i = 0; i < (start[6] == 1 ? 2 : 4); ++i) {
    header_size |= static_cast<uint32_t>(file.get() & 0xff) << (8 * i);
  }
  std::string header(header_size, '\0');
  file.read(&header[0], header_size);

  if (detail::header_value(header, "descr").compare(0, dtype.size() + 2, "'" + dtype + "'") != 0 ||
      detail::header_value(header, "fortran_order").compare(0, 5, "False") != 0) {
    throw std::runtime_error(path + " is not a row-major array of " + dtype);
  }

  NpyArray<T> out;
  out.shape = detail::parse_shape(detail::header_value(header, "shape"));
  size_t count = 1;
  for (const int64_t size : out.shape) {
    count *= static_cast<size_t>(size);
  }
  out.data.resize(count);
  if (!file.read(reinterpret_cast<char*>(out.data.data()),
                 static_cast<std::streamsize>(count * sizeof(T)))) {
    throw std::runtime_error(path + " ends too early");
  }
  return out;
}

}  // namespace demo
