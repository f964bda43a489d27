#pragma once

#include <cstddef>
#include <istream>
#include <map>
#include <string>
#include <vector>

/// A framework for models that are matrices in a text file. It knows nothing of Neuropod.
namespace matrix {

/// Numbers that somebody else owns, with their shape.
struct View {
  const float* data = nullptr;
  std::vector<size_t> shape;

  size_t size() const {
    size_t count = 1;
    for (size_t dimension : shape) count *= dimension;
    return count;
  }
};

/// matrix × one input, a part of an output. A 1 × 1 matrix scales an input of any shape; any other
/// takes a vector with as many elements as it has columns.
struct Term {
  std::string input;
  size_t rows = 0;
  size_t columns = 0;
  std::vector<float> values;  // row by row
};

/// A model, read from text:
///
///     output y            one output, the sum of its terms
///     term x 2 3          rows and columns of the matrix for input x, then its numbers
///     1 0 0
///     0 1 0
///     nonnegative x       running fails if the first element of x is negative
class Model {
 public:
  /// Throws std::runtime_error naming the word that it doesn't understand.
  explicit Model(std::istream& text);

  const std::map<std::string, std::vector<Term>>& outputs() const { return outputs_; }

  /// The shape that `output` will have. Terms whose input is absent count as zero.
  /// Throws std::runtime_error for inputs that don't fit.
  std::vector<size_t> shape_of(const std::string& output,
                               const std::map<std::string, View>& inputs) const;

  /// Computes `output` into `to`, which has room for shape_of() elements.
  void run(const std::string& output, const std::map<std::string, View>& inputs, float* to) const;

 private:
  std::map<std::string, std::vector<Term>> outputs_;
  std::vector<std::string> nonnegative_;
};

}  // namespace matrix
