#include "framework/halo/outside_cells.hpp"

#include <string>

#include "datatypes/error.hpp"

namespace isohalo::detail {

namespace {

/// What is wrong with a rule by itself, or nothing.
std::string problem_of(const BoundaryRule& rule) {
  const auto what = [](const std::string& name, const std::string& text) {
    return text.empty() ? text : " is " + name + ": " + text;
  };
  if (rule.kind == Boundary::robin)
    return what("robin", rule.parameters.size() == 2 ? problem_of_robin(rule.parameters)
                                                     : "give its two numbers, parameters = {a, b}");
  if (rule.kind != Boundary::own) return {};
  if (!rule.own || !rule.own->outside) return " is one of your own, but has no function";
  const std::size_t given = rule.parameters.size(), wanted = rule.own->parameters.size();
  if (given != wanted)
    return what(rule.own->name,
                "it has " + std::to_string(given) + " parameters, its kind has " + std::to_string(wanted));
  return rule.own->problem ? what(rule.own->name, rule.own->problem(rule.parameters)) : std::string();
}

}  // namespace

template <int D>
void check_outside(const CartesianDomain<D>& domain, const BoundaryRules<D>& rules, const ErasedArray<D>& a) {
  const std::string call = a.face < 0 ? "fill_outside_cells" : "fill_outside_faces";
  const Box<D>& owned = a.owned;
  if (!a.data) throw UsageError(call + ": the array is NULL");
  for (int j = 0; j < D; ++j)
    if (a.ghost_low[j] < 0 || a.ghost_high[j] < 0)
      throw UsageError(call + ": the array has a negative number of ghost layers in dimension " +
                       std::to_string(j));
  check_strides(a, call.c_str(), 0);
  const Box<D> mine = a.face < 0 ? domain.owned() : owned_faces(domain, a.face);
  if (owned != mine)
    throw UsageError(call + ": the array holds " + to_string<D>(owned.low) + " to " + to_string<D>(owned.high) +
                     ", this rank owns " + to_string<D>(mine.low) + " to " + to_string<D>(mine.high));
  for (int j = 0; j < D; ++j)
    for (const auto* side : {&rules.low, &rules.high})
      if (((*side)[j].kind == Boundary::periodic) != domain.periodic()[j])
        throw UsageError(call + ": dimension " + std::to_string(j) + " of the domain is " +
                         (domain.periodic()[j] ? "" : "not ") + "periodic, its rules for the " +
                         (side == &rules.low ? "low" : "high") + " side say otherwise");
  for (int j = 0; j < D; ++j)
    for (const BoundaryRule& rule : {rules.low[j], rules.high[j]}) {
      const std::string named = call + ": a rule of dimension " + std::to_string(j);
      if (j == a.face && (rule.kind == Boundary::robin || rule.kind == Boundary::own))
        throw UsageError(
            named + ", whose faces the array is on, is robin or one of your own: use neumann, dirichlet or fixed");
      if (rule.expression) throw UsageError(named + " has an expression: only numbers are filled here");
      if ((rule.has_gradient() || rule.kind == Boundary::robin || rule.kind == Boundary::own) &&
          !(rules.length[j] > 0))
        throw UsageError(named + " depends on the width of the cells: give the length of the grid, rules.length");
      if (const std::string problem = problem_of(rule); !problem.empty()) throw UsageError(named + problem);
    }
}

#define ISOHALO_INSTANTIATE(D) \
  template void check_outside<D>(const CartesianDomain<D>&, const BoundaryRules<D>&, const ErasedArray<D>&);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo::detail
