#pragma once
/// The solver of kind = "acoustics": p_t = -K div(v), rho v_t = -grad(p), with the pressure p in cells and the
/// velocities v0, v1, .. on faces, leapfrog (docs/model.md). Source of the staggered grid: Yee 1966, "Numerical
/// solution of initial boundary value problems involving Maxwell's equations in isotropic media".

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/halo/field.hpp"
#include "framework/halo/host_threads.hpp"
#include "framework/schedule/fastest_way.hpp"
#include "framework/schedule/stopwatch.hpp"
#include "stencils/boundary.hpp"
#include "stencils/boxes.hpp"
#include "stencils/kernel_sweep.hpp"
#include "stencils/solvers/acoustics_steps.hpp"
#include "stencils/time_tiles.hpp"

namespace isohalo {

namespace detail {

template <class T, int D>
using ChangingPointer = std::unique_ptr<const ChangingKernel<T, D>>;
template <class T, int D, class Update>
ChangingPointer<T, D> rows_in_place(const Update& update) {
  return std::make_unique<RowsInPlace<T, D, Update>>(update);
}

/// Rows of faces of dimension j, of which those at sides of the grid may have given velocities.
template <class T, int D>
class GivenFaces final : public ChangingKernel<T, D> {
 public:
  using Sides = std::array<SideFaces<D>, 2>;
  GivenFaces(ChangingPointer<T, D> rows, int j, const Sides& sides)
      : rows_(std::move(rows)), j_(j), sides_(sides) {}

  void run(const T* const* in, std::int64_t at, T* const* out, std::int64_t to, const CellRows& rows,
           const Index<D>& i) const override {
    rows_->run(in, at, out, to, rows, i);
    const bool along = j_ == D - 1;  // then a row has one face of each side, else all of them or none
    rows.template for_each<D>(i, [&](std::int64_t k, const Index<D>& first) {
      for (const SideFaces<D>& side : sides_) {
        const std::int64_t x = side.face() - first[j_];
        if (!side.given() || x < 0 || x >= (along ? rows.cells : 1)) continue;
        Index<D> face = first;
        face[j_] += x;
        T* const v = out[0] + to + k + x;
        for (std::int64_t c = 0; c < (along ? 1 : rows.cells); ++c, ++face[D - 1])
          v[c] = static_cast<T>(side.value(face));
      }
    });
  }
  void run_adding(const T* const* in, std::int64_t at, T* const* out, std::int64_t to, const CellRows& rows,
                  const Index<D>& i, double* sums, bool first) const override {
    std::array<T, 256> before;
    constexpr auto most = static_cast<std::int64_t>(before.size());
    rows.template for_each<D>(i, [&](std::int64_t k, const Index<D>& row) {
      for (std::int64_t x = 0; x < rows.cells; x += most) {
        const T* const v = out[0] + to + k + x;
        const std::int64_t n = std::min(most, rows.cells - x);
        std::copy_n(v, n, before.data());
        run(in, at + k + x, out, to + k + x, {n}, behind<D>(row, x));
        for (std::int64_t c = 0; c < n; ++c) {
          const double change = squared_change(v[c], before[static_cast<std::size_t>(c)]);
          sums[x + c] = first ? change : sums[x + c] + change;
        }
      }
      first = false;
    });
  }

 private:
  ChangingPointer<T, D> rows_;
  int j_;
  const Sides& sides_;
};

}  // namespace detail

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
    std::vector<std::string> names = acoustics_fields(D);
    if (given()) names.insert(names.end(), {"density", "bulk_modulus"});
    // With a layer more, so that fields on faces fit arrays of the same strides.
    const Index<D> high = shifted<D>(this->plan_.ghost_high(), index_of<D>(1));
    for (const std::string& name : names) {
      const int j = static_cast<int>(arrays_.size()) - 1;
      memory_.emplace_back(name, domain.owned(), this->plan_.ghost_low(), high,
                           field_memory(exchange, domain.comm()));
      Array a = memory_.back().ref();
      if (j >= 0 && j < D) {
        a.owned = owned_faces(domain, j);
        a.ghost_high[j] -= a.owned.high[j] - domain.owned().high[j];
      }
      arrays_.push_back(a);
    }
    for (int m = 0; m <= depth; ++m) levels_.push_back(make_level(m));
    given() ? make_updates<true>() : make_updates<false>();
  }

  std::vector<FieldHandle<D>> fields() override {
    std::vector<FieldHandle<D>> all{{"p", "1", "state", arrays_[0]}};
    for (int j = 0; j < D; ++j) all.push_back({"v" + std::to_string(j), "1", "state", velocity(j), j});
    return all;
  }
  std::vector<FieldHandle<D>> coefficients() override {
    if (!given()) return {};
    return {{"density", "1", "auxiliary", arrays_[D + 1]}, {"bulk_modulus", "1", "auxiliary", arrays_[D + 2]}};
  }
  /// Brings the coefficients' ghosts; outside the grid they are mirrored, whatever the fields' rules.
  void start() override {
    if (given()) {
      this->plan_.exchange(arrays_[D + 1], arrays_[D + 2]);
      const BoundaryRules<D> mirrored = detail::mirrored_rules(this->around_);
      for (std::size_t c = D + 1; c < arrays_.size(); ++c)
        fill_outside(arrays_[c], mirrored, this->domain_.global(), this->bounds(this->plan_.depth()),
                     index_of<D>(1), index_of<D>(1));
    }
    this->fields_changed();
  }

  /// In place, so never past the caches.
  void sweep_by(const SweepSettings<D>& settings) override {
    if (settings.way)
      fetches_ = fetches_with_change_ = FastestWay::decided_for(Fetch::by_way(*settings.way, 0).ahead);
  }
  std::string sweeps() const override { return Fetch::text(fetches_, fetches_with_change_); }

 protected:
  ErasedArray<D> erased(std::size_t field) const override { return erase(arrays_[field]); }
  void bring_sides(const Box<D>& cells, double time) override {
    outside_.fill(arrays_[0], cells, time);
    for (auto& of_dimension : sides_)
      for (auto& side : of_dimension) side.bring(cells, time);
  }
  void sweep(int further, bool change) override {
    FastestWay& fetches = change ? fetches_with_change_ : fetches_;
    const detail::Stopwatch watch(!fetches.decided());
    const Level& level = levels_[static_cast<std::size_t>(further)];
    const Fetch how{fetches.way() == 1};
    change ? update_with_change(level, how) : update_slabs(level, how);
    if (further > 0 || fetches.decided()) return;
    const PhaseScope scope(this->phases_, Phase::exchange);  // at the end of the trial ranks wait for each other
    fetches.took(watch.seconds(), &this->domain_.comm());
  }

 private:
  using Array = ArrayRef<T, D>;

  /// Of each field.
  using Regions = std::array<SweepRegion<D>, D + 1>;
  /// Cells, and those of their faces that no slab before has.
  struct Slab {
    std::int64_t low, high;  ///< cells of dimension 0
    Regions parts;
  };
  /// What a step updates after which so many may follow without an exchange: the block and what these read.
  struct Level {
    std::vector<Slab> slabs;  ///< in order; the pressure of one may follow its velocities
    Regions around;           ///< all of these cells and faces but those that this rank owns
  };
  /// How a field is updated.
  struct Update {
    detail::ChangingPointer<T, D> kernel;
    std::vector<T*> in{};  ///< what comes from memory besides it
  };

  bool given() const { return !this->equation_.given.empty(); }
  const Array& velocity(int j) const { return arrays_[static_cast<std::size_t>(j) + 1]; }

  template <bool Given>
  void make_updates() {
    T* const density = Given ? arrays_[D + 1].data : nullptr;
    T* const modulus = Given ? arrays_[D + 2].data : nullptr;
    const Array& p = arrays_[0];
    Update& of_p = updates_[0];
    of_p.kernel = detail::rows_in_place<T, D>(detail::pressure_update<Given>(
        this->equation_, [this](int j) { return velocity(j); }, p, modulus));
    for (int j = 0; j < D; ++j) {
      Update& of_v = updates_[static_cast<std::size_t>(j) + 1];
      of_v.kernel =
          detail::rows_in_place<T, D>(detail::velocity_update<Given>(this->equation_, j, velocity(j), p, density));
      if (sides_[j][0].given() || sides_[j][1].given())
        of_v.kernel = std::make_unique<detail::GivenFaces<T, D>>(std::move(of_v.kernel), j, sides_[j]);
      of_v.in.push_back(p.data);
      if (Given) of_v.in.push_back(density);
      of_p.in.push_back(velocity(j).data + p.stride[j]);  // the faces above, which come later
    }
    if (Given) of_p.in.push_back(modulus);
  }
  RowUpdate<T, D> update(std::size_t f) const {
    return {*updates_[f].kernel, arrays_[f], updates_[f].in, {&arrays_[f].data, 1}};
  }

  Level make_level(int further) const {
    const auto boxes = this->needed(further);
    const Box<D>& bounds = this->bounds(further);
    Level level;
    for (std::size_t f = 0; f <= D; ++f)
      level.around[f] = SweepRegion<D>(detail::without(of_cells(boxes, f), arrays_[f].owned));
    const std::int64_t thick = slab_layers(bounds);
    for (std::int64_t low = bounds.low[0]; low < bounds.high[0]; low += thick)
      level.slabs.push_back(make_slab(boxes, low == bounds.low[0] ? low - 1 : low, low + thick));
    return level;
  }
  /// With the cells low .. high-1 of dimension 0.
  Slab make_slab(const std::vector<Box<D>>& boxes, std::int64_t low, std::int64_t high) const {
    Slab slab{low, high, {}};
    for (std::size_t f = 0; f <= D; ++f) {
      auto within = of_cells(boxes, f);
      for (Box<D>& b : within) {
        b.low[0] = std::max(b.low[0], low + ahead(f));
        b.high[0] = std::min(b.high[0], high + ahead(f));
      }
      slab.parts[f] = SweepRegion<D>(within);
    }
    return slab;
  }
  /// These cells, or their faces.
  static std::vector<Box<D>> of_cells(const std::vector<Box<D>>& boxes, std::size_t f) {
    return f == 0 ? boxes : detail::faces_of(boxes, static_cast<int>(f) - 1);
  }
  /// From the lower faces of a slab on to the upper ones, which its cells read.
  static std::int64_t ahead(std::size_t f) { return f == 1 ? 1 : 0; }
  /// So many layers of cells as fill an eighth of the cache with their faces (more were slower,
  /// docs/performance.md), and as give all threads rows; of two dimensions four, whose sums are formed together.
  static std::int64_t slab_layers(const Box<D>& cells) {
    const std::int64_t threads = host_threads();
    const std::int64_t bytes = (D + 1) * static_cast<std::int64_t>(sizeof(T)) * cells.cells() / cells.extent(0);
    const std::int64_t rows = D > 2 ? 1 : threads == 1 ? 4 : 16 * threads;
    return std::max(rows, threads * second_level_cache() / 8 / std::max<std::int64_t>(1, bytes));
  }

  void update_slabs(const Level& level, const Fetch& how) const {
    for (const Slab& slab : level.slabs) in_turn([&](std::size_t f) { update_part(f, slab.parts[f], how); });
  }
  /// With the tile values of the squared changes. What other ranks own is updated apart: faces before, since all of
  /// them read the pressure of before the step, cells after.
  void update_with_change(const Level& level, const Fetch& how) {
    for (std::size_t f = 1; f <= D; ++f) update_part(f, level.around[f], {});
    const auto planes = [&](std::int64_t low, std::int64_t high) {
      in_turn([&](std::size_t f) {
        sweep_planes_with_change(*this->sums_[f], lanes_[f], low + ahead(f), high + ahead(f), update(f), how);
      });
    };
    if constexpr (D == 1)
      planes(0, 0);  // a row, all of it at one go
    else
      for (const Slab& slab : level.slabs) planes(slab.low, slab.high);
    update_part(0, level.around[0], {});
  }
  /// As isohalo::sweep, but what is fetched is what comes next in memory: where a part ends the next one begins.
  void update_part(std::size_t f, const SweepRegion<D>& part, const Fetch& how) const {
    const detail::UpdatedRows<T, D> rows(update(f), how);
    const auto work = [&rows](const Box<D>& piece, Box<D> block) {
      block.high[std::max(0, D - 2)] += std::int64_t{1} << 40;
      rows.run(piece, block);
    };
    for_each_piece_of("isohalo::sweep", part, work, 0, 1, [] {});
  }

  /// f(field) as a step updates them: the pressure last.
  template <class F>
  static void in_turn(const F& f) {
    for (std::size_t k = 1; k <= D + 1; ++k) f(k % (D + 1));
  }

  OutsideCells<D> outside_;          ///< of the pressure; no face outside the grid is read
  std::vector<Field<T, D>> memory_;  ///< of these arrays
  std::vector<Array> arrays_;        ///< p, v0, v1, .., and density and bulk modulus, if they are given
  PerDim<std::array<detail::SideFaces<D>, 2>, D> sides_;
  std::array<Update, D + 1> updates_;
  std::vector<Level> levels_;
  std::array<std::vector<double>, D + 1> lanes_;  ///< of these sums in progress
  FastestWay fetches_ = FastestWay::of(2), fetches_with_change_ = FastestWay::of(2);
};

}  // namespace isohalo
