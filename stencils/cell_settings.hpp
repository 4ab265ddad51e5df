#pragma once
/// What the input says of a solver that is a function of a cell, or of faces and cells: cell_solver.hpp says what
/// it has.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/run/initial.hpp"
#include "framework/run/solver.hpp"
#include "stencils/cell_row.hpp"
#include "stencils/staggered_fields.hpp"
#include "stencils/state_fields.hpp"
#include "stencils/time_step.hpp"

namespace isohalo {

template <int D>
using Grid = GridSettings<D>;

namespace detail {

template <class S, int D, class Value>
inline constexpr bool kLimitBy = requires(const S& s, const Grid<D>& g) {
  s.template stable_dt<D>(g, std::array<Value, kCoefficients<S, D>>());
};
/// Is the limit of the time step one by the least values of the coefficients, too? Not asked of one by their
/// largest magnitudes, whose body might not take them.
template <class S, int D>
constexpr bool limit_by_extremes() {
  if constexpr (kLimitBy<S, D, double>)
    return false;
  else
    return kLimitBy<S, D, Extremes>;
}
template <class S, int D>
inline constexpr bool kLimitByExtremes = limit_by_extremes<S, D>();
template <class S, int D>
inline constexpr bool kHasLimit = kLimitBy<S, D, double> || kLimitByExtremes<S, D> ||
                                  requires(const S& s, const Grid<D>& g) {
  s.template stable_dt<D>(g);
};
/// The limit of the time step by the coefficients; infinite for a solver that has none.
template <class S, int D>
double limit_of(const S& solver, const Grid<D>& grid, const std::array<Extremes, kCoefficients<S, D>>& given) {
  std::array<double, kCoefficients<S, D>> largest{};
  for (std::size_t k = 0; k < given.size(); ++k)
    largest[k] = std::max(std::abs(given[k].least), std::abs(given[k].largest));
  if constexpr (kLimitByExtremes<S, D>)
    return solver.template stable_dt<D>(grid, given);
  else if constexpr (requires { solver.template stable_dt<D>(grid, largest); })
    return solver.template stable_dt<D>(grid, largest);
  else if constexpr (requires { solver.template stable_dt<D>(grid); })
    return solver.template stable_dt<D>(grid);
  else
    return std::numeric_limits<double>::infinity();
}

/// The same where some coefficients are not known (NaN); none if it depends on them.
template <class S, int D>
std::optional<double> known_limit(const S& solver, const Grid<D>& grid,
                                  const std::array<Extremes, kCoefficients<S, D>>& given) {
  const auto unknown = [](const Extremes& e) { return std::isnan(e.largest); };
  const auto with = [&](double x) {
    auto all = given;
    std::replace_if(all.begin(), all.end(), unknown, Extremes{x, x});
    return limit_of<S, D>(solver, grid, all);
  };
  const double limit = with(0);
  if (std::none_of(given.begin(), given.end(), unknown) || limit == with(1e300)) return limit;
  return std::nullopt;
}

/// The limit's formula, if the solver says it as `stable_dt_formula`.
template <class S>
std::string limit_text(const std::string& kind) {
  if constexpr (requires { S::stable_dt_formula; })
    return S::stable_dt_formula;
  else
    return "that of " + kind + " with these parameters";
}

/// The fields of the state, in order; those on faces, "v0", "v1", .., are the last.
template <class S>
std::vector<std::string> state_names(int dimensions) {
  std::vector<std::string> names(S::fields.begin(), S::fields.end());
  if constexpr (kHasFaces<S>)
    for (int j = 0; j < dimensions; ++j) names.push_back(S::faces + std::to_string(j));
  return names;
}

/// What the input says of a solver.
template <class S, int D>
struct CellSettings {
  Grid<D> grid;
  S solver;
  std::string kind;
  double dt = 0;
  std::array<double, kCoefficients<S, D>> numbers{};  ///< coefficients, where all are numbers
  std::vector<InitialField<D>> given;                 ///< else: all of them; then the sources, of all fields, if
                                                      ///< there are any; then the mask if there is one
  bool fields_given = false, sourced = false;
  Mask mask = Mask::none;
  bool limit_known = true;  ///< else dt is checked when the coefficients are there

  std::size_t first_source() const { return fields_given ? kCoefficients<S, D> : 0; }
  bool has_mask() const { return mask != Mask::none; }
  std::size_t place_of_mask() const { return given.size() - 1; }
  /// f(its place among the given, its values) for each source that depends on the time.
  template <class F>
  void for_each_source_in_time(const F& f) const {
    for (std::size_t k = first_source(); sourced && k < first_source() + kStateFields<S>; ++k)
      if (const auto& values = given[k].in_time()) f(k, *values);
  }
  /// As StateFields::kept.
  std::size_t kept() const {
    std::size_t n = 0;
    for_each_source_in_time([&n](std::size_t, const auto& values) {
      for (const auto& part : values.steady)
        n += std::count(part.depends_on.begin(), part.depends_on.end(), true) == D;
    });
    return n;
  }
  std::string advice_not_finite(const std::string& advice) const {
    bool in_time = false;
    for_each_source_in_time([&in_time](std::size_t, const auto&) { in_time = true; });
    return advice + (in_time   ? ", or look whether the expressions of [source] are finite at all times"
                     : sourced ? ", or smaller values in [source]"
                               : "");
  }
  std::vector<std::string> given_names() const {
    std::vector<std::string> names;
    if (fields_given)
      for (const Coefficient& c : coefficients_of<S, D>()) names.emplace_back(c.name);
    if (sourced)
      for (const char* field : S::fields) names.emplace_back(field);
    if (mask != Mask::none) names.emplace_back("mask");
    return names;
  }
  Amendments amendments(const CellGeometry<D>& geometry) const {
    Amendments a{sourced, mask};
    const StencilShape<D> shape = solver.template shape<D>();
    if (mask == Mask::mirror)
      for (const Index<D>& o : shape.offsets()) a.around.push_back(geometry.away(o));
    return a;
  }
  std::vector<const InitialField<D>*> coefficients() const {
    std::vector<const InitialField<D>*> all;
    for (const auto& field : given) all.push_back(&field);
    return all;
  }
  /// Of each field.
  std::vector<BoundaryRules<D>> rules() const {
    std::vector<BoundaryRules<D>> all;
    for (std::size_t f = 0; f < state_names<S>(D).size(); ++f) all.push_back(grid.boundary_of(f));
    return all;
  }
  /// Of a solver with fields on faces.
  StaggeredFields<D> staggered() const { return {state_names<S>(D), given_names(), rules(), dt}; }
  /// Those of fields are left out where they are all alike.
  StateShapes<D> shapes() const {
    StateShapes<D> shapes(solver.template shape<D>());
    if constexpr (kSaysShapeOf<S, D>) {
      for (const char* field : S::fields) shapes.of_fields.push_back(solver.template shape_of<D>(field));
      const auto& list = shapes.of_fields;
      if (std::count(list.begin(), list.end(), shapes.all) == std::ssize(list)) shapes.of_fields.clear();
    }
    return shapes;
  }
  StateFields fields() const {
    StateFields f;
    f.state = state_names<S>(D);
    if constexpr (kHasBefore<S>) f.before.assign(S::before.begin(), S::before.end());
    f.coefficients = given_names();
    f.stages = stages_of<S>();
    if constexpr (stages_of<S>() > 1) f.stage_times.assign(S::stage_times.begin(), S::stage_times.end());
    f.kept = kept();
    return f;
  }
};

/// The values that a coefficient may have.
inline std::string allowed(const Coefficient& c) {
  if (c.max < 1e300 && !c.above_min) return fmt::format("{:g} .. {:g}", c.min, c.max);
  const std::string least =
      c.above_min ? fmt::format("values above {:g}", c.min) : fmt::format("at least {:g}", c.min);
  return c.max < 1e300 ? fmt::format("{} and at most {:g}", least, c.max) : least;
}

/// SolverModel::check_coefficients.
template <class S, int D>
void check_given(const CellSettings<S, D>& in, const CartesianDomain<D>& domain) {
  if (in.has_mask()) in.given[in.place_of_mask()].extremes(domain);  // it must have values
  if (!in.fields_given) return;
  constexpr auto list = coefficients_of<S, D>();
  std::array<Extremes, kCoefficients<S, D>> extremes{};
  for (std::size_t k = 0; k < list.size(); ++k) {
    const auto [least, most] = extremes[k] = in.given[k].extremes(domain);
    const Coefficient& c = list[k];
    if (least < c.min || (c.above_min && !(least > c.min)) || most > c.max)
      throw UsageError(fmt::format(
          "the coefficient \"{}\" has values from {:g} to {:g} in the type of the fields: solver.{} must give {}",
          c.name, least, most, c.name, allowed(c)));
  }
  if (in.limit_known) return;
  const double limit = limit_of<S, D>(in.solver, in.grid, extremes);
  if (!(in.dt <= limit))
    throw UsageError(fmt::format("solver.dt = {:.6g} is above the stability limit {:.17g} = {}: use a smaller one",
                                 in.dt, limit, limit_text<S>(in.kind)));
}

/// What [solver.mask] says, its keys aside that say where it is. Records an error for one that is no table.
inline Mask read_mask(Config& config, bool has_faces) {
  const char* const path = "solver.mask";
  const Value* v =
      config.node(path, {path, "table", "", "none", "",
                         "cells in which it is not 0 keep their values; [solver.mask] has the keys of [initial]"});
  const bool table = config.has_table(path);
  if (v && !table) config.error_at(*v, "solver.mask is no table: [solver.mask] has the keys of [initial]");
  const std::string rule =
      config.text("solver.mask.rule",
                  {"keep",
                   {"keep", "mirror"},
                   has_faces ? "mirror: besides, a face beside a masked cell reads the other cell on both sides"
                             : "mirror: besides, a cell that reads a masked one reads its own value instead"});
  if (rule == "keep") config.drop_effective("solver.mask.rule");  // one spelling in the canonical text
  return !table ? Mask::none : rule == "mirror" ? Mask::mirror : Mask::keep;
}

/// Are there sources of these fields, [source] of a single one or [source.FIELD]? Declares that there may be.
template <class Names>
bool has_sources(Config& config, const Names& fields) {
  if (config.has_table("source")) return true;
  for (const char* field : fields) {
    const std::string path = fields.size() == 1 ? "source.kind" : std::string("source.") + field + ".kind";
    config.node(path, {path, "string", "as of initial.kind", "none", "",
                       std::string("what is added per time to ") + field +
                           "; has the keys of [initial], and an expression the time t"});
  }
  return false;
}

/// Reads the sources, of all fields or of none.
template <class S, int D>
[[gnu::cold]] void read_sources(Config& config, CellSettings<S, D>& in) {
  if constexpr (kTakesSources<S, D>) {
    in.sourced = has_sources(config, S::fields);
    if constexpr (kHasFaces<S>)
      for (int j = 0; j < D; ++j)
        if (const std::string path = std::string("source.") + S::faces + std::to_string(j); config.has(path))
          config.error(path, path + ": fields on faces have no sources, only those in cells have");
    for (const char* field : S::fields)
      if (in.sourced)
        in.given.push_back(InitialField<D>::read_table(
            config, in.grid, S::fields.size() == 1 ? std::string("source") : std::string("source.") + field,
            "constant"));
  }
}

/// Reads the coefficients; returns their extremes, or those of their largest magnitudes, NaN where these are not
/// known.
template <class S, int D>
[[gnu::cold]] std::array<Extremes, kCoefficients<S, D>> read_coefficients(Config& config, CellSettings<S, D>& in) {
  constexpr auto list = coefficients_of<S, D>();
  std::array<Extremes, list.size()> extremes{};
  std::array<std::optional<InitialField<D>>, list.size()> fields;
  in.mask = read_mask(config, kHasFaces<S>);
  for (std::size_t k = 0; k < list.size(); ++k) {
    const Coefficient& c = list[k];
    const std::string path = std::string("solver.") + c.name;
    if (config.has_table(path)) {
      fields[k] = InitialField<D>::read_table(config, in.grid, path);
    } else {
      in.numbers[k] = config.number(
          path, {c.fallback, c.min, c.max, c.above_min, c.unit,
                 std::string(c.help) + "; a number, or a table [" + path + "] with the keys of [initial]"});
    }
    if constexpr (requires { in.solver.template formula<D>(k, in.grid); })
      if (const auto formula = in.solver.template formula<D>(k, in.grid)) {
        if (fields[k] || in.numbers[k] != c.fallback)
          config.error(path, path +
                                 " is given, and so are keys that say the same (see its help): leave out one or "
                                 "the other");
        fields[k] = InitialField<D>::coefficient(in.grid, path, formula, in.solver.largest(k));
      }
    if (!fields[k]) {
      extremes[k] = {in.numbers[k], in.numbers[k]};
    } else {
      const auto largest = kLimitByExtremes<S, D> ? std::nullopt : fields[k]->largest();
      extremes[k].least = extremes[k].largest = largest.value_or(std::numeric_limits<double>::quiet_NaN());
    }
    in.fields_given = in.fields_given || fields[k];
  }
  for (std::size_t k = 0; k < list.size() && (in.fields_given || !kHasFaces<S>); ++k) {
    const std::string path = std::string("solver.") + list[k].name;
    if (!fields[k]) check_in_type(config, path, "the coefficient", in.numbers[k], in.grid.type);
    if (!in.fields_given) continue;
    const auto everywhere = [value = in.numbers[k]](const Index<D>&) { return value; };
    in.given.push_back(
        fields[k] ? *fields[k] : InitialField<D>::coefficient(in.grid, path, everywhere, std::abs(in.numbers[k])));
  }
  read_sources(config, in);
  if (in.mask != Mask::none) in.given.push_back(InitialField<D>::read_table(config, in.grid, "solver.mask"));
  return extremes;
}

/// The length of a step, within the limit.
template <class S, int D>
[[gnu::cold]] double read_dt(Config& config, CellSettings<S, D>& in,
                             const std::array<Extremes, kCoefficients<S, D>>& given) {
  if constexpr (!kHasLimit<S, D>) {
    return read_time_step(config);
  } else {
    std::string help = "of " + in.kind;
    if constexpr (requires { S::stable_dt_formula; }) help = S::stable_dt_formula;
    const std::optional<double> limit = known_limit<S, D>(in.solver, in.grid, given);
    in.limit_known = limit.has_value();
    if (!limit) {
      if (!config.has("solver.dt") && !config.has_errors())
        config.error(
            "solver.dt",
            std::string("required key solver.dt is missing (solver.cfl cannot take its place): the stability "
                        "limit is not known before the values of the coefficients are, ") +
                (kLimitByExtremes<S, D> ? "one of which is a table" : "which come from a file or an expression"));
      return read_time_step(config, std::numeric_limits<double>::infinity(), help, limit_text<S>(in.kind));
    }
    const double dt = read_time_step(config, *limit, help, limit_text<S>(in.kind));
    if (config.has_errors()) return dt;
    if (!(dt > 0))
      config.error("solver.kind",
                   "the stability limit of the time step is zero: use other parameters or larger cells");
    if (!std::isfinite(dt))
      config.error("solver.dt", "required key solver.dt is missing: with these parameters no step is too long");
    return dt;
  }
}

/// What the parameters are, and the rest still to be read.
template <class S, int D>
[[gnu::cold]] CellSettings<S, D> read_parameters(Config& config, const Grid<D>& grid, const std::string& kind) {
  CellSettings<S, D> in;
  in.grid = grid;
  in.kind = kind;
  if constexpr (requires { S::keys; })
    for (const auto& k : S::keys)
      in.solver.*k.member = config.number(std::string("solver.") + k.name,
                                          {in.solver.*k.member, k.min, k.max, false, k.unit, k.help});
  return in;
}
template <class S, int D>
void read_coefficients_and_dt(Config& config, CellSettings<S, D>& in) {
  const auto given = read_coefficients<S, D>(config, in);
  in.dt = read_dt<S, D>(config, in, given);
}

}  // namespace detail

}  // namespace isohalo
