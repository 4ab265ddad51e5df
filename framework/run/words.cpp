#include "framework/run/words.hpp"

#include <fmt/format.h>

namespace isohalo {

std::string did_you_mean(const std::string& word) {
  return word.empty() ? "" : "; did you mean " + word + "?";
}

std::string shortened(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;  // not within a character
  return fmt::format("{}.. ({} bytes)", text.substr(0, most), text.size());
}

std::string counted(std::int64_t n, const std::string& thing) {
  return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s");
}

}  // namespace isohalo
