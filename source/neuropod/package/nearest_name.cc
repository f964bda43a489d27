#include "neuropod/package/nearest_name.hh"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace neuropod {
namespace {

// Longer names aren't compared: a message isn't worth the time.
constexpr size_t kLongestName = 256;

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Letters to insert, delete, replace or swap with their neighbour. Case doesn't count.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t differs = lower(a[i - 1]) != lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + differs});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1])) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  std::string nearest;
  if (name.size() > kLongestName) return nearest;
  size_t smallest = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    if (candidate.size() > kLongestName) continue;
    const size_t distance = edit_distance(name, candidate);
    // A short name that shares no letter isn't near, however few letters it takes.
    if (distance < smallest && distance < std::max(name.size(), candidate.size())) {
      smallest = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace neuropod
