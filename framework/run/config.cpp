#include "framework/run/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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
  auto entry = effective_.extract(from);
  if (entry.empty()) return;
  entry.key() = to;
  effective_.erase(to);
  effective_.insert(std::move(entry));
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
  error_at(v, fmt::format("{} is {} {}, expected {}{}", path, v.type_name()[0] == 'i' ? "an" : "a", v.type_name(),
                          expected, or_auto ? word : ""));
}

void Config::not_integer(const std::string& path, const Value& v) {
  const auto* d = std::get_if<double>(&v.data);
  if (!d || !std::isfinite(*d))
    type_error(path, v, "an integer");
  else if (*d == std::trunc(*d))
    error_at(v,
             fmt::format("{} = {:g} is beyond 2^53, up to which a number is exact: write all digits of the integer",
                         path, *d));
  else
    error_at(v, fmt::format("{} = {:.17g} is no integer", path, *d));
}

void Config::missing(const std::string& path, const std::string& help) {
  errors_.push_back({0, fmt::format("{}: required key {} is missing ({})", name_, path, help), path});
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
    if (static_cast<unsigned char>(c) < 0x20)
      s += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      s += c;
  }
  return s + "\"";
}

namespace {

/// 2^53, up to which a number is exact, is said as a power.
std::string bound_text(std::int64_t bound) {
  return bound == std::int64_t{1} << 53 ? "2^53" : fmt::format("{}", bound);
}

std::string range_text(const IntegerKey& k) {
  const bool low = k.min != std::numeric_limits<std::int64_t>::min();
  const bool high = k.max != std::numeric_limits<std::int64_t>::max();
  if (low && high) return bound_text(k.min) + " .. " + bound_text(k.max);
  return low ? ">= " + bound_text(k.min) : high ? "<= " + bound_text(k.max) : "";
}

std::string range_text(double min, double max, bool above_min) {
  const double most = std::numeric_limits<double>::max();
  if (min == -most && max == most) return "finite";
  if (max == most) return fmt::format("{} {:g}", above_min ? ">" : ">=", min);
  return above_min ? fmt::format("above {:g}, up to {:g}", min, max) : fmt::format("{:g} .. {:g}", min, max);
}

bool in_range(double v, double min, double max, bool above_min) {
  return std::isfinite(v) && v <= max && (above_min ? v > min : v >= min);
}

}  // namespace

std::int64_t Config::integer(const std::string& path, const IntegerKey& key) {
  declare(
      {path, "integer", range_text(key), key.fallback ? canonical(*key.fallback) : "required", key.unit, key.help});
  const std::size_t before = errors_.size();
  std::int64_t value = key.fallback.value_or(std::clamp<std::int64_t>(1, key.min, key.max));
  if (const Value* v = find(path)) {
    const auto i = as_integer(*v);
    if (!i)
      not_integer(path, *v);
    else if (*i < key.min || *i > key.max)
      error_at(*v, fmt::format("{} = {} is out of range: {}", path, *i, range_text(key)));
    else
      value = *i;
  } else if (!key.fallback) {
    missing(path, key.help);
  }
  if (errors_.size() == before) set_effective(path, canonical(value));
  return value;
}

double Config::number(const std::string& path, const NumberKey& key) {
  const std::string range = range_text(key.min, key.max, key.above_min);
  declare(
      {path, "number", range, key.fallback ? fmt::format("{:g}", *key.fallback) : "required", key.unit, key.help});
  const std::size_t before = errors_.size();
  double value = key.fallback.value_or(std::clamp(1.0, key.min, key.max));
  if (const Value* v = find(path)) {
    const auto d = as_number(*v);
    if (!d)
      type_error(path, *v, "a number");
    else if (!in_range(*d, key.min, key.max, key.above_min))
      error_at(*v, fmt::format("{} = {:g} is out of range: {}", path, *d, range));
    else
      value = *d;
  } else if (!key.fallback) {
    missing(path, key.help);
  }
  if (errors_.size() == before) set_effective(path, canonical(value));
  return value;
}

bool Config::boolean(const std::string& path, bool fallback, const std::string& help) {
  declare({path, "boolean", "", fallback ? "true" : "false", "", help});
  const std::size_t before = errors_.size();
  bool value = fallback;
  if (const Value* v = find(path)) {
    if (const auto* b = std::get_if<bool>(&v->data))
      value = *b;
    else
      type_error(path, *v, "true or false");
  }
  if (errors_.size() == before) set_effective(path, value ? "true" : "false");
  return value;
}

std::string Config::text(const std::string& path, const TextKey& key) {
  std::string choices;
  for (const auto& c : key.choices) choices += (choices.empty() ? "" : " | ") + canonical(c);
  declare({path, "string", choices, key.fallback ? canonical(*key.fallback) : "required", "", key.help});
  const std::size_t before = errors_.size();
  std::string value = key.fallback.value_or(key.choices.empty() ? "" : key.choices.front());
  if (const Value* v = find(path)) {
    const auto s = as_text(*v);
    if (!s)
      type_error(path, *v, "a string");
    else if (!key.choices.empty() && std::find(key.choices.begin(), key.choices.end(), *s) == key.choices.end())
      error_at(*v, fmt::format("{} = {} is not one of {}{}", path, shortened(canonical(*s)), choices,
                               did_you_mean(nearest_word(*s, key.choices))));
    else
      value = *s;
  } else if (!key.fallback) {
    missing(path, choices.empty() ? key.help : choices);
  }
  if (errors_.size() == before) set_effective(path, canonical(value));
  return value;
}

template <class T>
std::vector<T> Config::list(const std::string& path, const ListKey<T>& key, const char* what) {
  std::string range;
  if constexpr (std::is_same_v<T, double>)
    range = range_text(key.min, key.max, key.above_min);
  else
    range = range_text(IntegerKey{{}, key.min, key.max, {}, {}});
  const std::string expected =
      key.length ? fmt::format("a list of {} {}", key.length, what) : fmt::format("a list of {}", what);
  declare({path, fmt::format("list of {}", what), range, key.fallback ? canonical(*key.fallback) : "required",
           key.unit, key.help});
  const T filler =
      key.fallback && !key.fallback->empty() ? key.fallback->front() : std::clamp<T>(1, key.min, key.max);
  std::vector<T> value = key.fallback.value_or(std::vector<T>(std::max<std::size_t>(key.length, 1), filler));
  const std::size_t before = errors_.size();
  const auto done = [&] {
    if (errors_.size() == before) set_effective(path, canonical(value));
    return value;
  };
  const Value* v = find(path);
  if (!v) {
    if (!key.fallback) missing(path, key.help);
    return done();
  }
  const auto* items = std::get_if<ValueList>(&v->data);
  if (!items) {
    type_error(path, *v, expected);
    return done();
  }
  if (items->empty() || (key.length && items->size() != key.length)) {
    error_at(*v, fmt::format("{} has {} entries, expected {}", path, items->size(), expected));
    return done();
  }
  std::vector<T> got;
  for (const Value& item : *items) {
    std::optional<T> x;
    if constexpr (std::is_same_v<T, double>) {
      x = as_number(item);
    } else {
      x = as_integer(item);
    }
    bool good = x.has_value();
    if (!good && std::is_same_v<T, double>) {
      type_error(path + " entry", item, "a number");
    } else if (!good) {
      not_integer(path + " entry", item);
    } else {
      if constexpr (std::is_same_v<T, double>)
        good = in_range(*x, key.min, key.max, key.above_min);
      else
        good = *x >= key.min && *x <= key.max;
      if (!good) error_at(item, fmt::format("{} has an entry {} out of range: {}", path, *x, range));
    }
    if (good) got.push_back(*x);
  }
  if (got.size() == items->size()) value = got;
  return done();
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
