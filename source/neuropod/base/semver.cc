#include "neuropod/base/semver.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "neuropod/base/error.hh"

namespace neuropod {
namespace {

// major, minor, patch. A part that is missing or a wildcard has no value.
using Numbers = std::array<std::optional<uint64_t>, 3>;

struct Version {
  std::array<uint64_t, 3> numbers{};
  std::vector<std::string> prerelease;
};

// A version as ranges are written with, perhaps in part: "1.x", "2", "*".
struct Partial {
  Numbers numbers;
  std::vector<std::string> prerelease;
  bool has_wildcard = false;

  // How many parts, from the left, have a value; parts right of a wildcard don't count.
  size_t known() const {
    size_t count = 0;
    while (count < 3 && numbers[count]) ++count;
    return count;
  }
};

enum class Operator { kLess, kLessOrEqual, kGreater, kGreaterOrEqual, kEqual };

struct Comparator {
  Operator op;
  Version version;
};

// All must hold.
using ComparatorSet = std::vector<Comparator>;

// The reason why a text isn't a version or range.
struct SyntaxError {
  std::string reason;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_identifier_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Takes a text apart from the left.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool done() const { return at_ == text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  std::string_view rest() const { return text_.substr(at_); }

  bool accept(std::string_view token) {
    if (rest().substr(0, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  template <typename Predicate>
  std::string_view take_while(Predicate predicate) {
    const size_t begin = at_;
    while (!done() && predicate(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  void skip_spaces() { take_while(is_space); }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

uint64_t take_number(Scanner* scanner) {
  const std::string_view digits = scanner->take_while(is_digit);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty()) throw SyntaxError{"a number is missing"};
  // npm's limit: the largest integer that a double holds exactly.
  if (error != std::errc() || number > 9007199254740991u) {
    throw SyntaxError{fmt::format("the number {} is too large", digits)};
  }
  return number;
}

std::vector<std::string> take_identifiers(Scanner* scanner) {
  std::vector<std::string> identifiers;
  do {
    const std::string_view identifier = scanner->take_while(is_identifier_character);
    if (identifier.empty()) throw SyntaxError{"an identifier is missing"};
    identifiers.emplace_back(identifier);
  } while (scanner->accept("."));
  return identifiers;
}

// "rc1", "a0", ".dev3", as Python writes pre-releases, become rc.1, a.0, dev.3. ".post1" says that
// the same release was packed again.
std::vector<std::string> take_python_suffix(Scanner* scanner) {
  static constexpr std::string_view kWords[] = {"a",    "b",       "c",   "rc",  "alpha",
                                                "beta", "preview", "pre", "dev", "post"};
  std::vector<std::string> identifiers;
  for (;;) {
    Scanner ahead = *scanner;
    ahead.accept(".");
    const auto word = ahead.take_while([](char c) { return std::isalpha(uint8_t(c)) != 0; });
    if (std::find(std::begin(kWords), std::end(kWords), word) == std::end(kWords))
      return identifiers;
    const auto digits = ahead.take_while(is_digit);
    *scanner = ahead;
    if (word == "post") continue;
    identifiers.emplace_back(word);
    if (!digits.empty()) identifiers.emplace_back(digits);
  }
}

// Reads a version or a part of one; leaves what follows it.
Partial take_partial(Scanner* scanner) {
  scanner->accept("v");
  Partial result;
  for (size_t i = 0; i < 3; ++i) {
    Scanner ahead = *scanner;
    if (i > 0 && !ahead.accept(".")) break;
    if (ahead.accept("x") || ahead.accept("X") || ahead.accept("*")) {
      result.has_wildcard = true;
    } else if (i == 0 || is_digit(ahead.peek())) {
      result.numbers[i] = take_number(&ahead);
    } else {
      break;
    }
    *scanner = ahead;
  }
  if (scanner->accept("-")) {
    result.prerelease = take_identifiers(scanner);
  } else if (!result.has_wildcard) {
    result.prerelease = take_python_suffix(scanner);
  }
  if (scanner->accept("+")) take_identifiers(scanner);
  return result;
}

Version complete(const Partial& partial) {
  Version version;
  for (size_t i = 0; i < partial.known(); ++i) version.numbers[i] = *partial.numbers[i];
  if (partial.known() == 3) version.prerelease = partial.prerelease;
  return version;
}

// The first version of the next 1.0.0, 0.1.0 or 0.0.1 after `version`: 2.0.0-0 lies below each
// pre-release of 2.0.0 as well.
Version next(const Version& version, size_t part) {
  Version result;
  for (size_t i = 0; i < part; ++i) result.numbers[i] = version.numbers[i];
  result.numbers[part] = version.numbers[part] + 1;
  result.prerelease = {"0"};
  return result;
}

Comparator nothing() { return {Operator::kLess, Version{{0, 0, 0}, {"0"}}}; }

[[noreturn]] void throw_unexpected(std::string_view rest) {
  throw SyntaxError{fmt::format("'{}' doesn't belong there", rest)};
}

Version parse_version(const std::string& text) {
  Scanner scanner(text);
  scanner.skip_spaces();
  scanner.accept("=");
  const Partial partial = take_partial(&scanner);
  scanner.skip_spaces();
  if (!scanner.done()) throw_unexpected(scanner.rest());
  if (partial.has_wildcard) throw SyntaxError{"a version has no wildcards"};
  Version version = complete(partial);
  version.prerelease = partial.prerelease;
  return version;
}

int compare_identifiers(const std::string& a, const std::string& b) {
  const bool a_is_number = a.find_first_not_of("0123456789") == std::string::npos;
  const bool b_is_number = b.find_first_not_of("0123456789") == std::string::npos;
  if (a_is_number != b_is_number) return a_is_number ? -1 : 1;
  if (!a_is_number) return a.compare(b);
  const auto without_zeros = [](const std::string& s) {
    return s.substr(std::min(s.find_first_not_of('0'), s.size() - 1));
  };
  const std::string a_number = without_zeros(a);
  const std::string b_number = without_zeros(b);
  if (a_number.size() != b_number.size()) return a_number.size() < b_number.size() ? -1 : 1;
  return a_number.compare(b_number);
}

int compare(const Version& a, const Version& b) {
  if (a.numbers != b.numbers) return a.numbers < b.numbers ? -1 : 1;
  if (a.prerelease.empty() || b.prerelease.empty()) {
    return int(a.prerelease.empty()) - int(b.prerelease.empty());
  }
  for (size_t i = 0; i < a.prerelease.size() && i < b.prerelease.size(); ++i) {
    const int order = compare_identifiers(a.prerelease[i], b.prerelease[i]);
    if (order != 0) return order < 0 ? -1 : 1;
  }
  if (a.prerelease.size() == b.prerelease.size()) return 0;
  return a.prerelease.size() < b.prerelease.size() ? -1 : 1;
}

void add_x_range(const Partial& partial, ComparatorSet* set) {
  const size_t known = partial.known();
  if (known == 3) {
    set->push_back({Operator::kEqual, complete(partial)});
  } else if (known > 0) {
    set->push_back({Operator::kGreaterOrEqual, complete(partial)});
    set->push_back({Operator::kLess, next(complete(partial), known - 1)});
  }
}

void add_tilde(const Partial& partial, ComparatorSet* set) {
  const size_t known = partial.known();
  if (known == 0) return;
  set->push_back({Operator::kGreaterOrEqual, complete(partial)});
  set->push_back({Operator::kLess, next(complete(partial), known == 1 ? 0 : 1)});
}

void add_caret(const Partial& partial, ComparatorSet* set) {
  const size_t known = partial.known();
  if (known == 0) return;
  const Version version = complete(partial);
  // The leftmost part that isn't zero may not change; among zeros, the last that was written.
  size_t fixed = 0;
  while (fixed + 1 < known && version.numbers[fixed] == 0) ++fixed;
  set->push_back({Operator::kGreaterOrEqual, version});
  set->push_back({Operator::kLess, next(version, fixed)});
}

void add_comparison(Operator op, const Partial& partial, ComparatorSet* set) {
  const size_t known = partial.known();
  const Version version = complete(partial);
  if (known == 3) {
    set->push_back({op, version});
  } else if (known == 0) {
    if (op == Operator::kLess || op == Operator::kGreater) set->push_back(nothing());
  } else if (op == Operator::kGreaterOrEqual) {
    set->push_back({op, version});
  } else if (op == Operator::kLess) {
    set->push_back({op, Version{version.numbers, {"0"}}});
  } else if (op == Operator::kGreater) {
    Version above = next(version, known - 1);
    above.prerelease.clear();
    set->push_back({Operator::kGreaterOrEqual, above});
  } else {
    set->push_back({Operator::kLess, next(version, known - 1)});
  }
}

void add_hyphen(const Partial& from, const Partial& to, ComparatorSet* set) {
  if (from.known() > 0) set->push_back({Operator::kGreaterOrEqual, complete(from)});
  if (to.known() > 0) add_comparison(Operator::kLessOrEqual, to, set);
}

// One of: "^2.0", "~1.4", ">= 1.4.0", "1.x", "1.4.0 - 1.6.0".
void take_simple_range(Scanner* scanner, ComparatorSet* set) {
  static constexpr std::pair<std::string_view, Operator> kOperators[] = {
      {">=", Operator::kGreaterOrEqual},
      {"<=", Operator::kLessOrEqual},
      {">", Operator::kGreater},
      {"<", Operator::kLess}};
  if (scanner->accept("~")) {
    scanner->accept(">");
    scanner->skip_spaces();
    return add_tilde(take_partial(scanner), set);
  }
  if (scanner->accept("^")) {
    scanner->skip_spaces();
    return add_caret(take_partial(scanner), set);
  }
  for (const auto& [token, op] : kOperators) {
    if (!scanner->accept(token)) continue;
    scanner->skip_spaces();
    scanner->accept("=");
    return add_comparison(op, take_partial(scanner), set);
  }
  if (scanner->accept("=")) {
    scanner->skip_spaces();
    return add_x_range(take_partial(scanner), set);
  }
  const Partial partial = take_partial(scanner);
  Scanner ahead = *scanner;
  ahead.skip_spaces();
  if (!ahead.accept("- ")) return add_x_range(partial, set);
  *scanner = ahead;
  scanner->skip_spaces();
  add_hyphen(partial, take_partial(scanner), set);
}

std::vector<ComparatorSet> parse_range(const std::string& text) {
  std::vector<ComparatorSet> sets(1);
  Scanner scanner(text);
  for (scanner.skip_spaces(); !scanner.done(); scanner.skip_spaces()) {
    if (scanner.accept("||")) {
      sets.emplace_back();
      continue;
    }
    take_simple_range(&scanner, &sets.back());
    if (!scanner.done() && !is_space(scanner.peek()) && scanner.peek() != '|') {
      throw_unexpected(scanner.rest());
    }
  }
  return sets;
}

bool holds(const Comparator& comparator, const Version& version) {
  const int order = compare(version, comparator.version);
  switch (comparator.op) {
    case Operator::kLess:
      return order < 0;
    case Operator::kLessOrEqual:
      return order <= 0;
    case Operator::kGreater:
      return order > 0;
    case Operator::kGreaterOrEqual:
      return order >= 0;
    case Operator::kEqual:
      return order == 0;
  }
  return false;
}

bool satisfies(const Version& version, const ComparatorSet& set) {
  bool names_this_prerelease = version.prerelease.empty();
  for (const Comparator& comparator : set) {
    if (!holds(comparator, version)) return false;
    names_this_prerelease |=
        !comparator.version.prerelease.empty() && comparator.version.numbers == version.numbers;
  }
  return names_this_prerelease;
}

template <typename Parse>
auto parse_or_throw(Parse parse, const char* what, const char* example, const std::string& text) {
  try {
    return parse(text);
  } catch (const SyntaxError& error) {
    throw_error(ErrorCode::kInvalidArgument, fmt::format("'{}' is no valid {} (such as {}): {}",
                                                         text, what, example, error.reason));
  }
}

Version version_or_throw(const std::string& text) {
  return parse_or_throw(parse_version, "version", "2.13.0", text);
}

std::vector<ComparatorSet> range_or_throw(const std::string& text) {
  return parse_or_throw(parse_range, "version range", "'*', '^2.0' or '>=1.4.0 <2.0.0'", text);
}

}  // namespace

int compare_versions(const std::string& a, const std::string& b) {
  return compare(version_or_throw(a), version_or_throw(b));
}

bool version_satisfies(const std::string& version, const std::string& range) {
  const Version parsed = version_or_throw(version);
  for (const ComparatorSet& set : range_or_throw(range)) {
    if (satisfies(parsed, set)) return true;
  }
  return false;
}

void check_version_range(const std::string& range) { range_or_throw(range); }

}  // namespace neuropod
