#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "neuropod/base/error.hh"
#include "neuropod/package/problem_api.hh"

namespace neuropod {
namespace {

const TensorSpec* find(const std::vector<TensorSpec>& specs, const std::string& name) {
  for (const TensorSpec& spec : specs) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

bool is_symbol(const Dimension& dim) { return dim.value == -2; }
bool is_any(const Dimension& dim) { return dim.value == -1; }

// Whether every call gives both the same size, by the rules of the API that both are from.
bool always_equal(const Dimension& a, const Dimension& b) { return !is_any(a) && a == b; }

std::string describe(const Dimension& dim) {
  if (is_any(dim)) return "any size";
  return is_symbol(dim) ? fmt::format("'{}'", dim.symbol) : std::to_string(dim.value);
}

// Which sizes are equal in every call: those of one set. A set may hold one fixed size. Members:
// symbols of the old API, symbols of the new one, fixed sizes.
class EqualSizes {
 public:
  static std::string of_old(const Dimension& dim) { return member("old ", dim); }
  static std::string of_new(const Dimension& dim) { return member("new ", dim); }

  // Members are empty for "any size", which is equal to nothing.
  void unite(const std::string& a, const std::string& b) {
    if (a.empty() || b.empty()) return;
    const std::string from = root(a);
    const std::string to = root(b);
    if (from == to || (is_size(from) && is_size(to))) return;
    if (is_size(from)) {
      parents_[to] = from;
    } else {
      parents_[from] = to;
    }
  }

  bool equal(const std::string& a, const std::string& b) const {
    return !a.empty() && !b.empty() && root(a) == root(b);
  }

 private:
  static std::string member(const char* side, const Dimension& dim) {
    if (is_any(dim)) return "";
    return is_symbol(dim) ? side + dim.symbol : "size " + std::to_string(dim.value);
  }
  static bool is_size(const std::string& member) { return member.rfind("size ", 0) == 0; }

  std::string root(std::string member) const {
    for (auto parent = parents_.find(member); parent != parents_.end();
         parent = parents_.find(member)) {
      member = parent->second;
    }
    return member;
  }

  std::map<std::string, std::string> parents_;
};

// A dimension of a tensor, for messages.
struct Place {
  ApiSide side;
  const TensorSpec* tensor;
  size_t dim;

  std::string text() const {
    return fmt::format("dimension {} of {} '{}'", dim, side == ApiSide::kInput ? "input" : "output",
                       tensor->name);
  }
};

class Comparison {
 public:
  Comparison(const ProblemApi& old_api, const ProblemApi& new_api)
      : old_(old_api), new_(new_api), always_equal_(equal_sizes(nullptr)) {}

  std::vector<ApiDifference> run() {
    for (const TensorSpec& before : old_.inputs) compare_input(before);
    for (const TensorSpec& after : new_.inputs) {
      if (find(old_.inputs, after.name) == nullptr) report_new_input(after);
    }
    for (const TensorSpec& before : old_.outputs) compare_output(before);
    for (const TensorSpec& after : new_.outputs) {
      if (find(old_.outputs, after.name) != nullptr) continue;
      report(ApiSide::kOutput, after, false, fmt::format("is new: {}", to_string(after)));
    }
    return std::move(differences_);
  }

 private:
  void report(ApiSide side, const TensorSpec& tensor, bool breaking, const std::string& what) {
    differences_.push_back(
        {side, tensor.name,
         fmt::format("{} '{}' {}", side == ApiSide::kInput ? "input" : "output", tensor.name, what),
         breaking});
  }

  // A symbol that is only called otherwise is reported once, however many dimensions it has.
  void report_renamed(ApiSide side, const TensorSpec& tensor, size_t i, const Dimension& before,
                      const Dimension& after) {
    if (is_symbol(before) && !renamed_.insert({before.symbol, after.symbol}).second) return;
    report(side, tensor, false,
           fmt::format("dimension {} is {} instead of {}", i, describe(after), describe(before)));
  }

  // The tensor of that name on the new side, if its dimensions can be compared.
  const TensorSpec* comparable(ApiSide side, const TensorSpec& before) {
    const TensorSpec* after =
        find(side == ApiSide::kInput ? new_.inputs : new_.outputs, before.name);
    if (after == nullptr) {
      report(side, before, true, fmt::format("is missing: {}", to_string(before)));
    } else if (after->type != before.type) {
      report(side, before, true,
             fmt::format("is {} instead of {}", get_dtype_name(after->type),
                         get_dtype_name(before.type)));
    } else if (after->dims.size() != before.dims.size()) {
      report(side, before, true,
             fmt::format("has {} dimensions instead of {}: {} instead of {}", after->dims.size(),
                         before.dims.size(), to_string(*after), to_string(before)));
    } else {
      return after;
    }
    return nullptr;
  }

  // ---- Inputs: the new side must admit every call that the old one admits.

  void report_new_input(const TensorSpec& after) {
    report(ApiSide::kInput, after, !after.optional,
           after.optional ? fmt::format("is new and optional: {}", to_string(after))
                          : fmt::format("is new and required: {}; \"optional\": true would let "
                                        "programs leave it out",
                                        to_string(after)));
  }

  void compare_input(const TensorSpec& before) {
    const TensorSpec* after = comparable(ApiSide::kInput, before);
    if (after == nullptr) return;
    if (before.optional != after->optional) {
      report(
          ApiSide::kInput, before, before.optional,
          before.optional ? "is required instead of optional" : "is optional instead of required");
    }
    for (size_t i = 0; i < before.dims.size(); ++i) {
      if (is_symbol(after->dims[i])) {
        compare_input_to_symbol(before, *after, i);
      } else {
        compare_input_to_size(before, *after, i);
      }
    }
  }

  void compare_input_to_size(const TensorSpec& before, const TensorSpec& after, size_t i) {
    if (after.dims[i] == before.dims[i]) return;
    const bool is_wider = is_any(after.dims[i]);
    report(ApiSide::kInput, before, !is_wider,
           fmt::format("dimension {} takes {} instead of {}", i,
                       is_wider ? "any size" : describe(after.dims[i]) + " only",
                       describe(before.dims[i])));
  }

  // What the new side calls by one symbol must have been equal in every call of the old side.
  // Equality is transitive, so the first dimension of that symbol stands for all.
  void compare_input_to_symbol(const TensorSpec& before, const TensorSpec& after, size_t i) {
    const Dimension& dim = after.dims[i];
    const auto [first, is_first] =
        first_inputs_.emplace(dim.symbol, Place{ApiSide::kInput, &before, i});
    const Place& other = first->second;
    if (!is_first && !always_equal(before.dims[i], other.tensor->dims[other.dim])) {
      report(ApiSide::kInput, before, true,
             fmt::format("dimension {} must equal {} (both are {}), instead of being free of it", i,
                         other.text(), describe(dim)));
    } else if (before.dims[i].value > 0) {
      report(ApiSide::kInput, before, false,
             fmt::format("dimension {} takes any size ({}) instead of {}", i, describe(dim),
                         describe(before.dims[i])));
    } else if (before.dims[i] != dim) {
      report_renamed(ApiSide::kInput, before, i, before.dims[i], dim);
    }
  }

  // ---- Outputs: what the new side lets out the old one would have let out.

  // What is equal in a call that gives all required inputs, and `also` if it isn't null.
  EqualSizes equal_sizes(const TensorSpec* also) const {
    EqualSizes sizes;
    for (const TensorSpec& before : old_.inputs) {
      const TensorSpec* after = find(new_.inputs, before.name);
      const bool is_given = !before.optional || &before == also;
      if (!is_given || after == nullptr || after->dims.size() != before.dims.size()) continue;
      for (size_t i = 0; i < before.dims.size(); ++i) {
        sizes.unite(EqualSizes::of_old(before.dims[i]), EqualSizes::of_new(after->dims[i]));
      }
    }
    return sizes;
  }

  void compare_output(const TensorSpec& before) {
    const TensorSpec* after = comparable(ApiSide::kOutput, before);
    if (after == nullptr) return;
    for (size_t i = 0; i < before.dims.size(); ++i) {
      const Dimension& was = before.dims[i];
      const Dimension& is = after->dims[i];
      std::string expected;  // what `was` says and `is` doesn't
      if (is_symbol(was)) {
        expected = broken_equality(before, *after, i);
      } else if (!is_any(was) &&
                 !always_equal_.equal(EqualSizes::of_old(was), EqualSizes::of_new(is))) {
        expected = describe(was);
      }
      if (!expected.empty()) {
        report(ApiSide::kOutput, before, true,
               fmt::format("dimension {} is {} instead of {}", i, describe(is), expected));
      } else if (was != is) {
        report_renamed(ApiSide::kOutput, before, i, was, is);
      }
    }
  }

  // What dimension `i`, a symbol in the old API, was equal to and isn't always any more; empty if
  // all its equalities hold.
  std::string broken_equality(const TensorSpec& before, const TensorSpec& after, size_t i) {
    const Dimension& was = before.dims[i];
    const std::string found = EqualSizes::of_new(after.dims[i]);
    bool is_bound_by_a_required_input = false;
    for (const Place& place : places_of(was)) {
      is_bound_by_a_required_input |= !place.tensor->optional;
      const bool holds = place.tensor->optional
                             ? equal_sizes(place.tensor).equal(EqualSizes::of_old(was), found)
                             : always_equal_.equal(EqualSizes::of_old(was), found);
      if (!holds) {
        return fmt::format("equal to {} ({})", place.text(), describe(was));
      }
    }
    if (is_bound_by_a_required_input) return "";
    // Between outputs it must hold also in calls that leave the optional inputs out.
    const auto [first, is_first] =
        first_outputs_.emplace(was.symbol, Place{ApiSide::kOutput, &before, i});
    const Place& other = first->second;
    if (is_first) return "";
    const Dimension& other_after = find(new_.outputs, other.tensor->name)->dims[other.dim];
    if (always_equal_.equal(EqualSizes::of_new(other_after), found)) return "";
    return fmt::format("equal to {} ({})", other.text(), describe(was));
  }

  // Where the old inputs bind a symbol: each of its tensors once.
  std::vector<Place> places_of(const Dimension& symbol) const {
    std::vector<Place> places;
    for (const TensorSpec& input : old_.inputs) {
      for (size_t i = 0; i < input.dims.size(); ++i) {
        if (input.dims[i] != symbol) continue;
        places.push_back({ApiSide::kInput, &input, i});
        break;
      }
    }
    return places;
  }

  const ProblemApi& old_;
  const ProblemApi& new_;
  const EqualSizes always_equal_;  // in each call
  std::vector<ApiDifference> differences_;
  std::set<std::pair<std::string, std::string>> renamed_;  // symbols: old name, new name
  std::map<std::string, Place> first_inputs_;              // by the new symbol
  std::map<std::string, Place> first_outputs_;             // by the old symbol
};

}  // namespace

std::vector<ApiDifference> compare_problem_apis(const ProblemApi& old_api,
                                                const ProblemApi& new_api) {
  return Comparison(old_api, new_api).run();
}

void require_fulfilled(const ProblemApi& required, const ProblemApi& found,
                       const std::string& what) {
  std::vector<std::string> texts;
  for (const ApiDifference& difference : compare_problem_apis(required, found)) {
    if (difference.breaking) texts.push_back(difference.text);
  }
  if (texts.empty()) return;
  throw_error(ErrorCode::kInvalidArgument,
              fmt::format("{} doesn't fulfil the problem API: {}", what, fmt::join(texts, "; ")));
}

}  // namespace neuropod
