/// What of a checkpoint's metadata contradicts itself.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "framework/io/compare.hpp"
#include "framework/io/verify.hpp"

namespace isohalo {

namespace {

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

std::string list_text(const std::vector<std::int64_t>& list) {
  return fmt::format("[{}]", fmt::join(list, ", "));
}

/// The numbers of a canonical list "[1, 2.5]"; nothing for any other text.
std::optional<std::vector<double>> numbers_of(const std::string& text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  std::vector<double> numbers;
  const char *at = text.data() + 1, *const end = text.data() + text.size() - 1;
  while (at < end) {
    double value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc{}) return std::nullopt;
    numbers.push_back(value);
    if (next != end && (end - next < 2 || next[0] != ',' || next[1] != ' ')) return std::nullopt;
    at = next == end ? end : next + 2;
  }
  return numbers;
}

/// One rule, as a run writes it.
bool is_rule(const std::string& text) {
  if (text == "\"periodic\"" || text == "\"neumann\"") return true;
  for (const std::string begin : {"{dirichlet = ", "{fixed = "}) {
    if (text.rfind(begin, 0) != 0 || text.back() != '}') continue;
    double value = 0;
    const char *const from = text.data() + begin.size(), *const to = text.data() + text.size() - 1;
    const auto [next, error] = std::from_chars(from, to, value);
    return error == std::errc{} && next == to && std::isfinite(value);
  }
  return false;
}

/// The rules of a side, one per dimension; nothing when it is no such list. No rule holds a comma.
std::optional<std::vector<std::string>> rules_of(const std::string& text, std::size_t dimensions) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  std::vector<std::string> rules;
  for (std::size_t at = 1; at < text.size();) {
    const std::size_t end = std::min(text.find(", ", at), text.size() - 1);
    rules.push_back(text.substr(at, end - at));
    if (!is_rule(rules.back())) return std::nullopt;
    at = end + 2;
  }
  if (rules.size() != dimensions) return std::nullopt;
  return rules;
}

class MetaCheck {
 public:
  explicit MetaCheck(const CheckpointMeta& meta) : m_(meta), config_(config_lines(meta.config)) {}

  std::vector<std::string> run() {
    time();
    reduction();
    grid();
    boundary();
    configuration();
    return std::move(problems_);
  }

 private:
  void that(bool good, const std::string& problem) {
    if (!good) problems_.push_back(problem);
  }
  void number(const std::string& what, double stored, double expected) {
    that(same_bits(stored, expected), fmt::format("{} is {:.17g}, it should be {:.17g}", what, stored, expected));
  }
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
    that(!(m_.change_sum < 0),
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
      const auto numbers = numbers_of(*text);
      that(numbers && numbers->size() == m_.shape.size(),
           fmt::format("/config: {} = {} is no list of {} numbers", key, *text, m_.shape.size()));
      return numbers && numbers->size() == m_.shape.size() ? *numbers : std::vector<double>{};
    };
    const auto length = list("domain.length"), origin = list("domain.origin");
    for (std::size_t j = 0; j < length.size(); ++j)
      number(fmt::format("/grid: spacing {}", j), m_.spacing[j], length[j] / static_cast<double>(m_.shape[j]));
    for (std::size_t j = 0; j < origin.size(); ++j)
      number(fmt::format("/grid: origin {}", j), m_.origin[j], origin[j]);
  }

  void boundary() {
    const auto low = rules_of(m_.boundary_low, m_.shape.size()), high = rules_of(m_.boundary_high, m_.shape.size());
    that(low.has_value(),
         fmt::format("/grid: boundary_low {} is no list of {} rules", m_.boundary_low, m_.shape.size()));
    that(high.has_value(),
         fmt::format("/grid: boundary_high {} is no list of {} rules", m_.boundary_high, m_.shape.size()));
    for (std::size_t j = 0; j < m_.shape.size(); ++j) {
      const bool periodic = m_.periodic[j] == 1;
      that(periodic || m_.periodic[j] == 0, fmt::format("/grid: periodic {} is {}", j, m_.periodic[j]));
      for (const auto* side : {&low, &high})
        if (*side)
          that(((**side)[j] == "\"periodic\"") == periodic,
               fmt::format("/grid: periodic {} is {}, {} says {}", j, m_.periodic[j],
                           side == &low ? "boundary_low" : "boundary_high", (**side)[j]));
    }
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
      if (key.rfind("initial.", 0) != 0) continue;
      initial = true;
      if (key.size() < 5 || key.compare(key.size() - 5, 5, ".seed") != 0) continue;
      seeds = true;
      known = known || value == std::to_string(m_.random_seed);
    }
    that(!initial || (seeds ? known : m_.random_seed == 0),
         fmt::format("/time: random_seed is {}, which /config does not have", m_.random_seed));
  }

  const CheckpointMeta& m_;
  const std::map<std::string, std::string> config_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> meta_problems(const CheckpointMeta& meta) {
  return MetaCheck(meta).run();
}

}  // namespace isohalo
