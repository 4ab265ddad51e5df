#pragma once
/// Solvers whose arithmetic is one function of a cell: docs/adding-a-solver.md has a whole one.
///
/// A solver is a struct S with
///
///   static constexpr auto fields = isohalo::names("u", "v");          the state, in order
///   double k = 0.06;                                                  parameters, with their defaults
///   static constexpr auto keys = isohalo::keys(isohalo::key(&S::k, "k", "1/time", "what it is"), ..);
///   template <int D> StencilShape<D> shape() const;                   what the function reads
///   template <int D> double stable_dt(const Grid<D>&) const;          left out: solver.dt must be given
///   template <class Cell> auto operator()(const Cell& u, const Cell& v, double dt) const;
///                                                                     the new values: cells(..), or one number
///   static constexpr std::array dimensions{2, 3};                     left out: 1 to 4
///
/// The function reads the old state only, and nothing but the cells of its shape.

#include <fmt/format.h>

#include <array>
#include <limits>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/run/solver.hpp"
#include "stencils/cell.hpp"
#include "stencils/deep_stepper.hpp"
#include "stencils/single_field_model.hpp"
#include "stencils/time_step.hpp"

namespace isohalo {

template <int D>
using Grid = GridSettings<D>;

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

/// A cell that only notes what is read.
template <int D>
class ProbeCell {
 public:
  static constexpr int dimensions = D;
  explicit ProbeCell(std::set<Index<D>>& read) : read_(&read) {}
  double operator()() const { return near(Index<D>{}); }
  double near(int j, int k) const {
    Index<D> offset{};
    offset[j] = k;
    return near(offset);
  }
  double near(const Index<D>& offset) const {
    read_->insert(offset);
    return 1.0;
  }
  double inverse_square(int) const { return 1.0; }
  double inverse(int) const { return 1.0; }

 private:
  std::set<Index<D>>* read_;
};

namespace detail {

template <class S>
inline constexpr std::size_t kStateFields = S::fields.size();

template <std::size_t>
using CellOf = const void*;  // one argument for each index

/// The function at one cell, whatever it returns, as an array.
template <class S, class C, std::size_t N>
KOKKOS_FUNCTION std::array<double, N> new_values(const S& s, const std::array<C, N>& at, double dt) {
  return [&]<std::size_t... F>(std::index_sequence<F...>)->std::array<double, N> {
    const auto values = s(at[F]..., dt);
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(values)>>) {
      static_assert(N == 1, "a solver of several fields returns cells(..) of as many values");
      return {static_cast<double>(values)};
    } else {
      static_assert(std::tuple_size_v<std::remove_cvref_t<decltype(values)>> == N,
                    "a solver returns one value for each of its fields");
      return values;
    }
  }
  (std::make_index_sequence<N>());
}

/// The row kernel of a cell function.
template <class S, class T, int D>
class CellRow {
 public:
  static constexpr std::size_t kFields = kStateFields<S>;
  CellRow(const S& solver, const CellGeometry<D>& geometry, double dt)
      : solver_(solver), geometry_(geometry), dt_(dt) {}

  void operator()(const std::array<const T*, kFields>& in, const std::array<T*, kFields>& out,
                  std::int64_t n) const {
    // Copies, which the compiler knows that no store changes.
    const S solver = solver_;
    const CellGeometry<D> geometry = geometry_;
    const double dt = dt_;
    const std::array<const T*, kFields> from = in;
    const std::array<T*, kFields> to = out;
    ISOHALO_INDEPENDENT
    for (std::int64_t x = 0; x < n; ++x) {
      const auto values = [&]<std::size_t... F>(std::index_sequence<F...>) {
        const std::array<Cell<T, D>, kFields> at{Cell<T, D>(from[F] + x, geometry)...};
        return new_values<S, Cell<T, D>, kFields>(solver, at, dt);
      }
      (std::make_index_sequence<kFields>());
      for (std::size_t f = 0; f < kFields; ++f) to[f][x] = static_cast<T>(values[f]);
    }
  }
  void operator()(const T* in, T* out, std::int64_t n) const requires(kFields == 1) {
    (*this)(std::array<const T*, 1>{in}, std::array<T*, 1>{out}, n);
  }

 private:
  S solver_;
  CellGeometry<D> geometry_;
  double dt_;
};

template <int D>
std::string offset_text(const Index<D>& o) {
  std::string text;
  for (int j = 0; j < D; ++j) text += fmt::format("{}{}", j == 0 ? "" : ", ", o[j]);
  return "(" + text + ")";
}

template <class S, int D>
class CellModel : public SolverModel<D> {
 public:
  static constexpr std::size_t kFields = kStateFields<S>;

  CellModel(const GridSettings<D>& grid, const S& solver, double dt)
      : grid_(grid), solver_(solver), shape_(solver.template shape<D>()), dt_(dt) {}

  std::vector<std::string> field_names() const override { return {S::fields.begin(), S::fields.end()}; }
  StencilShape<D> shape() const override { return shape_; }
  double dt() const override { return dt_; }
  std::string advice_not_finite() const override { return "use a smaller step (solver.dt or solver.cfl)"; }
  double memory(const Index<D>& extents, int depth) const override {
    return static_cast<double>(kFields) * two_field_memory(grid_, shape_, extents, depth);
  }
  std::unique_ptr<Solver<D>> create(const CartesianDomain<D>& domain, int depth, Exchange exchange) const override {
    if (grid_.type == ElementType::float32) return create_in<float>(domain, depth, exchange);
    return create_in<double>(domain, depth, exchange);
  }

 private:
  template <class T>
  std::unique_ptr<Solver<D>> create_in(const CartesianDomain<D>& domain, int depth, Exchange exchange) const {
    const auto row = [&](const Index<D>& stride) {
      CellGeometry<D> geometry;
      geometry.stride = stride;
      for (int j = 0; j < D; ++j) {
        geometry.inverse_square[j] = 1 / (grid_.spacing[j] * grid_.spacing[j]);
        geometry.inverse[j] = 1 / grid_.spacing[j];
      }
      return CellRow<S, T, D>(solver_, geometry, dt_);
    };
    std::array<std::string, kFields> names;
    for (std::size_t f = 0; f < kFields; ++f) names[f] = S::fields[f];
    using Stepper = DeepStepper<T, D, CellRow<S, T, D>, kFields>;
    std::array<BoundaryRules<D>, kFields> rules;
    for (std::size_t f = 0; f < kFields; ++f) rules[f] = grid_.boundary_of(f);
    return std::make_unique<Stepper>(names, domain, shape_, rules, depth, row, exchange);
  }

  GridSettings<D> grid_;
  S solver_;
  StencilShape<D> shape_;
  double dt_;
};

/// Throws UsageError when the function reads what its shape does not have.
template <class S, int D>
void refuse_other_reads(const S& solver, const std::string& kind) {
  constexpr std::size_t n = kStateFields<S>;
  std::array<std::set<Index<D>>, n> read;
  [&]<std::size_t... F>(std::index_sequence<F...>) {
    const std::array<ProbeCell<D>, n> at{ProbeCell<D>(read[F])...};
    new_values<S, ProbeCell<D>, n>(solver, at, 1.0);
  }
  (std::make_index_sequence<n>());
  const StencilShape<D> shape = solver.template shape<D>();
  std::set<Index<D>> known{Index<D>{}};
  for (const Index<D>& o : shape.offsets()) known.insert(o);
  for (std::size_t f = 0; f < n; ++f)
    for (const Index<D>& o : read[f])
      if (!known.contains(o))
        throw UsageError(fmt::format("solver {} reads {} at {}, which its shape in {} dimensions does not have",
                                     kind, S::fields[f], offset_text<D>(o), D));
}

template <class S, int D>
std::unique_ptr<SolverModel<D>> make_cell_model(Config& config, const GridSettings<D>& grid,
                                                const std::string& kind) {
  S solver;
  for (const auto& k : S::keys)
    solver.*k.member =
        config.number(std::string("solver.") + k.name, {solver.*k.member, k.min, k.max, false, k.unit, k.help});
  refuse_other_reads<S, D>(solver, kind);
  double dt = 0;
  if constexpr (requires { solver.template stable_dt<D>(grid); }) {
    const double limit = solver.template stable_dt<D>(grid);
    dt = read_time_step(config, limit, "of " + kind, "that of " + kind + " with these parameters");
    if (!(dt > 0) && !config.has_errors())
      config.error("solver.kind",
                   "the stability limit of the time step is zero: use other parameters or larger cells");
  } else {
    dt = read_time_step(config);
  }
  return std::make_unique<CellModel<S, D>>(grid, solver, dt);
}

template <class S>
constexpr bool has_dimension(int d) {
  if constexpr (requires { S::dimensions; }) {
    for (const int one : S::dimensions)
      if (one == d) return true;
    return false;
  }
  return true;
}

template <class S, int D>
void add_in_dimension(SolverKinds& kinds, const std::string& name) {
  if constexpr (has_dimension<S>(D)) {
    if (!kinds.of<D>()
             .try_emplace(name,
                          [name](Config& config, const GridSettings<D>& grid) {
                            return make_cell_model<S, D>(config, grid, name);
                          })
             .second)
      throw UsageError("there are two solvers of the name \"" + name + "\": give yours another one");
  }
}

}  // namespace detail

/// Makes S a value of solver.kind. Local. Throws UsageError for a name, a field or a key that there is twice.
template <class S>
void add_solver(SolverKinds& kinds, const std::string& name) {
  std::set<std::string> known{"kind", "dt", "cfl"};
  for (const auto& k : S::keys)
    if (!known.insert(k.name).second)
      throw UsageError("solver \"" + name + "\" has the key \"" + k.name + "\" twice, or it is one that all have");
  known.clear();
  if (S::fields.size() > 1) kinds.fields[name] = {S::fields.begin(), S::fields.end()};
  for (const char* f : S::fields)
    if (!known.insert(f).second) throw UsageError("solver \"" + name + "\" has the field \"" + f + "\" twice");
  detail::add_in_dimension<S, 1>(kinds, name);
  detail::add_in_dimension<S, 2>(kinds, name);
  detail::add_in_dimension<S, 3>(kinds, name);
  detail::add_in_dimension<S, 4>(kinds, name);
}

}  // namespace isohalo
