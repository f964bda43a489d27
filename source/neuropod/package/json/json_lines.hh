#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace neuropod {

/// Where the members and elements of a JSON text stand, so that a mistake can be reported with its
/// line. Paths as in KeyReader. Lines count from 1.
class JsonLines {
 public:
  /// A key that one object has twice.
  struct Duplicate {
    std::string path;
    size_t first_line;
    size_t line;
  };

  /// `text`: valid JSON.
  explicit JsonLines(std::string_view text);

  /// The line of the member's key, or of the element. For a path that isn't there: of what would
  /// hold it.
  size_t line_of(std::string path) const;

  /// The first duplicate in the text, if there is one.
  const std::optional<Duplicate>& duplicate() const { return duplicate_; }

 private:
  // By a hash of the path: a long key above many elements would be a part of each one's.
  std::unordered_map<uint64_t, size_t> lines_;
  std::optional<Duplicate> duplicate_;
};

/// The line, from 1, that holds byte `offset` of `text`.
size_t line_at(std::string_view text, size_t offset);

}  // namespace neuropod
