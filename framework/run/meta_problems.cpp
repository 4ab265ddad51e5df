/// What of a checkpoint's metadata contradicts itself.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "datatypes/error.hpp"
#include "framework/io/compare.hpp"
#include "framework/io/problems.hpp"
#include "framework/reduce/tiles.hpp"
#include "framework/run/solver.hpp"
#include "framework/run/value.hpp"
#include "framework/run/verify.hpp"

namespace isohalo {

namespace {

std::string list_text(const std::vector<std::int64_t>& list) {
  return fmt::format("[{}]", fmt::join(list, ", "));
}

/// The value that a run has written so. Nothing for any other text.
std::optional<Value> parsed(const std::string& text) {
  try {
    Value all = parse_toml("v = " + text, "");
    auto& table = std::get<ValueTable>(all.data);
    if (table.size() == 1) return std::move(table.begin()->second);
  } catch (const UsageError&) {
  }
  return std::nullopt;
}

/// The items of a list of so many. Empty for any other text.
ValueList items_of(const std::string& text, std::size_t count) {
  auto value = parsed(text);
  auto* const list = value ? std::get_if<ValueList>(&value->data) : nullptr;
  return list && list->size() == count ? std::move(*list) : ValueList{};
}

/// The same where all are numbers.
std::vector<double> numbers_of(const std::string& text, std::size_t count) {
  std::vector<double> numbers;
  for (const Value& item : items_of(text, count))
    if (const auto number = as_number(item)) numbers.push_back(*number);
  if (numbers.size() != count) numbers.clear();
  return numbers;
}

/// What a rule or one of its keys can be: a number, an expression, or of a rule a table of these.
bool is_rule_value(const std::string& name, const Value& value, bool nested) {
  if (!is_input_word(name)) return false;
  if (const auto number = as_number(value)) return std::isfinite(*number);
  if (const auto* text = std::get_if<std::string>(&value.data)) return !text->empty();
  const auto* table = std::get_if<ValueTable>(&value.data);
  return !nested && table && !table->empty() && std::all_of(table->begin(), table->end(), [](const auto& entry) {
    return is_rule_value(entry.first, entry.second, true);
  });
}

/// One rule, as a run writes it: its name, which may be that of a rule of one's own, or that with values.
bool is_rule(const Value& rule) {
  if (const auto* name = std::get_if<std::string>(&rule.data)) return is_input_word(*name);
  const auto* table = std::get_if<ValueTable>(&rule.data);
  return table && table->size() == 1 && is_rule_value(table->begin()->first, table->begin()->second, false);
}

template <int D>
std::vector<std::int64_t> tile_of() {
  const Index<D> tile = default_tile<D>();
  return {tile.begin(), tile.end()};
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
    that(m_.tree_version == kTreeVersion, fmt::format("/reduction: tree version {} is not known", m_.tree_version));
    that(m_.method == "tree" || m_.method == "exact",
         fmt::format("/reduction: method is \"{}\", neither \"tree\" nor \"exact\"", m_.method));
    that(m_.tile.size() == m_.shape.size(), "/reduction: the tile has another number of dimensions than the grid");
    that(std::all_of(m_.tile.begin(), m_.tile.end(),
                     [](std::int64_t n) { return n >= 1 && n <= 1 << 20 && (n & (n - 1)) == 0; }),
         fmt::format("/reduction: tile is {}, its extents should be powers of two", list_text(m_.tile)));
    const std::vector<std::int64_t> tiles[] = {tile_of<1>(), tile_of<2>(), tile_of<3>(), tile_of<4>()};
    const auto& tile = tiles[m_.shape.size() - 1];
    that(m_.tree_version != kTreeVersion || m_.tile == tile,
         fmt::format("/reduction: tile is {}, that of tree version {} is {}", list_text(m_.tile), kTreeVersion,
                     list_text(tile)));
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
    const ValueList rules = items_of(text, m_.shape.size());
    const bool good = !rules.empty() && std::all_of(rules.begin(), rules.end(), is_rule);
    that(good, fmt::format("/grid: {} {} is no list of {} rules", name, text, m_.shape.size()));
    for (std::size_t j = 0; good && j < rules.size(); ++j)
      that((as_text(rules[j]) == "periodic") == (m_.periodic[j] == 1),
           fmt::format("/grid: periodic {} is {}, {} says {}", j, m_.periodic[j], name, text));
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
