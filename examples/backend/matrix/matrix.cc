#include "matrix/matrix.hh"

#include <algorithm>
#include <stdexcept>

namespace matrix {
namespace {

Term read_term(std::istream& text) {
  Term term;
  if (!(text >> term.input >> term.rows >> term.columns) || term.rows == 0 || term.columns == 0 ||
      term.rows > 10000 || term.columns > 10000) {
    throw std::runtime_error("a term needs an input, a number of rows and a number of columns");
  }
  term.values.resize(term.rows * term.columns);
  for (float& value : term.values) {
    if (!(text >> value)) {
      throw std::runtime_error("the matrix for '" + term.input + "' needs " +
                               std::to_string(term.values.size()) + " numbers");
    }
  }
  return term;
}

bool scales(const Term& term) { return term.values.size() == 1; }

std::vector<size_t> shape_of_term(const Term& term, const View& input) {
  if (scales(term)) return input.shape;
  if (input.shape.size() == 1 && input.shape[0] == term.columns) return {term.rows};
  throw std::runtime_error("input '" + term.input + "' must be a vector of " +
                           std::to_string(term.columns) + " elements");
}

void add_product(const Term& term, const View& input, float* to) {
  if (scales(term)) {
    for (size_t i = 0; i < input.size(); ++i) to[i] += term.values[0] * input.data[i];
    return;
  }
  for (size_t row = 0; row < term.rows; ++row) {
    for (size_t column = 0; column < term.columns; ++column) {
      to[row] += term.values[row * term.columns + column] * input.data[column];
    }
  }
}

}  // namespace

Model::Model(std::istream& text) {
  std::vector<Term>* terms = nullptr;
  for (std::string word; text >> word;) {
    std::string name;
    if (word == "output" && text >> name) {
      terms = &outputs_[name];
    } else if (word == "term" && terms != nullptr) {
      terms->push_back(read_term(text));
    } else if (word == "nonnegative" && text >> name) {
      nonnegative_.push_back(name);
    } else {
      throw std::runtime_error("this is no matrix model: '" + word.substr(0, 40) + "'");
    }
  }
  if (outputs_.empty()) throw std::runtime_error("the matrix model has no outputs");
}

std::vector<size_t> Model::shape_of(const std::string& output,
                                    const std::map<std::string, View>& inputs) const {
  for (const std::string& name : nonnegative_) {
    const auto input = inputs.find(name);
    if (input != inputs.end() && input->second.size() > 0 && input->second.data[0] < 0) {
      throw std::runtime_error("input '" + name + "' must not be negative");
    }
  }
  bool found = false;
  std::vector<size_t> shape;
  for (const Term& term : outputs_.at(output)) {
    const auto input = inputs.find(term.input);
    if (input == inputs.end()) continue;
    const std::vector<size_t> of_term = shape_of_term(term, input->second);
    if (found && of_term != shape) throw std::runtime_error("the terms' shapes differ");
    shape = of_term;
    found = true;
  }
  if (!found) throw std::runtime_error("output '" + output + "' has no input");
  return shape;
}

void Model::run(const std::string& output, const std::map<std::string, View>& inputs,
                float* to) const {
  size_t count = 1;
  for (size_t dimension : shape_of(output, inputs)) count *= dimension;
  std::fill_n(to, count, -0.0f);  // unlike 0, it leaves every number that is added as it is
  for (const Term& term : outputs_.at(output)) {
    const auto input = inputs.find(term.input);
    if (input != inputs.end()) add_product(term, input->second, to);
  }
}

}  // namespace matrix
