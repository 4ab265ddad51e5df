/// What of a checkpoint's metadata contradicts itself.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "framework/io/compare.hpp"
#include "framework/io/problems.hpp"
#include "framework/io/verify.hpp"

namespace isohalo {

namespace {

std::string list_text(const std::vector<std::int64_t>& list) {
  return fmt::format("[{}]", fmt::join(list, ", "));
}

/// The number that the whole text is.
std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [next, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || next != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Is it the text of a rule's or key's name?
bool is_name(std::string_view text) {
  return !text.empty() && text[0] >= 'a' && text[0] <= 'z' && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// A word or an expression in quotes, which holds none itself.
bool is_quoted(std::string_view text) {
  return text.size() > 2 && text.front() == '"' && text.back() == '"' &&
         text.substr(1, text.size() - 2).find('"') == std::string_view::npos;
}

/// The items of "begin 1, {2.5, 3}, \"a, b\" end". Empty for any other text.
std::vector<std::string_view> items_between(char begin, char end, std::string_view text) {
  if (text.size() < 2 || text.front() != begin || text.back() != end) return {};
  text = text.substr(1, text.size() - 2);
  std::vector<std::string_view> items;
  int depth = 0;
  bool quoted = false;
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') quoted = !quoted;
    if (quoted) continue;
    depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
    if (depth != 0 || text.substr(at, 2) != ", ") continue;
    items.push_back(text.substr(start, at - start));
    start = at + 2;
  }
  items.push_back(text.substr(start));
  return items;
}

/// NAME = VALUE, as a run writes it: a number, an expression, or a table of numbers with an expression.
bool is_entry(std::string_view text, bool nested) {
  const std::size_t equals = text.find(" = ");
  if (equals == std::string_view::npos || !is_name(text.substr(0, equals))) return false;
  const std::string_view value = text.substr(equals + 3);
  if (const auto number = number_of(value)) return std::isfinite(*number);
  if (is_quoted(value)) return true;
  const auto parts = items_between('{', '}', value);
  return !nested && !parts.empty() &&
         std::all_of(parts.begin(), parts.end(), [](std::string_view part) { return is_entry(part, true); });
}

/// One rule, as a run writes it. Its name may be that of a rule of one's own.
bool is_rule(std::string_view text) {
  if (is_quoted(text)) return is_name(text.substr(1, text.size() - 2));
  const auto entries = items_between('{', '}', text);
  return entries.size() == 1 && is_entry(entries[0], false);
}

/// The items of a canonical list "[1, 2.5]" or of rules. Empty for any other text, and for another number of items.
std::vector<std::string> items_of(const std::string& text, std::size_t count) {
  const auto items = items_between('[', ']', text);
  return items.size() == count ? std::vector<std::string>(items.begin(), items.end()) : std::vector<std::string>{};
}

/// The same where all items are numbers, and where all are rules.
std::vector<double> numbers_of(const std::string& text, std::size_t count) {
  std::vector<double> numbers;
  for (const auto& item : items_of(text, count))
    if (const auto number = number_of(item)) numbers.push_back(*number);
  if (numbers.size() != count) numbers.clear();
  return numbers;
}
std::vector<std::string> rules_of(const std::string& text, std::size_t count) {
  auto rules = items_of(text, count);
  if (!std::all_of(rules.begin(), rules.end(), is_rule)) rules.clear();
  return rules;
}

class MetaCheck : detail::Problems {
 public:
  explicit MetaCheck(const CheckpointMeta& meta) : m_(meta), config_(config_lines(meta.config)) {}

  std::vector<std::string> run() {
    time();
    reduction();
    grid();
    boundary();
    configuration();
    return std::move(lines);
  }

 private:
  /// A line of the configuration, where there is one.
  const std::string* configured(const std::string& key) const {
    const auto found = config_.find(key);
    return found == config_.end() ? nullptr : &found->second;
  }

  void time() {
    number("/time: time", m_.time, static_cast<double>(m_.step) * m_.dt);
    that(m_.step >= 0, fmt::format("/time: step is {}", m_.step));
    that(std::isfinite(m_.dt) && m_.dt >= 0, fmt::format("/time: dt is {:.17g}, it should be 0 or more", m_.dt));
    that(m_.random_counter >= 0, fmt::format("/time: random_counter is {}", m_.random_counter));
  }

  void reduction() {
    double cells = 1;
    for (std::int64_t n : m_.shape) cells *= static_cast<double>(n);
    that(m_.residual_step == m_.step,
         fmt::format("/reduction: residual_step is {}, the file's step is {}", m_.residual_step, m_.step));
    // Only squares that overflow make it infinite, and only before the first step there is none.
    that(m_.change_sum >= 0 || (m_.step == 0 && m_.change_sum != m_.change_sum),
         fmt::format("/reduction: change_sum is {:.17g}, it is a sum of squares", m_.change_sum));
    if (!(m_.change_sum < 0)) number("/reduction: residual", m_.residual, std::sqrt(m_.change_sum / cells));
    that(m_.tree_version == 1, fmt::format("/reduction: tree version {} is not known", m_.tree_version));
    that(m_.method == "tree" || m_.method == "exact",
         fmt::format("/reduction: method is \"{}\", neither \"tree\" nor \"exact\"", m_.method));
    that(m_.tile.size() == m_.shape.size(), "/reduction: the tile has another number of dimensions than the grid");
    that(std::all_of(m_.tile.begin(), m_.tile.end(),
                     [](std::int64_t n) { return n >= 1 && n <= 1 << 20 && (n & (n - 1)) == 0; }),
         fmt::format("/reduction: tile is {}, its extents should be powers of two", list_text(m_.tile)));
  }

  void grid() {
    for (std::size_t j = 0; j < m_.shape.size(); ++j) {
      that(std::isfinite(m_.origin[j]), fmt::format("/grid: origin {} is {:.17g}", j, m_.origin[j]));
      that(std::isfinite(m_.spacing[j]) && m_.spacing[j] > 0,
           fmt::format("/grid: spacing {} is {:.17g}, it should be positive", j, m_.spacing[j]));
    }
    const auto list = [&](const char* key) {
      const std::string* const text = configured(key);
      if (!text) return std::vector<double>{};
      auto numbers = numbers_of(*text, m_.shape.size());
      that(!numbers.empty(), fmt::format("/config: {} = {} is no list of {} numbers", key, *text, m_.shape.size()));
      return numbers;
    };
    const auto length = list("domain.length"), origin = list("domain.origin");
    for (std::size_t j = 0; j < length.size(); ++j)
      number(fmt::format("/grid: spacing {}", j), m_.spacing[j], length[j] / static_cast<double>(m_.shape[j]));
    for (std::size_t j = 0; j < origin.size(); ++j)
      number(fmt::format("/grid: origin {}", j), m_.origin[j], origin[j]);
  }

  void boundary() {
    for (std::size_t j = 0; j < m_.shape.size(); ++j)
      that(m_.periodic[j] == 0 || m_.periodic[j] == 1, fmt::format("/grid: periodic {} is {}", j, m_.periodic[j]));
    side("boundary_low", m_.boundary_low);
    side("boundary_high", m_.boundary_high);
  }

  void side(const char* name, const std::string& text) {
    const auto rules = rules_of(text, m_.shape.size());
    that(!rules.empty(), fmt::format("/grid: {} {} is no list of {} rules", name, text, m_.shape.size()));
    for (std::size_t j = 0; j < rules.size(); ++j)
      that((rules[j] == "\"periodic\"") == (m_.periodic[j] == 1),
           fmt::format("/grid: periodic {} is {}, {} says {}", j, m_.periodic[j], name, rules[j]));
  }

  void listed(const std::string& key, const std::string& expected, const char* place) {
    if (const std::string* const text = configured(key))
      that(*text == expected, fmt::format("/config: {} is {}, {} says {}", key, *text, place, expected));
  }

  void configuration() {
    listed("domain.shape", list_text(m_.shape), "/grid");
    listed("domain.boundary.low", m_.boundary_low, "/grid");
    listed("domain.boundary.high", m_.boundary_high, "/grid");
    listed("solver.dt", fmt::format("{:.17g}", m_.dt), "/time");
    bool initial = false, seeds = false, known = false;
    for (const auto& [key, value] : config_) {
      that(!key.empty() && !value.empty(), fmt::format("/config: \"{}\" is no line KEY = VALUE", key));
      if (!key.starts_with("initial.")) continue;
      initial = true;
      if (!key.ends_with(".seed")) continue;
      seeds = true;
      known = known || value == std::to_string(m_.random_seed);
    }
    that(!initial || (seeds ? known : m_.random_seed == 0),
         fmt::format("/time: random_seed is {}, which /config does not have", m_.random_seed));
  }

  const CheckpointMeta& m_;
  const std::map<std::string, std::string> config_;
};

}  // namespace

std::vector<std::string> meta_problems(const CheckpointMeta& meta) {
  return MetaCheck(meta).run();
}

}  // namespace isohalo
