#include "datatypes/nearest_word.hpp"

#include <algorithm>
#include <cstddef>

namespace isohalo {

namespace {
constexpr std::size_t kLongest = 200;  // longer words are no misspelling

std::string lower_case(std::string word) {
  for (char& c : word)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return word;
}

/// Letters to insert, delete, replace or swap with their neighbor to make `b` of `a`.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_word(const std::string& word, const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > kLongest) return "";
  const std::string lower = lower_case(word);
  std::string best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const auto& c : candidates) {
    const bool begins = word.size() >= 3 && lower_case(c).starts_with(lower);
    if (const std::size_t n = begins ? 0 : edit_distance(lower, lower_case(c)); n < least) least = n, best = c;
  }
  return best;
}

}  // namespace isohalo
