#include "datatypes/printable.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace isohalo {

namespace {

struct Character {
  std::uint32_t code;
  std::size_t bytes;  ///< 0: no UTF-8, `code` is the byte
};

/// The first character of a text that is not empty.
Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t k) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[k])); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {lead, 0};
  std::uint32_t code = lead & (0xffu >> (bytes + 1));
  for (std::size_t k = 1; k < bytes; ++k) {
    if ((byte(k) & 0xc0) != 0x80) return {lead, 0};
    code = code << 6 | (byte(k) & 0x3f);
  }
  const std::uint32_t least = bytes == 4 ? 0x10000 : bytes == 3 ? 0x800 : 0x80;  // one spelling per character
  if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {lead, 0};
  return {code, bytes};
}

/// Does a terminal or a text view act on it instead of showing it?
bool acts(std::uint32_t c) {
  const auto within = [c](std::uint32_t low, std::uint32_t high) { return c >= low && c <= high; };
  return c < 0x20 || within(0x7f, 0x9f) || c == 0x61c || within(0x200b, 0x200f) || within(0x2028, 0x202e) ||
         within(0x2060, 0x206f) || c == 0xfeff || within(0xfff9, 0xfffb) || within(0xe0000, 0xe007f);
}

std::string escape(const Character& c) {
  if (c.code == '\n') return "\\n";
  if (c.code == '\r') return "\\r";
  if (c.code == '\t') return "\\t";
  char text[16];
  const bool byte = c.bytes == 0 || c.code < 0x80;
  std::snprintf(text, sizeof text, byte ? "\\x%02x" : c.code < 0x10000 ? "\\u%04x" : "\\U%08x", c.code);
  return text;
}

/// The text, with each character, or byte that is none, as `show(character, its bytes)`.
template <class Show>
std::string shown(std::string_view text, const Show& show) {
  std::string all;
  while (!text.empty()) {
    const Character c = first_of(text);
    const std::size_t bytes = std::max<std::size_t>(c.bytes, 1);
    all += show(c, text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return all;
}

}  // namespace

std::string printable(std::string_view text) {
  return shown(text, [](const Character& c, std::string_view bytes) {
    return c.bytes == 0 || acts(c.code) ? escape(c) : std::string(bytes);
  });
}

std::string xml_text(std::string_view text) {
  return shown(text, [](const Character& c, std::string_view bytes) -> std::string_view {
    if (c.bytes == 0 || c.code < 0x20 || c.code == 0xfffe || c.code == 0xffff) return "?";
    switch (c.code) {
      case '&':
        return "&amp;";
      case '<':
        return "&lt;";
      case '>':
        return "&gt;";
      case '"':
        return "&quot;";
      default:
        return bytes;
    }
  });
}

namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += (all.empty() ? "" : "\n") + printable(line);
  return all;
}

}  // namespace

ErrorList::ErrorList(const std::vector<std::string>& lines) : UsageError(joined(lines)) {}

}  // namespace isohalo
