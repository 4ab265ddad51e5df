/// What stands in an input but is no key of it, and what was probably meant.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "datatypes/printable.hpp"
#include "framework/run/config.hpp"
#include "framework/run/words.hpp"

namespace isohalo {

namespace {

constexpr std::size_t kMostErrors = 100;

std::string table_of(const std::string& path) {
  const auto dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string name_of(const std::string& path) {
  return path.substr(path.rfind('.') + 1);  // npos + 1 is 0
}

}  // namespace

bool Config::is_key(const std::string& path) const {
  return std::any_of(declared_.begin(), declared_.end(), [&](const auto& d) { return d.path == path; });
}

bool Config::is_table(const std::string& path) const {
  return std::any_of(declared_.begin(), declared_.end(),
                     [&](const auto& d) { return d.path.starts_with(path + "."); });
}

bool Config::is_excused(const std::string& path, bool table) const {
  return std::any_of(excused_.begin(), excused_.end(), [&](const auto& e) {
    return (e.second || !table) && (e.first.empty() || path == e.first || path.starts_with(e.first + "."));
  });
}

std::vector<std::string> Config::tables() const {
  std::set<std::string> found;
  for (const auto& d : declared_)
    for (std::string t = table_of(d.path); !t.empty(); t = table_of(t)) found.insert(t);
  return {found.begin(), found.end()};
}

/// A key of the same table that is spelled alike, or the key of this name in a table of it, or else in any other.
/// What a table with kinds does not have may be a key of another kind of it: then it was meant for no other such
/// table, and for none within another.
std::string Config::nearest_key(const std::string& path) const {
  std::vector<std::string> names;
  const std::string table = table_of(path), name = name_of(path);
  for (const auto& d : declared_)
    if (table_of(d.path) == table) names.push_back(name_of(d.path));
  if (const std::string near = nearest_word(name, names); !near.empty())
    return table.empty() ? near : table + "." + near;
  if (name == "type" && is_key(table + ".kind")) return table + ".kind";
  std::string elsewhere;
  const bool kinds = is_key(table) || is_key(table + ".kind");  // one that is not there is declared as a key
  for (const auto& d : declared_) {
    if (name_of(d.path) != name) continue;
    if (!table.empty() && d.path.starts_with(table + ".")) return d.path;
    const std::string other = table_of(d.path);
    if (kinds && (is_key(other + ".kind") || other.find('.') != std::string::npos)) continue;
    if (elsewhere.empty()) elsewhere = d.path;
  }
  return elsewhere;
}

/// A table beside it that is spelled alike, or one that is as a whole, or one of this or such a name elsewhere. A
/// key of a table that there is was not meant to be another table.
std::string Config::nearest_table(const std::string& path, bool key) const {
  const auto known = tables();
  const std::string table = table_of(path), name = name_of(path);
  std::vector<std::string> beside, names;
  for (const auto& t : known) {
    if (table_of(t) == table) beside.push_back(t);
    names.push_back(name_of(t));
  }
  const std::string within = table.empty() ? "" : table + ".";
  for (auto& t : beside) t = t.substr(within.size());
  if (const std::string near = nearest_word(name, beside); !near.empty()) return within + near;
  if (key && is_table(table)) return "";
  std::vector<std::string> others;  // a table that it stands in already only if it has kinds
  for (const auto& t : known)
    if (!path.starts_with(t + ".") || is_key(t + ".kind")) others.push_back(t);
  if (std::string near = nearest_word(path, others); !near.empty()) return near;
  const auto found = std::find(names.begin(), names.end(), nearest_word(name, names));
  return found == names.end() ? "" : known[static_cast<std::size_t>(found - names.begin())];
}

/// The message, and a note of what was meant.
std::string Config::unknown(const std::string& path, bool table) {
  if (errors_.size() > kMostErrors) return "unknown key " + shortened(path);  // is not shown anyway
  std::string near = table ? nearest_table(path, false) : nearest_key(path);
  if (near.empty()) near = table ? nearest_key(path) : nearest_table(path, true);
  if (!near.empty()) meant_.push_back(near);
  std::string text = fmt::format("unknown {} {}", table ? "table" : "key", shortened(path));
  // That it may be a key of another kind is no use to say of what looks like a misspelling.
  const std::string kind_path = table_of(path) + ".kind";
  const Value* kind = near.empty() && is_key(kind_path) ? find(kind_path) : nullptr;
  if (const auto word = kind ? as_text(*kind) : std::nullopt)
    text += fmt::format(" for {}.kind = {}", table_of(path), shortened(canonical(*word)));
  if (!near.empty()) return text + did_you_mean(near);
  if (!table) return text + ": --help-input lists the keys of this input";
  std::string names;
  for (const auto& t : tables())
    if (t.find('.') == std::string::npos) names += (names.empty() ? "" : ", ") + t;
  return text + ": this input has the tables " + names;
}

/// The same of what was to be removed and was not there: a key, a table, or something in an unknown table.
std::string Config::unknown_removal(const std::string& path) {
  for (auto dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
    if (const std::string table = path.substr(0, dot); is_key(table))
      break;
    else if (!is_table(table))
      return unknown(table, true);
  return unknown(path, nearest_key(path).empty() && !nearest_table(path, true).empty());
}

/// With the table's name in the input, where the canonical text has another.
std::string Config::as_written(const std::string& path) const {
  for (const auto& [other, own] : other_names_)
    if (path == other || path.starts_with(other + ".")) return own + path.substr(other.size());
  return path;
}

/// Does it look like the required key of its table that is missing? Then nothing excuses it.
bool Config::is_misspelt_required(const std::string& path) const {
  const std::string near = nearest_key(path);
  return table_of(near) == table_of(path) &&
         std::any_of(errors_.begin(), errors_.end(), [&](const Problem& p) { return p.missing == near; });
}

void Config::find_unknown(const Value& table, const std::string& prefix) {
  for (const auto& [key, child] : std::get<ValueTable>(table.data)) {
    const std::string path = prefix.empty() ? key : prefix + "." + key;
    const bool nested = std::holds_alternative<ValueTable>(child.data);
    if (nested && is_table(path)) {
      find_unknown(child, path);
      continue;
    }
    if (!nested && !is_key(path) && is_table(path)) {
      type_error(path, child, "a table");
      meant_.push_back(path);  // then no key of it is missing
      continue;
    }
    if (is_excused(path, nested) && (nested || !is_misspelt_required(path))) continue;
    if (key.find('.') != std::string::npos) {
      error_at(child, fmt::format("unknown key \"{}\": a quoted name with a dot is one key; leave the quotes out",
                                  shortened(key)));
      continue;
    }
    if (!is_key(path)) error_at(child, unknown(path, nested));
  }
}

void Config::finish() {
  find_unknown(root_, "");
  // Removing a key that is not there is well, but not one that there could not be.
  for (const auto& r : removals_) {
    const std::string path = as_written(r.path);
    if (!r.was_there && !is_key(path) && !is_table(path) && !is_excused(path, false))
      errors_.push_back({0, r.where + ": " + unknown_removal(path)});
  }
  // A misspelt required key is one error, not two.
  std::erase_if(errors_, [this](const Problem& p) {
    return !p.missing.empty() && std::any_of(meant_.begin(), meant_.end(), [&](const auto& m) {
      return p.missing == m || p.missing.starts_with(m + ".");
    });
  });
  if (errors_.empty()) return;
  std::stable_sort(errors_.begin(), errors_.end(),
                   [](const Problem& a, const Problem& b) { return a.order < b.order; });
  std::vector<std::string> lines;
  for (const auto& e : errors_) {
    if (std::find(lines.begin(), lines.end(), e.text) != lines.end()) continue;
    const bool full = lines.size() == kMostErrors;
    lines.push_back(full ? fmt::format("{}: more errors are not shown; there are {} in all", name_, errors_.size())
                         : e.text);
    if (full) break;
  }
  throw ErrorList(lines);
}

}  // namespace isohalo
