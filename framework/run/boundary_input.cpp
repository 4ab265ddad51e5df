#include "framework/run/boundary_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "datatypes/error.hpp"
#include "framework/run/expression.hpp"
#include "framework/run/words.hpp"

namespace isohalo {

std::vector<BoundaryKind> shipped_boundaries() {
  return {{.name = "periodic", .mirrors = false, .kind = Boundary::periodic},
          {.name = "neumann", .kind = Boundary::neumann},
          {.name = "dirichlet", .needs_value = true, .kind = Boundary::dirichlet},
          {.name = "fixed", .needs_value = true, .mirrors = false, .kind = Boundary::fixed},
          {.name = "robin",
           .parameters = {"a", "b"},
           .needs_value = true,
           .problem = problem_of_robin,
           .kind = Boundary::robin}};
}

bool is_input_word(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !text.empty() && text.size() <= 64 && is_letter(text[0]) &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

void check_input_word(const std::string& what, const std::string& word) {
  if (!is_input_word(word)) throw UsageError(what + " \"" + word + "\": that is no word of letters, digits and _");
}

void add_boundary_rule(SolverKinds& kinds, const BoundaryKind& rule) {
  check_input_word("boundary rule", rule.name);
  const std::string named = "boundary rule \"" + rule.name + "\"";
  if (!rule.outside) throw UsageError(named + " has no function `outside`");
  std::set<std::string> known{"value"};
  for (const auto& p : rule.parameters) {
    check_input_word(named + ": key", p);
    if (!known.insert(p).second)
      throw UsageError(named + " has the key \"" + p + "\" twice, or it is one that all have");
  }
  for (const BoundaryKind& k : kinds.boundaries)
    if (k.name == rule.name)
      throw UsageError("there are two boundary rules of the name \"" + rule.name + "\": give yours another one");
  kinds.boundaries.push_back(rule);
  kinds.boundaries.back().kind = Boundary::own;
}

namespace {

/// How a rule is written: NAME, {NAME = VALUE} or {NAME = {KEY = NUMBER, .., value = VALUE}}.
std::string form_of(const BoundaryKind& k) {
  if (k.parameters.empty()) {
    if (k.kind == Boundary::periodic) return "\"periodic\"";
    const std::string with = "{" + k.name + " = VALUE}";
    return k.needs_value ? with : "\"" + k.name + "\", " + with;
  }
  std::string text;
  for (const auto& p : k.parameters) text += p + " = NUMBER, ";
  return "{" + k.name + " = {" + text + "value = VALUE}}";
}

std::string forms_of(const std::vector<BoundaryKind>& kinds) {
  std::string text;
  for (std::size_t k = 0; k < kinds.size(); ++k)
    text += (k == 0 ? "" : k + 1 < kinds.size() ? ", " : " or ") + form_of(kinds[k]);
  return text;
}

std::string canonical(const BoundaryRule& rule, const std::vector<BoundaryKind>& kinds) {
  const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const BoundaryKind& k) {
    return k.kind == rule.kind && (!rule.own || rule.own->name == k.name);
  });
  const std::string value =
      rule.expression ? Config::canonical(rule.expression->text()) : Config::canonical(rule.value);
  if (kind->parameters.empty()) {
    const bool plain = !kind->needs_value && !rule.expression && rule.value == 0;
    return plain ? "\"" + kind->name + "\"" : fmt::format("{{{} = {}}}", kind->name, value);
  }
  std::string text = "{" + kind->name + " = {";
  for (std::size_t p = 0; p < kind->parameters.size(); ++p)
    text += fmt::format("{} = {}, ", kind->parameters[p], Config::canonical(rule.parameters[p]));
  return text + "value = " + value + "}}";
}

/// Reads the lists of rules.
template <int D>
class BoundaryReader {
 public:
  BoundaryReader(Config& config, const std::vector<BoundaryKind>& kinds, const GridSettings<D>& grid)
      : config_(config), kinds_(kinds), grid_(grid) {}

  /// The list at `path`; `without` if there is none. `say_default`: it counts as given then.
  PerDim<BoundaryRule, D> list(const std::string& path, const std::string& fallback, const std::string& help,
                               const PerDim<BoundaryRule, D>& without, bool say_default) {
    PerDim<BoundaryRule, D> rules = without;
    const std::size_t before = config_.error_count();
    const std::string range = say_default ? forms_of(kinds_) : "as of " + fallback;
    const Value* v = config_.node(path, {path, "list of rules", range, fallback, "", help});
    if (v) {
      const auto* entries = std::get_if<ValueList>(&v->data);
      if (!entries || entries->size() != D)
        config_.error_at(*v, fmt::format("{} must be a list of {} rules, one per dimension{}", path, D,
                                         is_no_toml(*v) ? " (what is no TOML is a string: quote words and "
                                                          "expressions, such as [\"neumann\", {dirichlet = "
                                                          "\"x\"}], and keep the quotes from the shell)"
                                                        : ""));
      else
        for (int j = 0; j < D; ++j) rules[j] = entry(path, (*entries)[static_cast<std::size_t>(j)]);
      if (config_.error_count() == before)
        for (int j = 0; j < D; ++j) check(path, rules[j], j);
    }
    if (config_.error_count() == before && (v || say_default)) {
      std::string text;
      for (const BoundaryRule& rule : rules) text += (text.empty() ? "[" : ", ") + canonical(rule, kinds_);
      config_.set_effective(path, text + "]");
    }
    return rules;
  }

 private:
  /// One entry of a list; records one error and returns periodic when it is none.
  BoundaryRule entry(const std::string& path, const Value& v) {
    if (const auto word = as_text(v)) {
      const BoundaryKind* const kind = kind_of(*word);
      if (kind && !kind->needs_value && kind->parameters.empty()) return rule_of(*kind);
      return refuse(path, v, " " + shortened(Config::canonical(*word)), near_word(*word));
    }
    const auto* table = std::get_if<ValueTable>(&v.data);
    if (!table || table->size() != 1) return refuse(path, v, "", "");
    const auto& [name, given] = *table->begin();
    const BoundaryKind* const kind = kind_of(name);
    if (!kind || kind->kind == Boundary::periodic)
      return refuse(path, v, " {" + shortened(name) + " = ..}", nearest_word(name, names(false)));
    BoundaryRule rule = rule_of(*kind);
    return (kind->parameters.empty() ? value(path, v, given, *kind, rule) : parts(path, v, given, *kind, rule))
               ? rule
               : BoundaryRule{};
  }

  /// What stands behind {NAME = .
  bool value(const std::string& path, const Value& entry, const Value& given, const BoundaryKind& kind,
             BoundaryRule& rule) {
    if (const auto number = as_number(given)) {
      rule.value = *number;
      if (!std::isfinite(*number))
        config_.error_at(entry, fmt::format("{}: the value of {} must be finite", path, kind.name));
      return std::isfinite(*number);
    }
    const auto* text = std::get_if<std::string>(&given.data);
    if (!text) return refuse(path, entry, "", ""), false;
    try {
      rule.expression = std::make_shared<const Expression>(*text, D);
    } catch (const UsageError& e) {
      config_.error_at(entry, fmt::format("{}: {} = {}", path, kind.name, e.what()));
      return false;
    }
    return true;
  }

  /// The same of a rule with parameters.
  bool parts(const std::string& path, const Value& entry, const Value& given, const BoundaryKind& kind,
             BoundaryRule& rule) {
    const auto* table = std::get_if<ValueTable>(&given.data);
    const auto error = [&](const std::string& what) {
      config_.error_at(entry, fmt::format("{}: {}: {}", path, form_of(kind), what));
      return false;
    };
    if (!table)
      return error(kind.name + " needs " + (kind.needs_value ? "all of these keys" : "these keys, but for value"));
    for (const auto& [key, v] : *table)
      if (key != "value" && std::find(kind.parameters.begin(), kind.parameters.end(), key) == kind.parameters.end())
        return error("unknown key " + shortened(key) +
                     did_you_mean(key.size() > 1 ? nearest_word(key, keys_of(kind)) : ""));
    for (const auto& p : kind.parameters) {
      const auto v = table->find(p);
      if (v == table->end()) return error(p + " is missing");
      const auto number = as_number(v->second);
      if (!number || !std::isfinite(*number)) return error(p + " must be a finite number");
      rule.parameters.push_back(*number);
    }
    if (kind.problem)
      if (const std::string what = kind.problem(rule.parameters); !what.empty()) return error(what);
    const auto v = table->find("value");
    if (v == table->end()) return !kind.needs_value || error("value is missing");
    return value(path, entry, v->second, kind, rule);
  }

  /// Records an error for a rule of dimension j whose values cannot be those of the grid's type.
  void check(const std::string& path, const BoundaryRule& rule, int j) {
    if (rule.kind == Boundary::neumann)
      check_in_type(config_, path, "a gradient times the cell's width", rule.value * grid_.spacing[j], grid_.type);
    else if (rule.kind == Boundary::dirichlet)
      check_in_type(config_, path, "twice a boundary value", 2 * rule.value, grid_.type);
    else
      check_in_type(config_, path, "a boundary value", rule.value, grid_.type);
    if (grid_.type == ElementType::uint8 &&
        (rule.expression || rule.has_gradient() || rule.kind == Boundary::robin || rule.own))
      config_.error(path,
                    fmt::format("{}: a field of uint8 has no rules with expressions, gradients, robin or rules "
                                "of one's own: use \"periodic\", \"neumann\" or {{fixed = VALUE}}",
                                path));
  }

  BoundaryRule refuse(const std::string& path, const Value& v, const std::string& what, const std::string& near) {
    config_.error_at(
        v, fmt::format("{} has an entry{} that is not {}{}", path, what, forms_of(kinds_), did_you_mean(near)));
    return BoundaryRule{};
  }
  const BoundaryKind* kind_of(const std::string& name) const {
    const auto k = std::find_if(kinds_.begin(), kinds_.end(), [&](const auto& kind) { return kind.name == name; });
    return k == kinds_.end() ? nullptr : &*k;
  }
  static std::vector<std::string> keys_of(const BoundaryKind& kind) {
    std::vector<std::string> keys = kind.parameters;
    keys.push_back("value");
    return keys;
  }
  std::vector<std::string> names(bool all) const {
    std::vector<std::string> list;
    for (const auto& k : kinds_)
      if (all || k.kind != Boundary::periodic) list.push_back(k.name);
    return list;
  }
  /// A rule that a word looks like, as it is written.
  std::string near_word(const std::string& word) const {
    const BoundaryKind* const kind = kind_of(nearest_word(word, names(true)));
    if (!kind) return "";
    return kind->needs_value || !kind->parameters.empty() ? form_of(*kind) : kind->name;
  }
  static BoundaryRule rule_of(const BoundaryKind& kind) {
    BoundaryRule rule;
    rule.kind = kind.kind;
    if (kind.kind == Boundary::own) rule.own = std::make_shared<const BoundaryKind>(kind);
    return rule;
  }

  Config& config_;
  const std::vector<BoundaryKind>& kinds_;
  const GridSettings<D>& grid_;
};

/// Both sides of a dimension are periodic or neither; `rules` are made so.
template <int D>
void check_sides(Config& config, const std::string& table, BoundaryRules<D>& rules) {
  const auto from_command_line = [&](const std::string& path) {
    const Value* const v = config.node(path, {});
    return v && v->order == 0;
  };
  for (int j = 0; j < D; ++j)
    if ((rules.low[j].kind == Boundary::periodic) != (rules.high[j].kind == Boundary::periodic)) {
      std::string periodic = table + ".low", other = table + ".high";
      if (rules.high[j].kind == Boundary::periodic) std::swap(periodic, other);
      const bool at_periodic = from_command_line(periodic) && !from_command_line(other);
      config.error(
          at_periodic ? periodic : other,
          fmt::format("dimension {} is periodic on one side only{}: make both sides of {} periodic or neither", j,
                      config.has(periodic) ? "" : " (" + periodic + " is periodic by default)", table));
      rules.low[j] = rules.high[j] = BoundaryRule{};
    }
}

}  // namespace

template <int D>
void read_boundaries(Config& config, const std::vector<BoundaryKind>& kinds, const std::vector<std::string>& fields,
                     GridSettings<D>& grid) {
  BoundaryReader<D> reader(config, kinds, grid);
  const std::string table = "domain.boundary";
  const std::size_t before = config.error_count();
  BoundaryRules<D>& all = grid.boundary;
  all.low = reader.list(
      table + ".low", "all \"periodic\"",
      "what cells beyond the lower side of each dimension hold; periodic on both sides or on neither", {}, true);
  all.high = reader.list(table + ".high", "all \"periodic\"",
                         "what cells beyond the upper side of each dimension hold", {}, true);
  all.origin = grid.origin;
  all.length = grid.length;
  std::vector<BoundaryRules<D>> of_fields(fields.size() > 1 ? fields.size() : 0, all);
  for (std::size_t k = 0; k < of_fields.size(); ++k) {
    const std::string own = table + "." + fields[k];
    of_fields[k].low =
        reader.list(own + ".low", table + ".low", "the same of " + fields[k] + " alone", all.low, false);
    of_fields[k].high =
        reader.list(own + ".high", table + ".high", "the same of " + fields[k] + " alone", all.high, false);
  }
  if (config.error_count() > before) {  // nothing follows from a rule that was misspelt
    all.low = all.high = {};
    return;
  }
  check_sides(config, table, all);
  for (std::size_t k = 0; k < of_fields.size(); ++k)
    for (int j = 0; j < D; ++j)
      for (const bool low : {true, false}) {
        const bool periodic = (low ? of_fields[k].low : of_fields[k].high)[j].kind == Boundary::periodic;
        const std::string path = table + "." + fields[k] + (low ? ".low" : ".high");
        if (config.error_count() == before && periodic != (all.low[j].kind == Boundary::periodic))
          config.error(path,
                       fmt::format("{}: dimension {} is {}periodic here but {} {}: it is so for all fields or "
                                   "for none",
                                   path, j, periodic ? "" : "not ", periodic ? "not in" : "in", table));
      }
  if (config.error_count() == before) grid.field_boundaries = of_fields;
}

#define ISOHALO_INSTANTIATE(D)                                                                                 \
  template void read_boundaries<D>(Config&, const std::vector<BoundaryKind>&, const std::vector<std::string>&, \
                                   GridSettings<D>&);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
