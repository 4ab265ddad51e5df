#pragma once
/// Solvers whose arithmetic is one function of a cell: docs/adding-a-solver.md has a whole one.
///
/// A solver is a struct S with
///
///   static constexpr auto fields = isohalo::names("u", "v");          the state, in order
///   double k = 0.06;                                                  parameters, with their defaults
///   static constexpr auto keys = isohalo::keys(isohalo::key(&S::k, "k", "1/time", "what it is"), ..);
///                                                                     left out: none
///   template <int D> StencilShape<D> shape() const;                   what the function reads
///   template <int D> double stable_dt(const Grid<D>&) const;          left out: solver.dt must be given
///   template <class Cell> auto operator()(const Cell& u, const Cell& v, double dt) const;
///                                                                     the new values: cells(..), or one number
///   static constexpr std::array dimensions{2, 3};                     left out: 1 to 4
///
/// The function reads the old state only, and nothing but the cells of its shape. Coefficients, masks, sources, a
/// second time level, stages, shapes of single fields and fields on faces are in that document as well.

#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "stencils/cell_model.hpp"
#include "stencils/staggered_model.hpp"

namespace isohalo {

/// Names of fields.
template <class... N>
constexpr std::array<const char*, sizeof...(N)> names(N... name) {
  return {name...};
}

/// A key of [solver] that is a parameter of S.
template <class S>
struct ParameterKey {
  double S::*member;
  const char *name, *unit, *help;
  double min = -1e300, max = 1e300;

  /// The same with a least, or a least and a largest value.
  constexpr ParameterKey from(double least, double most = 1e300) const {
    ParameterKey k = *this;
    k.min = least;
    k.max = most;
    return k;
  }
};

template <class S>
constexpr ParameterKey<S> key(double S::*member, const char* name, const char* unit, const char* help) {
  return {member, name, unit, help};
}
template <class S, class... More>
constexpr std::array<ParameterKey<S>, 1 + sizeof...(More)> keys(const ParameterKey<S>& first, const More&... more) {
  return {first, more...};
}

namespace detail {

template <class S>
constexpr bool has_dimension(int d) {
  if constexpr (requires { S::dimensions; }) {
    for (const int one : S::dimensions)
      if (one == d) return true;
    return false;
  }
  return true;
}

/// Throws UsageError for a name of the solver, a key or a field that no input can have, or that there is twice.
template <class S>
void check_names(const std::string& name) {
  check_input_word("solver", name);
  std::set<std::string> known{"kind", "dt", "cfl", "mask", "file", "dataset", "data"};
  const auto add_key = [&](const char* key) {
    check_input_word("key of solver " + name, key);
    if (!known.insert(key).second)
      throw UsageError("solver \"" + name + "\" has the key \"" + key + "\" twice, or it is one that all have");
  };
  if constexpr (requires { S::keys; })
    for (const auto& k : S::keys) add_key(k.name);
  for (const Coefficient& c : coefficients_of<S, 4>()) add_key(c.name);
  // Of domain.boundary, of initial and of the digest log.
  known = {"residual", "low",     "high", "kind", "value", "gradient", "amplitude",  "modes", "center", "width",
           "inside",   "outside", "size", "even", "odd",   "seed",     "expression", "file",  "dataset"};
  const auto add_field = [&](const std::string& field) {
    check_input_word("field of solver " + name, field);
    if (!known.insert(field).second)
      throw UsageError("solver \"" + name + "\" has the field \"" + field +
                       "\" twice, or it is a key that all have" +
                       (kHasFaces<S> ? "; those on faces have their dimension behind the name" : ""));
  };
  int dimensions = 4;
  while (!has_dimension<S>(dimensions)) --dimensions;
  for (const std::string& f : state_names<S>(dimensions)) add_field(f);
  if constexpr (kHasBefore<S>)
    for (const char* f : S::before) add_field(f);
}

struct Named {
  void shape_of();
  void stable_dt();
  void source_weight();
};
/// What both have a member of is ambiguous here, whatever it takes. (Nothing derives from a class that is final.)
template <class S>
struct WithNamed : std::conditional_t<std::is_final_v<S>, std::monostate, S>, Named {};
/// Has S a member of this name?
template <class S>
inline constexpr bool kNamesShapeOf = !requires {
  &WithNamed<S>::shape_of;
};
template <class S>
inline constexpr bool kNamesStableDt = !requires {
  &WithNamed<S>::stable_dt;
};
template <class S>
inline constexpr bool kNamesSourceWeight = !requires {
  &WithNamed<S>::source_weight;
};

/// Does fits(d) say yes for each number d of dimensions, a constant, that S has?
template <class S, class Fits>
constexpr bool in_all_dimensions(const Fits& fits) {
  return [&]<int... D>(std::integer_sequence<int, D...>) {
    return ((!has_dimension<S>(D + 1) || fits(std::integral_constant<int, D + 1>())) && ...);
  }
  (std::make_integer_sequence<int, 4>());
}

}  // namespace detail

/// Makes S a value of solver.kind. Local. Throws UsageError for a name, a field or a key that there is twice, and
/// for one that no input can have.
template <class S>
void add_solver(SolverKinds& kinds, const std::string& name) {
  static_assert(!detail::kHasBefore<S> || detail::stages_of<S>() == 1,
                "a solver has either stages or fields of the step before");
  if constexpr (detail::kHasBefore<S>)
    static_assert(S::before.size() == S::fields.size(), "`before` names each of `fields` a step before");
  static_assert(S::fields.size() > 0, "a solver has a field in cells at least");
  if constexpr (detail::kHasFaces<S>)
    static_assert(std::is_convertible_v<decltype(S::faces), const char*>, "`faces` is one name, a const char*");
  static_assert(!detail::kHasFaces<S> || (detail::stages_of<S>() == 1 && !detail::kHasBefore<S> &&
                                          !detail::kNamesShapeOf<S> && !detail::kNamesSourceWeight<S>),
                "a solver with `faces` has no stages, no `before`, no `shape_of` and no `source_weight`");
  if constexpr (detail::stages_of<S>() > 1)
    static_assert(S::stage_times.size() == static_cast<std::size_t>(S::stages),
                  "`stage_times` has a time for each stage");
  // They would not be found, and be left out without a word.
  static_assert(
      !requires { &S::coefficients; }, "`coefficients` is a template <int D>");
  static_assert(
      !requires { &S::formula; }, "`formula` is a template <int D>");
  if constexpr (detail::kNamesShapeOf<S>)
    static_assert(
        detail::in_all_dimensions<S>(
            []<int D>(std::integral_constant<int, D>) { return detail::kSaysShapeOf<S, D>; }),
        "`shape_of` is a const template <int D> of (std::string_view field) that gives a StencilShape<D>");
  if constexpr (detail::kNamesStableDt<S>)
    static_assert(
        detail::in_all_dimensions<S>([]<int D>(std::integral_constant<int, D>) { return detail::kHasLimit<S, D>; }),
        "`stable_dt` is a const template <int D> of (const Grid<D>&), or of that and a std::array of a "
        "double, or of Extremes, for each coefficient");
  if constexpr (detail::kNamesSourceWeight<S>)
    static_assert(
        detail::in_all_dimensions<S>(
            []<int D>(std::integral_constant<int, D>) { return detail::kSaysSourceWeight<S, D>; }),
        "`source_weight` is a const template <int Stage> of (double dt), or of (const std::array<Cell, N>& "
        "given, double dt) with as many as there are coefficients");
  detail::check_names<S>(name);
  if (S::fields.size() > 1 || detail::kHasFaces<S>) kinds.fields[name] = detail::state_names<S>;
  kinds.add(
      name, [name]<int D>(Config & config, const GridSettings<D>& grid) requires(detail::has_dimension<S>(D)) {
        if constexpr (detail::kHasFaces<S>)
          return detail::make_staggered_model<S, D>(config, grid, name);
        else
          return detail::make_cell_model<S, D>(config, grid, name);
      });
}

}  // namespace isohalo
