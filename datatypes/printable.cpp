#include "datatypes/printable.hpp"

#include <cstdint>
#include <cstdio>

namespace isohalo {

namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  ///< 0: not UTF-8
};

/// The first character of a text that is not empty.
Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t k) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[k])); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  std::uint32_t code = lead & (0xffu >> (bytes + 1));
  for (std::size_t k = 1; k < bytes; ++k) {
    if ((byte(k) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(k) & 0x3f);
  }
  const std::uint32_t least = bytes == 4 ? 0x10000 : bytes == 3 ? 0x800 : 0x80;  // one spelling per character
  if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, bytes};
}

/// Does a terminal or a text view act on it instead of showing it?
bool acts(std::uint32_t c) {
  const auto within = [c](std::uint32_t low, std::uint32_t high) { return c >= low && c <= high; };
  return c < 0x20 || within(0x7f, 0x9f) || c == 0x61c || within(0x200b, 0x200f) || within(0x2028, 0x202e) ||
         within(0x2060, 0x206f) || c == 0xfeff || within(0xfff9, 0xfffb) || within(0xe0000, 0xe007f);
}

std::string escape(std::uint32_t c) {
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  char text[16];
  std::snprintf(text, sizeof text, c < 0x80 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
  return text;
}

std::string escape_byte(char byte) {
  char text[8];
  std::snprintf(text, sizeof text, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
  return text;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const Character c = first_of(text);
    if (c.bytes == 0)
      shown += escape_byte(text[0]);
    else if (acts(c.code))
      shown += escape(c.code);
    else
      shown += text.substr(0, c.bytes);
    text.remove_prefix(c.bytes ? c.bytes : 1);
  }
  return shown;
}

std::string xml_text(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const Character c = first_of(text);
    if (c.bytes == 0 || c.code < 0x20 || c.code == 0xfffe || c.code == 0xffff)
      shown += '?';
    else if (c.code == '&')
      shown += "&amp;";
    else if (c.code == '<')
      shown += "&lt;";
    else if (c.code == '>')
      shown += "&gt;";
    else if (c.code == '"')
      shown += "&quot;";
    else
      shown += text.substr(0, c.bytes);
    text.remove_prefix(c.bytes ? c.bytes : 1);
  }
  return shown;
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
