#pragma once
/// Words of an input in messages: what was probably meant, and text of any length. Local.

#include <cstddef>
#include <cstdint>
#include <string>

#include "datatypes/nearest_word.hpp"

namespace isohalo {

/// "; did you mean WORD?", or nothing for an empty word.
std::string did_you_mean(const std::string& word);

/// At most about `most` bytes of `text`, and then how many there are.
std::string shortened(const std::string& text, std::size_t most = 120);

/// "1 rank", "2 ranks".
std::string counted(std::int64_t n, const std::string& thing);

}  // namespace isohalo
