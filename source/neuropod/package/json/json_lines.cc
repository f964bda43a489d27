#include "neuropod/package/json/json_lines.hh"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace neuropod {
namespace {

using Json = nlohmann::json;

// Counts the lines that nlohmann's lexer has read. A token ends at the last character read, except
// a number, whose end is known by the character behind it: so the last character doesn't count.
struct LineCounter {
  size_t line = 1;
  char last = ' ';

  void read(char c) {
    if (last == '\n') ++line;
    last = c;
  }
};

class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, LineCounter* counter) : at_(at), counter_(counter) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    counter_->read(*at_++);
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  LineCounter* counter_;
};

// FNV-1a: the hash of a path goes on from that of what holds it.
constexpr uint64_t kEmptyPath = 0xcbf29ce484222325u;

uint64_t extend(uint64_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

std::string element(size_t index) { return fmt::format("[{}]", index); }

// Hears of each token in turn and notes the line of each path.
class LineRecorder : public nlohmann::json_sax<Json> {
 public:
  LineRecorder(const LineCounter& counter, std::unordered_map<uint64_t, size_t>* lines,
               std::optional<JsonLines::Duplicate>* duplicate)
      : counter_(counter), lines_(*lines), duplicate_(*duplicate) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(std::size_t) override { return open(/*is_array=*/false); }
  bool start_array(std::size_t) override { return open(/*is_array=*/true); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Container& object = open_.back();
    object.member = name;
    object.member_hash = extend(open_.size() == 1 ? object.hash : extend(object.hash, "."), name);
    const auto [known, is_new] = lines_.emplace(object.member_hash, counter_.line);
    if (!is_new && !duplicate_) duplicate_ = {path(), known->second, counter_.line};
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  struct Container {
    uint64_t hash;  // of its path
    bool is_array;
    size_t next_index = 0;
    std::string member;  // of an object: whose value comes next
    uint64_t member_hash = 0;
  };

  // Hash of the path of the value that starts here.
  uint64_t next_hash() {
    if (open_.empty()) return kEmptyPath;
    Container& container = open_.back();
    if (!container.is_array) return container.member_hash;
    return extend(container.hash, element(container.next_index++));
  }

  // The path of the last key.
  std::string path() const {
    std::string path;
    for (const Container& container : open_) {
      if (container.is_array) {
        path += element(container.next_index - 1);
      } else {
        path += (&container == &open_.front() ? "" : ".") + container.member;
      }
    }
    return path;
  }

  bool value() {
    lines_.emplace(next_hash(), counter_.line);
    return true;
  }

  bool open(bool is_array) {
    const uint64_t hash = next_hash();
    lines_.emplace(hash, counter_.line);
    open_.push_back({hash, is_array, 0, "", 0});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const LineCounter& counter_;
  std::unordered_map<uint64_t, size_t>& lines_;
  std::optional<JsonLines::Duplicate>& duplicate_;
  std::vector<Container> open_;
};

}  // namespace

JsonLines::JsonLines(std::string_view text) {
  LineCounter counter;
  LineRecorder recorder(counter, &lines_, &duplicate_);
  const char* const start = text.data();
  const char* const end = start + text.size();
  Json::sax_parse(CountingIterator(start, &counter), CountingIterator(end, &counter), &recorder);
}

size_t JsonLines::line_of(std::string path) const {
  const auto line = [&] { return lines_.find(extend(kEmptyPath, path)); };
  while (!path.empty() && line() == lines_.end()) {
    const size_t end = path.find_last_of(".[");
    path.resize(end == std::string::npos ? 0 : end);
  }
  const auto found = line();
  return found == lines_.end() ? 1 : found->second;
}

size_t line_at(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  return 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
}

}  // namespace neuropod
