#include "framework/run/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "datatypes/error.hpp"
#include "framework/run/words.hpp"

namespace isohalo {

Config::Config(const std::string& text, const std::string& name, const std::vector<std::string>& overrides)
    : name_(name), root_(parse_toml(text, name)) {
  for (const auto& o : overrides)
    if (const auto removal = apply_override(root_, o)) removals_.push_back(*removal);
}

const Value* Config::find(const std::string& path) const {
  if (const auto settled = settled_.find(path); settled != settled_.end()) return &settled->second;
  const Value* at = &root_;
  std::size_t from = 0;
  while (at) {
    const auto* table = std::get_if<ValueTable>(&at->data);
    if (!table) return nullptr;
    const auto dot = path.find('.', from);
    const auto child = table->find(path.substr(from, dot == std::string::npos ? dot : dot - from));
    at = child == table->end() ? nullptr : &child->second;
    if (dot == std::string::npos) break;
    from = dot + 1;
  }
  return at;
}

std::size_t Config::list_length(const std::string& path) const {
  const Value* v = find(path);
  const auto* items = v ? std::get_if<ValueList>(&v->data) : nullptr;
  return items ? items->size() : 0;
}

void Config::settle(const std::string& path, const std::vector<std::int64_t>& list) {
  const Value* v = find(path);
  Value now{ValueList(list.size()), v ? v->where : name_, v ? v->order : 0};
  for (std::size_t k = 0; k < list.size(); ++k) std::get<ValueList>(now.data)[k].data = list[k];
  settled_[path] = std::move(now);
}

bool Config::has_table(const std::string& path) const {
  const Value* const v = find(path);
  return v && std::holds_alternative<ValueTable>(v->data);
}

void Config::declare(KeyHelp help) {
  for (const auto& d : declared_)
    if (d.path == help.path) return;
  declared_.push_back(std::move(help));
}

void Config::set_effective(const std::string& path, const std::string& canonical_text) {
  effective_[path] = canonical_text;
  for (auto& d : declared_)
    if (d.path == path && !settled_.contains(path)) d.value = canonical_text;
}

void Config::drop_effective(const std::string& path) {
  effective_.erase(path);
  for (auto& d : declared_)
    if (d.path == path) d.value.clear();
}

void Config::rename_effective(const std::string& from, const std::string& to) {
  std::map<std::string, std::string> renamed;
  for (auto& [path, text] : std::exchange(effective_, {}))
    renamed[path.substr(0, path.rfind('.')) == from ? to + path.substr(from.size()) : path] = std::move(text);
  effective_ = std::move(renamed);
  other_names_[to] = from;
}

void Config::error_at(const Value& value, const std::string& text) {
  errors_.push_back({value.order, value.where + ": " + text});
}

void Config::error(const std::string& path, const std::string& text) {
  if (const Value* v = find(path))
    error_at(*v, text);
  else
    errors_.push_back({0, name_ + ": " + text});
}

void Config::type_error(const std::string& path, const Value& v, const std::string& expected) {
  const std::string word = " or \"auto\"";
  const bool or_auto = std::any_of(declared_.begin(), declared_.end(),
                                   [&](const auto& d) { return d.path == path && d.type.ends_with(word); });
  error_at(
      v, fmt::format("{} is {} {}, expected {}{}{}", path, v.type_name()[0] == 'i' ? "an" : "a", v.type_name(),
                     expected, or_auto ? word : "",
                     is_no_toml(v) ? " (what is no TOML is a string: write 0.5 for .5, 5.0 for 5., [8, 8])" : ""));
}

std::string Config::canonical(std::int64_t v) {
  return fmt::format("{}", v);
}
std::string Config::canonical(double v) {
  return fmt::format("{:.17g}", v);
}
std::string Config::canonical(const std::string& v) {
  std::string s = "\"";
  for (char c : v) {
    if (c == '"' || c == '\\') s += '\\';
    s += static_cast<unsigned char>(c) < 0x20 ? fmt::format("\\u{:04x}", static_cast<unsigned>(c))
                                              : std::string(1, c);
  }
  return s + "\"";
}

namespace {

/// As a person writes it; 2^53, up to which a number is exact, is said as a power.
std::string readable(std::int64_t v) {
  return v == std::int64_t{1} << 53 ? "2^53" : fmt::format("{}", v);
}
std::string readable(double v) {
  return fmt::format("{:g}", v);
}

template <class T, class Key>
std::string range_text(const Key& key) {
  const bool low = key.min != std::numeric_limits<T>::lowest(), high = key.max != std::numeric_limits<T>::max();
  const std::string min = readable(key.min), max = readable(key.max);
  if (low && high) return key.above_min ? "above " + min + ", up to " + max : min + " .. " + max;
  if (low || high) return high ? "<= " + max : (key.above_min ? "> " : ">= ") + min;
  return std::is_same_v<T, double> ? "finite" : "";
}

}  // namespace

/// The number that `v` is, the key's value or an entry of its list; nothing after an error.
template <class T, class Key>
std::optional<T> Config::number_in(const Value& v, const std::string& path, const Key& key, bool entry) {
  const std::string name = entry ? path + " entry" : path;
  std::optional<T> x;
  if constexpr (std::is_same_v<T, double>)
    x = as_number(v);
  else
    x = as_integer(v);
  const auto* d = std::get_if<double>(&v.data);
  if (x && *x <= key.max && (key.above_min ? *x > key.min : *x >= key.min)) return x;
  const auto out_of_range = [&](const std::string& number, const std::string& range) {
    error_at(v,
             path + (entry ? " has an entry " : " = ") + number + (entry ? "" : " is") + " out of range: " + range);
  };
  if (x)
    out_of_range(readable(*x), range_text<T>(key));
  else if (!d || !std::isfinite(*d))
    type_error(name, v, std::is_same_v<T, double> ? "a number" : "an integer");
  else if (*d != std::trunc(*d))
    error_at(v, fmt::format("{} = {:.17g} is no integer", name, *d));
  else if (*d < -0x1p63 || *d >= 0x1p63 || *d < static_cast<double>(key.min) || *d > static_cast<double>(key.max))
    out_of_range(readable(*d), range_text<T>(key).empty()
                                   ? fmt::format("an integer has 64 bits with its sign: {} .. {}", key.min, key.max)
                                   : range_text<T>(key));
  else
    error_at(v,
             fmt::format("{} = {:g} is beyond 2^53, up to which a number is exact: write all digits of the integer",
                         name, *d));
  return std::nullopt;
}

/// What all keys have in common. `read` makes a value of what is there, or records an error and returns nothing.
template <class T, class Read>
T Config::value(KeyHelp help, const std::optional<T>& fallback, const T& valid, const Read& read) {
  const std::string path = help.path, note = help.type == "string" && !help.range.empty() ? help.range : help.help;
  if (!fallback) help.fallback = "required";
  declare(std::move(help));
  const std::size_t before = errors_.size();
  T value = fallback.value_or(valid);
  if (const Value* v = find(path))
    value = read(*v).value_or(value);
  else if (!fallback)
    errors_.push_back({0, fmt::format("{}: required key {} is missing ({})", name_, path, note), path});
  if (errors_.size() == before) set_effective(path, canonical(value));
  return value;
}

template <class T>
T Config::scalar(const std::string& path, const char* type, const NumericKey<T>& key) {
  return value<T>({path, type, range_text<T>(key), readable(key.fallback.value_or(0)), key.unit, key.help},
                  key.fallback, std::clamp<T>(1, key.min, key.max),
                  [&](const Value& v) { return number_in<T>(v, path, key, false); });
}

std::int64_t Config::integer(const std::string& path, const NumericKey<std::int64_t>& key) {
  return scalar(path, "integer", key);
}

double Config::number(const std::string& path, const NumericKey<double>& key) {
  return scalar(path, "number", key);
}

bool Config::boolean(const std::string& path, bool fallback, const std::string& help) {
  const auto read = [&](const Value& v) {
    const auto* b = std::get_if<bool>(&v.data);
    if (!b) type_error(path, v, "true or false");
    return b ? std::optional(*b) : std::nullopt;
  };
  return value<bool>({path, "boolean", "", canonical(fallback), "", help}, fallback, fallback, read);
}

std::string Config::text(const std::string& path, const TextKey& key) {
  std::string choices;
  for (const auto& c : key.choices) choices += (choices.empty() ? "" : " | ") + canonical(c);
  const auto read = [&](const Value& v) {
    auto s = as_text(v);
    if (!s) {
      type_error(path, v, "a string");
    } else if (s->find('\0') != std::string::npos) {
      error_at(v, fmt::format("{} = {} has a character of code 0: leave it out", path, shortened(canonical(*s))));
      s.reset();
    } else if (!key.choices.empty() && std::find(key.choices.begin(), key.choices.end(), *s) == key.choices.end()) {
      error_at(v, fmt::format("{} = {} is not one of {}{}", path, shortened(canonical(*s)), choices,
                              did_you_mean(nearest_word(*s, key.choices))));
      s.reset();
    }
    return s;
  };
  return value<std::string>({path, "string", choices, canonical(key.fallback.value_or("")), "", key.help},
                            key.fallback, key.choices.empty() ? "" : key.choices.front(), read);
}

template <class T>
std::vector<T> Config::list(const std::string& path, const ListKey<T>& key, const char* what) {
  const std::string expected =
      key.length ? fmt::format("a list of {} {}", key.length, what) : fmt::format("a list of {}", what);
  const auto read = [&](const Value& v) -> std::optional<std::vector<T>> {
    const auto* items = std::get_if<ValueList>(&v.data);
    if (!items) {
      type_error(path, v, expected);
      return std::nullopt;
    }
    if (items->empty() || (key.length && items->size() != key.length)) {
      error_at(v, fmt::format("{} has {} entries, expected {}", path, items->size(), expected));
      return std::nullopt;
    }
    std::vector<T> got;
    for (const Value& item : *items)
      if (const auto x = number_in<T>(item, path, key, true)) got.push_back(*x);
    return got.size() == items->size() ? std::optional(got) : std::nullopt;
  };
  const std::vector<T> fallback = key.fallback.value_or(std::vector<T>{});
  const T filler = fallback.empty() ? std::clamp<T>(1, key.min, key.max) : fallback.front();
  return value<std::vector<T>>(
      {path, fmt::format("list of {}", what), range_text<T>(key), canonical(fallback), key.unit, key.help},
      key.fallback, std::vector<T>(std::max<std::size_t>(key.length, 1), filler), read);
}

std::vector<std::int64_t> Config::integers(const std::string& path, const ListKey<std::int64_t>& key) {
  return list(path, key, "integers");
}

std::vector<double> Config::numbers(const std::string& path, const ListKey<double>& key) {
  return list(path, key, "numbers");
}

const Value* Config::node(const std::string& path, const KeyHelp& help) {
  KeyHelp h = help;
  h.path = path;
  declare(std::move(h));
  return find(path);
}

bool Config::is_auto(const std::string& path, const KeyHelp& help) {
  const Value* v = node(path, help);
  const auto* s = v ? std::get_if<std::string>(&v->data) : nullptr;
  if (v && !(s && *s == "auto")) return false;
  set_effective(path, canonical(std::string("auto")));
  return true;
}

}  // namespace isohalo
