#pragma once
/// What was probably meant by a word that is none of those there are. Local.

#include <string>
#include <vector>

namespace isohalo {

/// The candidate that `word` begins, or that is few letters away from it, whatever their case; "" when there is
/// none.
std::string nearest_word(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace isohalo
