#pragma once
/// The solver of kind = "acoustics": p_t = -K div(v), rho v_t = -grad(p), with the pressure p in cells and the
/// velocities v0, v1, .. on faces, leapfrog (docs/model.md). Source of the staggered grid: Yee 1966, "Numerical
/// solution of initial boundary value problems involving Maxwell's equations in isotropic media".

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "framework/halo/field.hpp"
#include "framework/halo/host_threads.hpp"
#include "framework/schedule/fastest_way.hpp"
#include "stencils/boundary.hpp"
#include "stencils/boxes.hpp"
#include "stencils/solvers/acoustics_rows.hpp"
#include "stencils/solvers/acoustics_steps.hpp"
#include "stencils/solvers/acoustics_sweep.hpp"
#include "stencils/sweep.hpp"
#include "stencils/time_tiles.hpp"

namespace isohalo {

template <class T, int D>
class AcousticsSolver final : public AcousticsSteps<D> {
  using Base = AcousticsSteps<D>;

 public:
  /// `depth` >= 1 steps per exchange. Collective in order.
  AcousticsSolver(const CartesianDomain<D>& domain, const AcousticsEquation<D>& equation, int depth,
                  Exchange exchange)
      : Base(domain, equation, depth, exchange, host_workers(), false),
        outside_(equation.pressure_rules(), domain.global(), index_of<D>(1), index_of<D>(1)),
        sides_(detail::faces_at_sides(equation, domain.global())) {
    const auto add = [&](std::vector<Field<T, D>>& list, const std::string& name, const Box<D>& owned) {
      list.emplace_back(name, owned, this->plan_.ghost_low(), this->plan_.ghost_high(),
                        field_memory(exchange, domain.comm()));
    };
    for (const char* name : {"density", "bulk_modulus"})
      if (!equation.given.empty()) add(given_, name, domain.owned());
    add(fields_, "p", domain.owned());
    for (int j = 0; j < D; ++j) {
      add(fields_, "v" + std::to_string(j), owned_faces(domain, j));
      a_[j] = equation.a(j);
      b_[j] = equation.b(j);
    }
    for (int m = 0; m <= depth; ++m) levels_.push_back(make_level(m));
  }

  std::vector<FieldHandle<D>> fields() override {
    std::vector<FieldHandle<D>> all{{"p", "1", "state", pressure()}};
    for (int j = 0; j < D; ++j) all.push_back({"v" + std::to_string(j), "1", "state", velocity(j), j});
    return all;
  }
  std::vector<FieldHandle<D>> coefficients() override {
    if (given_.empty()) return {};
    return {{"density", "1", "auxiliary", given_[0].ref()}, {"bulk_modulus", "1", "auxiliary", given_[1].ref()}};
  }
  /// Brings the coefficients' ghosts; outside the grid they are mirrored, whatever the fields' rules.
  void start() override {
    if (!given_.empty()) {
      this->plan_.exchange(given_[0].ref(), given_[1].ref());
      const BoundaryRules<D> mirrored = detail::mirrored_rules(this->around_);
      for (const Field<T, D>& c : given_)
        fill_outside(c.ref(), mirrored, this->domain_.global(), this->bounds(this->plan_.depth()), index_of<D>(1),
                     index_of<D>(1));
    }
    this->fields_changed();
  }

  /// In place, so never past the caches.
  void sweep_by(const SweepSettings<D>& settings) override {
    if (settings.way) fetches_ = fetches_with_change_ = FastestWay::decided_for(*settings.way > 0);
  }
  std::string sweeps() const override { return Fetch::text(fetches_); }

 protected:
  ErasedArray<D> erased(std::size_t field) const override { return erase(fields_[field].ref()); }
  void bring_sides(const Box<D>& cells, double time) override {
    outside_.fill(pressure(), cells, time);
    for (auto& of_dimension : sides_)
      for (auto& side : of_dimension) side.bring(cells, time);
  }
  void sweep(int further, bool change) override {
    const auto start = std::chrono::steady_clock::now();
    FastestWay& fetches = change ? fetches_with_change_ : fetches_;
    const Level& level = levels_[static_cast<std::size_t>(further)];
    const Fetch how{fetches.way() == 1};
    given_.empty() ? sweep_fields<false>(level, change, how) : sweep_fields<true>(level, change, how);
    if (further > 0) return;
    const PhaseScope scope(this->phases_, Phase::exchange);  // at the end of the trial ranks wait for each other
    fetches.took(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
                 &this->domain_.comm());
  }

 private:
  using Array = ArrayRef<T, D>;

  /// Cells, and those of their faces that no slab before has.
  struct Slab {
    std::int64_t low, high;  ///< cells of dimension 0
    PerDim<SweepRegion<D>, D> faces;
    SweepRegion<D> cells;
  };
  /// What a step updates after which so many may follow without an exchange: the block and what these read.
  struct Level {
    std::vector<Slab> slabs;                 ///< in order; the pressure of one may follow its velocities
    SweepRegion<D> cells_around;             ///< all cells but the block
    PerDim<SweepRegion<D>, D> faces_around;  ///< of these cells; all but those that this rank owns
  };

  const Array& pressure() const { return fields_[0].ref(); }
  const Array& velocity(int j) const { return fields_[static_cast<std::size_t>(j) + 1].ref(); }

  Level make_level(int further) const {
    const auto boxes = this->needed(further);
    const Box<D>&owned = this->domain_.owned(), &bounds = this->bounds(further);
    Level level;
    level.cells_around = SweepRegion<D>(detail::without(boxes, owned));
    for (int j = 0; j < D; ++j)
      level.faces_around[j] = SweepRegion<D>(detail::without(detail::faces_of(boxes, j), velocity(j).owned));
    const std::int64_t thick = slab_layers(bounds);
    for (std::int64_t low = bounds.low[0]; low < bounds.high[0]; low += thick)
      level.slabs.push_back(make_slab(boxes, low == bounds.low[0] ? low - 1 : low, low + thick));
    return level;
  }
  /// With the cells low .. high-1 of dimension 0.
  Slab make_slab(const std::vector<Box<D>>& boxes, std::int64_t low, std::int64_t high) const {
    const auto within = [](std::vector<Box<D>> all, std::int64_t first, std::int64_t end) {
      for (Box<D>& b : all) {
        b.low[0] = std::max(b.low[0], first);
        b.high[0] = std::min(b.high[0], end);
      }
      return SweepRegion<D>(all);
    };
    Slab slab{.low = low, .high = high, .faces = {}, .cells = within(boxes, low, high)};
    for (int j = 0; j < D; ++j) slab.faces[j] = within(detail::faces_of(boxes, j), low + ahead(j), high + ahead(j));
    return slab;
  }
  /// From the lower faces of a slab on to the upper ones, which its cells read.
  static std::int64_t ahead(int j) { return j == 0 ? 1 : 0; }
  /// So many layers of cells as fit the cache with their faces, and as give all threads rows.
  static std::int64_t slab_layers(const Box<D>& cells) {
    const std::int64_t threads = host_threads();
    const std::int64_t bytes = (D + 1) * static_cast<std::int64_t>(sizeof(T)) * cells.cells() / cells.extent(0);
    const std::int64_t rows = D > 2 || threads == 1 ? 1 : 16 * threads;
    return std::max(rows, threads * second_level_cache() / 2 / std::max<std::int64_t>(1, bytes));
  }

  /// `change`: with the tile values of the squared changes. What other ranks own is updated apart then: faces
  /// before, since all of them read the pressure of before the step, cells after.
  template <bool Given>
  void sweep_fields(const Level& level, bool change, const Fetch& how) {
    if (!change) {
      for (const Slab& slab : level.slabs) {
        for (int j = 0; j < D; ++j)
          with_velocity<Given>(j, [&](const auto& in, const auto& out, const auto& row) {
            detail::sweep_in_place(slab.faces[j], in, out, row, how);
          });
        with_pressure<Given>([&](const auto& in, const auto& out, const auto& row) {
          detail::sweep_in_place(slab.cells, in, out, row, how);
        });
      }
      return;
    }
    for (int j = 0; j < D; ++j)
      with_velocity<Given>(j, [&](const auto& in, const auto& out, const auto& row) {
        detail::sweep_in_place(level.faces_around[j], in, out, row);
      });
    const auto update = [&](std::int64_t low, std::int64_t high) {
      for (int j = 0; j < D; ++j)
        with_velocity<Given>(j, [&](const auto& in, const auto& out, const auto& row) {
          const auto f = static_cast<std::size_t>(j) + 1;
          detail::update_with_change(*this->sums_[f], lanes_[f], low + ahead(j), high + ahead(j), in, out, row,
                                     how);
        });
      with_pressure<Given>([&](const auto& in, const auto& out, const auto& row) {
        detail::update_with_change(*this->sums_[0], lanes_[0], low, high, in, out, row, how);
      });
    };
    if constexpr (D == 1)
      update(0, 0);  // a row, all of it at one go
    else
      for (const Slab& slab : level.slabs) update(slab.low, slab.high);
    with_pressure<Given>([&](const auto& in, const auto& out, const auto& row) {
      detail::sweep_in_place(level.cells_around, in, out, row);
    });
  }

  /// f(what it reads, what it writes, row kernel).
  template <bool Given, class F>
  void with_velocity(int j, const F& f) const {
    using Row = VelocityRow<T, D, Given>;
    std::array<Array, Row::kReads> in{pressure()};
    if constexpr (Given) in[1] = given_[0].ref();
    std::array<std::int64_t, Row::kReads> below;
    for (std::size_t k = 0; k < in.size(); ++k) below[k] = in[k].stride[j];
    const Row row(below, a_[j], this->equation_.dt, this->equation_.grid.spacing[j]);
    f(in, velocity(j),
      [&](const std::array<const T*, Row::kReads>& from, T* to, std::int64_t n, const Index<D>& i,
          double* changes) {
        PerDim<T, 2> given_before{};  // in rows along j, which have a face of each side
        for (std::size_t s = 0; s < 2; ++s) {
          const std::int64_t x = given_face(s, j, i, n);
          if (x >= 0 && j < D - 1) return give_faces(sides_[j][s], i, to, n, changes);
          if (x >= 0) given_before[s] = to[x];
        }
        row(from, to, n, changes);
        for (std::size_t s = 0; s < 2; ++s) {
          const std::int64_t x = given_face(s, j, i, n);
          if (x < 0) continue;
          to[x] = given_before[s];
          Index<D> face = i;
          face[j] += x;
          give_faces(sides_[j][s], face, to + x, 1, changes ? changes + x : nullptr);
        }
      });
  }
  template <bool Given, class F>
  void with_pressure(const F& f) const {
    using Row = PressureRow<T, D, Given>;
    std::array<Array, Row::kReads> in;
    Index<D> below;
    for (int j = 0; j < D; ++j) {
      Array& v = in[static_cast<std::size_t>(j)];
      v = velocity(j);
      v.data += v.stride[j];  // the faces above
      below[j] = v.stride[j];
    }
    if constexpr (Given) in[D] = given_[1].ref();
    const Row row(below, b_, this->equation_.dt, this->equation_.grid.spacing);
    f(in, pressure(),
      [&row](const std::array<const T*, Row::kReads>& from, T* to, std::int64_t n, const Index<D>&,
             double* changes) { row(from, to, n, changes); });
  }

  /// The first of the n faces from i on whose velocity side s gives; -1: none.
  std::int64_t given_face(std::size_t s, int j, const Index<D>& i, std::int64_t n) const {
    const std::int64_t x = sides_[j][s].face() - i[j];
    return sides_[j][s].given() && x >= 0 && x < (j == D - 1 ? n : 1) ? x : -1;
  }
  /// Gives the n faces from i on their velocities, and the squared changes.
  void give_faces(const detail::SideFaces<D>& side, Index<D> i, T* v, std::int64_t n, double* changes) const {
    for (std::int64_t x = 0; x < n; ++x, ++i[D - 1]) {
      const auto old = static_cast<double>(v[x]);
      v[x] = static_cast<T>(side.value(i));
      const double change = static_cast<double>(v[x]) - old;
      if (changes) changes[x] = change * change;
    }
  }

  OutsideCells<D> outside_;          ///< of the pressure; no face outside the grid is read
  std::vector<Field<T, D>> fields_;  ///< p, v0, v1, ..
  std::vector<Field<T, D>> given_;   ///< density and bulk modulus, or none
  PerDim<double, D> a_{}, b_{};
  PerDim<std::array<detail::SideFaces<D>, 2>, D> sides_;
  std::vector<Level> levels_;
  std::array<std::vector<double>, D + 1> lanes_;  ///< of these sums in progress
  FastestWay fetches_ = FastestWay::of(2), fetches_with_change_ = FastestWay::of(2);
};

}  // namespace isohalo
