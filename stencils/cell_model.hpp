#pragma once
/// The model of a solver that is a function of a cell: cell_solver.hpp says what it has.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/run/initial.hpp"
#include "stencils/cell_row.hpp"
#include "stencils/device/device_stepper.hpp"
#include "stencils/probe_cell.hpp"
#include "stencils/single_field_model.hpp"
#include "stencils/state_stepper.hpp"
#include "stencils/time_step.hpp"

namespace isohalo {

template <int D>
using Grid = GridSettings<D>;

namespace detail {

/// The limit of the time step by the magnitudes of the coefficients; infinite for a solver that has none.
template <class S, int D>
double limit_of(const S& solver, const Grid<D>& grid, const std::array<double, kCoefficients<S, D>>& largest) {
  if constexpr (requires { solver.template stable_dt<D>(grid, largest); })
    return solver.template stable_dt<D>(grid, largest);
  else if constexpr (requires { solver.template stable_dt<D>(grid); })
    return solver.template stable_dt<D>(grid);
  else
    return std::numeric_limits<double>::infinity();
}
template <class S, int D>
inline constexpr bool kHasLimit = requires(const S& s, const Grid<D>& g) {
  s.template stable_dt<D>(g);
}
|| requires(const S& s, const Grid<D>& g) {
  s.template stable_dt<D>(g, std::array<double, kCoefficients<S, D>>());
};

template <int D>
std::string limit_text(const std::string& kind) {
  return "that of " + kind + " with these parameters";
}

/// What the input says of a cell solver.
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
  /// f(its place among the given, its values) for each source that depends on the time.
  template <class F>
  void for_each_source_in_time(const F& f) const {
    for (std::size_t k = first_source(); sourced && k < first_source() + kStateFields<S>; ++k)
      if (const auto& values = given[k].in_time()) f(k, *values);
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
  /// Of each field.
  std::vector<BoundaryRules<D>> rules() const {
    std::vector<BoundaryRules<D>> all;
    for (std::size_t f = 0; f < kStateFields<S>; ++f) all.push_back(grid.boundary_of(f));
    return all;
  }
  StateFields fields() const {
    StateFields f;
    f.state.assign(S::fields.begin(), S::fields.end());
    if constexpr (kHasBefore<S>) f.before.assign(S::before.begin(), S::before.end());
    for (const char* field : pointwise_of<S>()) f.pointwise.emplace_back(field);
    f.coefficients = given_names();
    f.stages = stages_of<S>();
    if constexpr (stages_of<S>() > 1) f.stage_times.assign(S::stage_times.begin(), S::stage_times.end());
    for_each_source_in_time([&f](std::size_t, const auto& values) {
      for (const auto& part : values.steady)
        f.kept += std::count(part.depends_on.begin(), part.depends_on.end(), true) == D ? 1 : 0;
    });
    return f;
  }
};

/// The kernel of this function of the solver, made by make(point, amendments).
template <int Stage, class S, class T, int D, class Make>
auto cell_kernel(const CellSettings<S, D>& in, const Index<D>& stride, const Make& make) {
  CellGeometry<D> geometry;
  geometry.stride = stride;
  for (int j = 0; j < D; ++j) {
    geometry.inverse_square[j] = 1 / (in.grid.spacing[j] * in.grid.spacing[j]);
    geometry.inverse[j] = 1 / in.grid.spacing[j];
  }
  auto numbers = in.numbers;
  for (double& x : numbers) x = rounded<T>(x);
  const Amendments amendments = in.amendments(geometry);
  if constexpr (kCoefficients < S, D >> 0)
    if (in.fields_given)
      return make(CellPoint<S, T, D, Given::fields, Stage>(in.solver, geometry, in.dt), amendments);
  return make(CellPoint<S, T, D, Given::numbers, Stage>(in.solver, geometry, in.dt, numbers), amendments);
}

/// On the host's rows, or by whatever else Stepper makes of them (DeviceStepper).
template <class S, class T, int D, class Stepper = StateStepper<T, D>>
class CellSolver final : public Stepper {
 public:
  CellSolver(const CellSettings<S, D>& in, const CartesianDomain<D>& domain, int depth, Exchange exchange)
      : Stepper(
            in.fields(), domain, in.solver.template shape<D>(), in.rules(), depth,
            [&](const Index<D>& stride) {
              typename Stepper::Kernels kernels;
              [&]<int... K>(std::integer_sequence<int, K...>) {
                (kernels.push_back(cell_kernel<K, S, T, D>(in, stride, Make())), ...);
              }
              (std::make_integer_sequence<int, stages_of<S>()>());
              return kernels;
            },
            exchange) {
    if constexpr (kHasBefore<S>) begin_ = cell_kernel<kBegin, S, T, D>(in, this->field().stride, Make());
    in.for_each_source_in_time([this](std::size_t k, const auto& values) { this->change_in_time(k, values); });
  }

  void start() override {
    Stepper::start();
    if (begin_) this->sweep_before(*begin_);
  }

 private:
  using Kernel = typename Stepper::Kernels::value_type;
  struct Make {
    template <class Point>
    Kernel operator()(const Point& point, const Amendments& amendments) const {
      if constexpr (requires { Stepper::kernel_of(point, amendments); }) {
        return Stepper::kernel_of(point, amendments);
      } else {
        auto row = std::make_unique<CellRow<Point>>(point);
        if (!amendments.any()) return row;
        return std::make_unique<AmendedRow<T, D, Point::kWrites>>(std::move(row), amendments);
      }
    }
  };

  Kernel begin_;  ///< of the fields a step before, if there are such
};

template <class S, int D>
class CellModel : public SolverModel<D> {
 public:
  explicit CellModel(CellSettings<S, D> in) : in_(std::move(in)) {}

  std::vector<std::string> field_names() const override { return {S::fields.begin(), S::fields.end()}; }
  StencilShape<D> shape() const override { return in_.solver.template shape<D>(); }
  bool steps_in_tiles() const override { return stages_of<S>() == 1; }
  double dt() const override { return in_.dt; }
  std::string advice_not_finite() const override {
    bool in_time = false;
    in_.for_each_source_in_time([&in_time](std::size_t, const auto&) { in_time = true; });
    return std::string("use a smaller step (solver.dt or solver.cfl)") +
           (in_time ? ", or look whether the expressions of [source] are finite at all times" : "");
  }
  std::vector<const InitialField<D>*> coefficients() const override {
    std::vector<const InitialField<D>*> all;
    for (const auto& field : in_.given) all.push_back(&field);
    return all;
  }
  void check_coefficients(const CartesianDomain<D>& domain) const override {
    if (!in_.fields_given) return;
    constexpr auto list = coefficients_of<S, D>();
    std::array<double, kCoefficients<S, D>> largest{};
    for (std::size_t k = 0; k < list.size(); ++k) {
      const auto [least, most] = in_.given[k].extremes(domain);
      if (least < list[k].min || most > list[k].max)
        throw UsageError(fmt::format(
            "the coefficient \"{}\" has values from {:g} to {:g}: [solver.{}] must give {}", list[k].name, least,
            most, list[k].name,
            list[k].max < 1e300 || most > list[k].max ? fmt::format("{:g} .. {:g}", list[k].min, list[k].max)
                                                      : fmt::format("at least {:g}", list[k].min)));
      largest[k] = std::max(std::abs(least), std::abs(most));
    }
    if (in_.limit_known) return;
    const double limit = limit_of<S, D>(in_.solver, in_.grid, largest);
    if (!(in_.dt <= limit))
      throw UsageError(
          fmt::format("solver.dt = {:.6g} is above the stability limit {:.17g} = {}: use a smaller one", in_.dt,
                      limit, limit_text<D>(in_.kind)));
  }
  double memory(const Index<D>& extents, int depth) const override {
    const StateFields fields = in_.fields();
    const int reaches = fields.reaches(depth);
    const auto ghosts = shape().ghost_widths(reaches, in_.grid.topology());
    return 0.5 * static_cast<double>(fields.arrays()) * two_field_memory(in_.grid, shape(), extents, reaches) +
           static_cast<double>(fields.kept) * Field<double, D>::bytes_needed(extents, ghosts[0], ghosts[1]);
  }
  ExchangeLoad exchange_load(int depth) const override {
    const StateFields fields = in_.fields();
    const int reaches = fields.reaches(depth);
    const bool previous = !fields.before.empty() && reaches > 1;
    int travelling = 0;
    for (std::size_t f = 0; f < fields.state.size(); ++f) travelling += fields.travels(f, reaches) ? 1 : 0;
    return {travelling * (previous ? 2 : 1), reaches, reaches < fields.stages ? fields.stages : 1};
  }
  int stored_fields() const override {
    const StateFields fields = in_.fields();
    return static_cast<int>(fields.state.size() + fields.before.size());
  }
  std::unique_ptr<Solver<D>> create(const CartesianDomain<D>& domain, int depth, Exchange exchange,
                                    bool on_device) const override {
    return with_type<D>(in_.grid.type, on_device, [&]<class T, bool kDevice>(T, std::bool_constant<kDevice>) {
      using Stepper = std::conditional_t<kDevice, DeviceStepper<T, D, DeviceSpace>, StateStepper<T, D>>;
      return std::make_unique<CellSolver<S, T, D, Stepper>>(in_, domain, depth, exchange);
    });
  }
  std::string against_device() const override {
    std::string why;
    if (kStateFields < S >> kMostFields)
      why = fmt::format("a solver of more than {} fields has no device path", kMostFields);
    for (const BoundaryRules<D>& rules : in_.rules())
      if (why.empty()) why = rules_against_device(in_.grid.type, rules);
    return why;
  }

 private:
  CellSettings<S, D> in_;
};

/// What [solver.mask] says, its keys aside that say where it is. Records an error for one that is no table.
inline Mask read_mask(Config& config) {
  const char* const path = "solver.mask";
  const Value* v =
      config.node(path, {path, "table", "", "none", "",
                         "cells in which it is not 0 keep their values; [solver.mask] has the keys of [initial]"});
  const bool table = config.has_table(path);
  if (v && !table) config.error_at(*v, "solver.mask is no table: [solver.mask] has the keys of [initial]");
  const std::string rule = config.text(
      "solver.mask.rule",
      {"keep", {"keep", "mirror"}, "mirror: besides, a cell that reads a masked one reads its own value instead"});
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
                       "what is added per time; has the keys of [initial], and an expression the time t"});
  }
  return false;
}

/// Reads the sources, of all fields or of none.
template <class S, int D>
[[gnu::cold]] void read_sources(Config& config, CellSettings<S, D>& in) {
  if constexpr (kTakesSources<S, D>) {
    in.sourced = has_sources(config, S::fields);
    for (const char* field : S::fields)
      if (in.sourced)
        in.given.push_back(InitialField<D>::read_table(
            config, in.grid, S::fields.size() == 1 ? std::string("source") : std::string("source.") + field,
            "constant"));
  }
}

/// Reads the coefficients; returns their largest magnitudes, as far as they are known.
template <class S, int D>
[[gnu::cold]] std::array<double, kCoefficients<S, D>> read_coefficients(Config& config, CellSettings<S, D>& in) {
  constexpr auto list = coefficients_of<S, D>();
  std::array<double, list.size()> largest{};
  std::array<std::optional<InitialField<D>>, list.size()> fields;
  in.mask = read_mask(config);
  for (std::size_t k = 0; k < list.size(); ++k) {
    const Coefficient& c = list[k];
    const std::string path = std::string("solver.") + c.name;
    if (config.has_table(path)) {
      fields[k] = InitialField<D>::read_table(config, in.grid, path);
    } else {
      in.numbers[k] = config.number(
          path, {c.fallback, c.min, c.max, false, c.unit,
                 std::string(c.help) + "; a number, or a table [" + path + "] with the keys of [initial]"});
      check_in_type(config, path, "the coefficient", in.numbers[k], in.grid.type);
      if constexpr (requires { in.solver.template formula<D>(k, in.grid); })
        if (!config.has(path))
          if (const auto formula = in.solver.template formula<D>(k, in.grid))
            fields[k] = InitialField<D>::coefficient(in.grid, path, formula, in.solver.largest(k));
    }
    largest[k] = fields[k] ? fields[k]->largest().value_or(0) : std::abs(in.numbers[k]);
    in.limit_known = in.limit_known && (!fields[k] || fields[k]->largest());
    in.fields_given = in.fields_given || fields[k];
  }
  for (std::size_t k = 0; k < list.size() && in.fields_given; ++k)
    in.given.push_back(fields[k] ? *fields[k]
                                 : InitialField<D>::coefficient(
                                       in.grid, std::string("solver.") + list[k].name,
                                       [value = in.numbers[k]](const Index<D>&) { return value; }, largest[k]));
  read_sources(config, in);
  if (in.mask != Mask::none) in.given.push_back(InitialField<D>::read_table(config, in.grid, "solver.mask"));
  return largest;
}

/// The length of a step, within the limit.
template <class S, int D>
[[gnu::cold]] double read_dt(Config& config, CellSettings<S, D>& in,
                             const std::array<double, kCoefficients<S, D>>& largest) {
  if constexpr (!kHasLimit<S, D>) {
    in.limit_known = true;  // there is none
    return read_time_step(config);
  } else {
    const std::string help = "of " + in.kind;
    if (!in.limit_known) {
      if (!config.has("solver.dt") && !config.has_errors())
        config.error("solver.dt",
                     "required key solver.dt is missing: the stability limit is not known before the values of the "
                     "coefficients are, which come from a file or an expression");
      return read_time_step(config, std::numeric_limits<double>::infinity(), help, limit_text<D>(in.kind));
    }
    const double limit = limit_of<S, D>(in.solver, in.grid, largest);
    const double dt = read_time_step(config, limit, help, limit_text<D>(in.kind));
    if (config.has_errors()) return dt;
    if (!(dt > 0))
      config.error("solver.kind",
                   "the stability limit of the time step is zero: use other parameters or larger cells");
    if (!std::isfinite(dt))
      config.error("solver.dt", "required key solver.dt is missing: with these parameters no step is too long");
    return dt;
  }
}

template <class S, int D>
[[gnu::cold]] std::unique_ptr<SolverModel<D>> make_cell_model(Config& config, const GridSettings<D>& grid,
                                                              const std::string& kind) {
  CellSettings<S, D> in;
  in.grid = grid;
  in.kind = kind;
  if constexpr (requires { S::keys; })
    for (const auto& k : S::keys)
      in.solver.*k.member = config.number(std::string("solver.") + k.name,
                                          {in.solver.*k.member, k.min, k.max, false, k.unit, k.help});
  refuse_other_reads<S, D>(in.solver, kind);
  const auto largest = read_coefficients<S, D>(config, in);
  in.dt = read_dt<S, D>(config, in, largest);
  return std::make_unique<CellModel<S, D>>(std::move(in));
}

}  // namespace detail

}  // namespace isohalo
