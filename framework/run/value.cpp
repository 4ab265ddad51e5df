#include "framework/run/value.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "datatypes/error.hpp"
#include "framework/run/words.hpp"

namespace isohalo {

const char* Value::type_name() const {
  static const char* const names[] = {"boolean", "integer", "number", "string", "list", "table"};
  return names[data.index()];
}

std::optional<std::int64_t> as_integer(const Value& v) {
  if (const auto* i = std::get_if<std::int64_t>(&v.data)) return *i;
  const auto* d = std::get_if<double>(&v.data);
  if (d && std::abs(*d) <= 0x1p53 && *d == std::trunc(*d)) return static_cast<std::int64_t>(*d);
  return std::nullopt;
}

std::optional<double> as_number(const Value& v) {
  if (const auto* d = std::get_if<double>(&v.data)) return *d;
  if (const auto* i = std::get_if<std::int64_t>(&v.data)) return static_cast<double>(*i);
  return std::nullopt;
}

std::optional<std::string> as_text(const Value& v) {
  if (const auto* s = std::get_if<std::string>(&v.data)) return *s;
  const bool scalar = !std::holds_alternative<ValueList>(v.data) && !std::holds_alternative<ValueTable>(v.data);
  if (scalar && !v.written.empty()) return v.written;
  return std::nullopt;
}

bool is_no_toml(const Value& v) {
  const auto* const text = std::get_if<std::string>(&v.data);
  return text && *text == v.written && text->find_first_of("+-.0123456789[{") == 0;
}

namespace {

constexpr int kDeepest = 32;
constexpr std::size_t kLongestKey = 256;

/// Just behind the string that begins at `at`, or behind its line when it does not end there: toml++ goes no
/// further then.
std::size_t behind_string(const std::string& text, std::size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const auto escaped = [&] { return quote == '"' && text[at] == '\\'; };
  if (text.compare(at, 3, three) != 0) {
    for (++at; at < text.size() && text[at] != quote && text[at] != '\n'; ++at)
      if (escaped()) ++at;
    return at + 1;
  }
  for (at += 3; at < text.size() && text.compare(at, 3, three) != 0; ++at)
    if (escaped()) ++at;
  at += 3;
  for (int k = 0; k < 2 && at < text.size() && text[at] == quote; ++k) ++at;  // two more belong to its content
  return at;
}

struct TooDeep : UsageError {
  TooDeep(const std::string& where, const std::string& what) : UsageError(where + ": " + what), problem(what) {}
  std::string problem;
};

std::string place_of(const std::string& name, std::size_t line, std::size_t column) {
  return fmt::format("{}:{}:{}", name, line, column);
}

/// Throws TooDeep for what is nested too deep in TOML text. toml++ destroys nested tables by recursion and sets no
/// limit to the parts of a key, so this comes before it.
void refuse_too_deep(const std::string& text, const std::string& name) {
  int depth = 0, dots = 0;
  std::size_t line = 1, line_start = 0;
  const auto refuse = [&](const std::string& problem, std::size_t at) {
    throw TooDeep(place_of(name, line, at - line_start + 1), problem);
  };
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      const std::size_t end = std::min(behind_string(text, at), text.size());
      for (; at < end; ++at)
        if (text[at] == '\n') ++line, line_start = at + 1;
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    dots = c == '.' ? dots + 1 : std::string_view("[]{}=,\n").find(c) == std::string_view::npos ? dots : 0;
    depth += c == '[' || c == '{' ? 1 : (c == ']' || c == '}') && depth > 0 ? -1 : 0;
    if (dots >= kDeepest) refuse(fmt::format("a key of more than {} parts", kDeepest), at);
    if (depth > kDeepest) refuse(fmt::format("tables and lists are nested more than {} deep", kDeepest), at);
    ++at;
    if (c == '\n') ++line, line_start = at;
  }
}

void refuse_long_key(std::string_view key, const std::string& place) {
  if (key.size() > kLongestKey)
    throw UsageError(fmt::format("{}: a key of {} bytes: none is longer than {}", place, key.size(), kLongestKey));
}

Value convert(const toml::node& node, const std::string& name, int depth) {
  Value v;
  const auto& at = node.source().begin;
  v.where = place_of(name, at.line, at.column);
  v.order = static_cast<std::int64_t>(at.line) << 32 | at.column;
  if (depth > kDeepest)
    throw TooDeep(v.where, fmt::format("tables and lists are nested more than {} deep", kDeepest));
  node.visit([&](const auto& n) {
    if constexpr (toml::is_table<decltype(n)>) {
      auto& table = v.data.emplace<ValueTable>();
      for (const auto& [key, child] : n) {
        const auto& k = key.source().begin;
        refuse_long_key(key.str(), place_of(name, k.line, k.column));
        Value c = convert(child, name, depth + 1);
        if (!child.is_table() && k.line)  // a key's own place is more use than its value's
          c.where = place_of(name, k.line, k.column);
        table.emplace(std::string(key.str()), std::move(c));
      }
    } else if constexpr (toml::is_array<decltype(n)>) {
      auto& list = v.data.emplace<ValueList>();
      for (const auto& child : n) list.push_back(convert(child, name, depth + 1));
    } else if constexpr (toml::is_chronological<decltype(n)>) {
      throw UsageError(v.where + ": dates and times have no meaning in an input");
    } else {
      v.data = n.get();
    }
  });
  return v;
}

}  // namespace

Value parse_toml(const std::string& text, const std::string& name) {
  refuse_too_deep(text, name);
  try {
    return convert(toml::parse(text, name), name, 0);
  } catch (const toml::parse_error& e) {
    const auto& at = e.source().begin;
    throw UsageError(place_of(name, at.line, at.column) + ": " + shortened(std::string(e.description()), 400));
  }
}

namespace {

/// Every part of an override stands at the same place.
void place_all(Value& value, const std::string& place) {
  value.where = place;
  value.order = 0;
  if (auto* list = std::get_if<ValueList>(&value.data))
    for (auto& item : *list) place_all(item, place);
  if (auto* table = std::get_if<ValueTable>(&value.data))
    for (auto& [key, item] : *table) place_all(item, place);
}

/// The value of an override. What is no TOML is a string, but a list or table that is too deep is an error.
Value override_value(const std::string& text, const std::string& place) {
  Value value;
  value.data = text;
  try {
    Value parsed = parse_toml("v = " + text, place);
    auto& table = std::get<ValueTable>(parsed.data);
    if (table.size() == 1 && table.contains("v")) value = std::move(table["v"]);
  } catch (const TooDeep& e) {
    const auto first = text.find_first_not_of(" \t");
    if (first != std::string::npos && (text[first] == '[' || text[first] == '{'))
      throw UsageError(place + ": " + e.problem);
  } catch (const UsageError&) {
    // Digits beyond 64 bits are a number all the same: which range it is out of, the key says.
    const std::size_t sign = text.find_first_of("+-") == 0 ? 1 : 0;
    if (text.size() > sign && text.find_first_not_of("0123456789", sign) == std::string::npos && text[sign] != '0')
      value.data = std::strtod(text.c_str(), nullptr);
  }
  place_all(value, place);
  value.written = text;
  return value;
}

/// The parts of an override's key.
std::vector<std::string> key_parts(const std::string& path, const std::string& place) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from != std::string::npos;) {
    const auto dot = path.find('.', from);
    const std::string key = path.substr(from, dot == std::string::npos ? dot : dot - from);
    if (key.empty()) throw UsageError(place + ": the key has an empty part");
    refuse_long_key(key, place);
    parts.push_back(key);
    if (parts.size() > kDeepest) throw UsageError(fmt::format("{}: a key of more than {} parts", place, kDeepest));
    from = dot == std::string::npos ? dot : dot + 1;
  }
  return parts;
}

/// Removes the key from the tree; false when it is not there.
bool remove(Value& root, const std::vector<std::string>& parts) {
  Value* at = &root;
  for (std::size_t k = 0;; ++k) {
    auto* table = std::get_if<ValueTable>(&at->data);
    if (!table || !table->contains(parts[k])) return false;
    if (k + 1 == parts.size()) return table->erase(parts[k]) > 0;
    at = &(*table)[parts[k]];
  }
}

}  // namespace

std::optional<Removal> apply_override(Value& root, const std::string& assignment) {
  const std::string place = "command line: " + shortened(assignment);
  const auto equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UsageError("\"" + shortened(assignment) + "\" is no override: write key.path=value" +
                     (assignment.starts_with("-") ? ", and options before --" : ""));
  const auto first = assignment.find_first_not_of(" \t"), last = assignment.find_last_not_of(" \t", equals - 1);
  if (first >= equals) throw UsageError("\"" + shortened(assignment) + "\" is no override: write key.path=value");
  const std::string path = assignment.substr(first, last + 1 - first), text = assignment.substr(equals + 1);
  const auto parts = key_parts(path, place);
  if (text.empty()) return Removal{path, place, remove(root, parts)};
  Value value = override_value(text, place);
  Value* at = &root;
  std::string above;
  for (const auto& key : parts) {
    auto* table = std::get_if<ValueTable>(&at->data);
    if (!table)
      throw UsageError(place + ": \"" + above + "\" is no table: if it may be one, remove its value before (" +
                       shortened(above) + "=)");
    at = &(*table)[key];
    if (at->where.empty()) at->where = place;
    above += (above.empty() ? "" : ".") + key;
  }
  *at = std::move(value);
  return std::nullopt;
}

}  // namespace isohalo
