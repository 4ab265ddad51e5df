#pragma once
/// A solver with fields on faces, on the host's rows.

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
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
#include "stencils/staggered_functions.hpp"
#include "stencils/staggered_steps.hpp"
#include "stencils/time_tiles.hpp"

namespace isohalo {

namespace detail {

template <class T, int D>
using ChangingPointer = std::unique_ptr<const ChangingKernel<T, D>>;
template <class T, int D, class Update>
ChangingPointer<T, D> rows_in_place(const Update& update) {
  return std::make_unique<RowsInPlace<T, D, Update>>(update);
}

/// Rows of faces of dimension j, of which those at sides of the grid may have given values.
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

template <class S, class T, int D>
class StaggeredSolver final : public StaggeredSteps<D> {
  using Base = StaggeredSteps<D>;

 public:
  /// `depth` >= 1 steps per exchange. Collective in order.
  StaggeredSolver(const detail::CellSettings<S, D>& in, const CartesianDomain<D>& domain, int depth,
                  Exchange exchange)
      : Base(domain, in.staggered(), depth, exchange, host_workers(), false),
        sides_(detail::faces_at_sides(this->names_.rules_of_faces(), domain.global())) {
    for (const auto& rules : this->names_.rules_of_cells())
      outside_.emplace_back(rules, domain.global(), index_of<D>(1), index_of<D>(1));
    // With a layer more, so that fields on faces fit arrays of the same strides.
    const Index<D> high = shifted<D>(this->plan_.ghost_high(), index_of<D>(1));
    const auto add = [&](const std::string& name, int face) {
      memory_.emplace_back(name, domain.owned(), this->plan_.ghost_low(), high,
                           field_memory(exchange, domain.comm()));
      Array a = memory_.back().ref();
      if (face >= 0) {
        a.owned = owned_faces(domain, face);
        a.ghost_high[face] -= a.owned.high[face] - domain.owned().high[face];
      }
      arrays_.push_back(a);
    };
    for (std::size_t f = 0; f < names().state.size(); ++f) add(names().state[f], names().face_of(f));
    for (const std::string& name : names().coefficients) add(name, -1);
    for (int m = 0; m < depth; ++m) levels_.push_back(make_level(m));
    slabs_.extents = this->bounds(depth).extents();
    slabs_.extents[0] = std::min(slabs_.extents[0], slab_layers(this->bounds(depth)));
    tile_by({});
    in.fields_given ? make_updates<Given::fields>(in) : make_updates<Given::numbers>(in);
    in.for_each_source_in_time([this](std::size_t c, const auto& values) { this->change_in_time(c, values); });
  }

  /// Brings the coefficients' ghosts; outside the grid they are mirrored, whatever the fields' rules.
  void start() override {
    const auto given = std::span(arrays_).subspan(names().state.size());
    std::vector<ErasedArray<D>> erased;
    for (const Array& c : given) erased.push_back(erase(c));
    if (!erased.empty()) this->plan_.exchange(erased);
    for (const Array& c : given)
      fill_outside(c, detail::mirrored_rules(this->around_), this->domain_.global(),
                   this->bounds(this->plan_.depth()), index_of<D>(1), index_of<D>(1));
    this->fields_changed();
  }

  /// In place, so never past the caches.
  void sweep_by(const SweepSettings<D>& settings) override {
    if (settings.way)
      fetches_ = fetches_with_change_ = FastestWay::decided_for(Fetch::by_way(*settings.way, 0).ahead);
    tile_by(settings.tile);
  }
  std::string sweeps() const override {
    return tiled_ ? tiles_.now(false).text(this->domain_.owned().extents())
                  : Fetch::text(fetches_, fetches_with_change_);
  }

 protected:
  AnyArray<D> host_array(std::size_t f) const override { return arrays_[f]; }
  ErasedArray<D> erased(std::size_t f) const override { return erase(arrays_[f]); }
  void sweep(int steps, int further, bool change) override {
    if (steps > 1) return sweep_in_tiles(steps, further);
    FastestWay& fetches = change ? fetches_with_change_ : fetches_;
    const detail::Stopwatch watch(!fetches.decided());
    const Fetch how{fetches.way() == 1};
    change ? update_with_change(further, how) : update_in(slabs_, 1, further, how);
    if (further > 0 || fetches.decided()) return;
    const PhaseScope scope(this->phases_, Phase::exchange);  // at the end of the trial ranks wait for each other
    fetches.took(watch.seconds(), &this->domain_.comm());
  }

 private:
  using Array = ArrayRef<T, D>;

  /// Of each part of a step: the cells, and the faces of each dimension.
  using Regions = std::array<std::vector<Box<D>>, D + 1>;
  /// What a step updates after which so many may follow without an exchange.
  struct Level {
    Regions all;
    Regions around;  ///< but what this rank owns
  };
  /// How a part is updated.
  struct Update {
    detail::ChangingPointer<T, D> kernel;
    std::vector<T*> out{}, in{};  ///< what comes from memory besides it
  };

  const StaggeredFields<D>& names() const { return this->names_; }
  /// An array of this part.
  const Array& array_of(std::size_t part) const { return arrays_[part == 0 ? 0 : names().cells() + part - 1]; }

  template <Given kGiven>
  void make_updates(const detail::CellSettings<S, D>& in) {
    const auto array = [this](std::size_t f) -> const Array& { return arrays_[f]; };
    const std::size_t cells = names().cells();
    const auto add_given = [&](Update& update) {
      for (std::size_t k = 0; k < in.first_source(); ++k) update.in.push_back(array(cells + D + k).data);
      if (in.has_mask()) update.in.push_back(array(cells + D + in.place_of_mask()).data);
    };
    Update& of_cells = updates_[0];
    detail::with_amended<T>(in, detail::cell_update<kGiven, T>(in, array), array,
                            [&](const auto& u) { of_cells.kernel = detail::rows_in_place<T, D>(u); });
    for (std::size_t f = 0; f < cells; ++f) of_cells.out.push_back(arrays_[f].data);
    for (int j = 0; j < D; ++j) {
      Update& of_faces = updates_[static_cast<std::size_t>(j) + 1];
      detail::with_masked<T>(in, detail::face_update<kGiven, T>(in, j, array), array,
                             [&](const auto& u) { of_faces.kernel = detail::rows_in_place<T, D>(u); });
      if (sides_[j][0].given() || sides_[j][1].given())
        of_faces.kernel = std::make_unique<detail::GivenFaces<T, D>>(std::move(of_faces.kernel), j, sides_[j]);
      const Array& v = array_of(static_cast<std::size_t>(j) + 1);
      of_faces.out = {v.data};
      of_faces.in = of_cells.out;
      of_cells.in.push_back(v.data + v.stride[j]);  // the faces above, which come later
      add_given(of_faces);
    }
    add_given(of_cells);
    for (std::size_t f = 0; f < cells && in.sourced; ++f)
      of_cells.in.push_back(array(cells + D + in.first_source() + f).data);
  }
  RowUpdate<T, D> update(std::size_t part) const {
    const Update& u = updates_[part];
    return {*u.kernel, array_of(part), u.in, u.out};
  }

  Level make_level(int further) const {
    const auto cells = this->needed(further);
    Level level;
    for (std::size_t f = 0; f <= D; ++f) {
      level.all[f] = f == 0 ? cells : detail::faces_of(cells, static_cast<int>(f) - 1);
      level.around[f] = detail::without(level.all[f], array_of(f).owned);
    }
    return level;
  }
  void tile_by(const std::optional<Index<D>>& forced) {
    const std::int64_t bytes =
        static_cast<std::int64_t>((names().state.size() + names().coefficients.size()) * sizeof(T));
    tiles_ = TileSizes<D>::of(this->domain_.owned().extents(), index_of<D>(1), bytes, 64 / sizeof(T), this->depth(),
                              host_threads(), 1, forced);
  }
  /// From the lower faces of a slab on to the upper ones, which its cells read.
  static std::int64_t ahead(std::size_t f) { return f == 1 ? 1 : 0; }
  /// So many layers of cells as fill an eighth of the cache with their faces (more were slower,
  /// docs/performance.md), and as give all threads rows; of two dimensions four, whose sums are formed together.
  std::int64_t slab_layers(const Box<D>& cells) const {
    const std::int64_t threads = host_threads();
    const std::int64_t bytes =
        static_cast<std::int64_t>(names().state.size() * sizeof(T)) * cells.cells() / cells.extent(0);
    const std::int64_t rows = D > 2 ? 1 : threads == 1 ? 4 : 16 * threads;
    return std::max(rows, threads * second_level_cache() / 8 / std::max<std::int64_t>(1, bytes));
  }

  /// Steps that follow each other through the block, tile by tile, while it is in cache.
  void sweep_in_tiles(int steps, int further) {
    tiled_ = true;
    const bool whole = steps == this->depth() && !tiles_.ways[0].decided();  // others take other times
    const detail::Stopwatch watch(whole);
    update_in(tiles_.now(false), steps, further, {.in_cache = true});
    if (whole) tiles_.ways[0].took(watch.seconds());
  }
  /// So many steps, after which `further` ones may follow, in such tiles, of each part the faces first. With its
  /// cells a part has the faces above them: those below are of the parts before, but at the edge of the region. So
  /// a face reads cells that have the values of the step before, and no part that comes later reads what this one
  /// overwrites: the next step's cells lie a skew lower, their faces above them no higher than this one's cells.
  void update_in(const TimeTiles<D>& tiles, int steps, int further, const Fetch& how) {
    const PhaseScope scope(this->phases_, Phase::sweep);
    const auto after = [&](int q) { return further + steps - 1 - q; };
    const auto region = [&](int q) -> const Box<D>& { return this->bounds(after(q)); };
    if (steps == 1) bring_sides(this->bounds(further + 1), this->time(0));
    tiles.for_each_part(steps, region, [&](int q, const Box<D>& part) {
      if (steps > 1) bring_sides(part, this->time(q));
      const Level& level = levels_[static_cast<std::size_t>(after(q))];
      bring_in_time(level.all[0], part, this->time_of_sources(q));
      Fetch of_cells = how;  // which have all arrays
      of_cells.next = tiles.next(q, steps, region(0), arrays_[0].stride);
      in_turn([&](std::size_t f) {
        Box<D> of_part = part;
        if (f > 0) {
          const std::size_t j = f - 1;
          if (part.low[j] > region(q).low[j]) ++of_part.low[j];
          ++of_part.high[j];
        }
        update_part(f, level.all[f], of_part, f == 0 ? of_cells : how);
      });
    });
  }
  /// The fields in cells outside the grid, and the values that faces are given, around and at these cells.
  void bring_sides(const Box<D>& cells, double time) {
    const PhaseScope scope(this->phases_, Phase::boundary);
    for (std::size_t f = 0; f < outside_.size(); ++f) outside_[f].fill(arrays_[f], cells, time);
    for (auto& of_dimension : sides_)
      for (auto& side : of_dimension) side.bring(cells, time);
  }
  void bring_in_time(const std::vector<Box<D>>& boxes, const Box<D>& part, double time) {
    for (const auto& c : this->in_time_)
      for (const Box<D>& b : boxes)
        if (const Box<D> cells = b.intersect(part); !cells.empty())
          c.give(arrays_[names().state.size() + c.index()], cells, time);
  }
  /// With the tile values of the squared changes. What other ranks own is updated apart: faces before, since all of
  /// them read cells of before the step, cells after.
  void update_with_change(int further, const Fetch& how) {
    const Box<D>&all = this->bounds(further + 1), &bounds = this->bounds(further);
    bring_sides(all, this->time(0));
    const PhaseScope scope(this->phases_, Phase::sweep);
    const Level& level = levels_[static_cast<std::size_t>(further)];
    bring_in_time(level.all[0], bounds, this->time_of_sources(0));
    const Box<D> everywhere{all.low, shifted<D>(all.high, index_of<D>(1))};
    for (std::size_t f = 1; f <= D; ++f) update_part(f, level.around[f], everywhere, {});
    const auto planes = [&](std::int64_t low, std::int64_t high) {
      in_turn([&](std::size_t f) {
        sweep_planes_with_change(*this->sums_[f], lanes_[f], low + ahead(f), high + ahead(f), update(f), how);
      });
    };
    if constexpr (D == 1)
      planes(0, 0);  // a row, all of it at one go
    else
      for (std::int64_t low = bounds.low[0]; low < bounds.high[0]; low += slabs_.extents[0])
        planes(low == bounds.low[0] ? low - 1 : low, low + slabs_.extents[0]);
    update_part(0, level.around[0], everywhere, {});
  }
  /// What these boxes have of it. What is fetched is what comes next in memory: where a part ends the next one
  /// begins.
  void update_part(std::size_t f, const std::vector<Box<D>>& boxes, const Box<D>& part, const Fetch& how) const {
    const detail::UpdatedRows<T, D> rows(update(f), how);
    for (const Box<D>& b : boxes) {
      const Box<D> common = b.intersect(part);
      if (common.empty()) continue;
      for_each_share_of("isohalo::sweep", common, [&](const Box<D>& piece) {
        Box<D> block = common;
        block.high[std::max(0, D - 2)] += std::int64_t{1} << 40;
        rows.run(piece, block);
      });
    }
  }

  /// f(part) as a step updates them: the cells last.
  template <class F>
  static void in_turn(const F& f) {
    for (std::size_t k = 1; k <= D + 1; ++k) f(k % (D + 1));
  }

  std::vector<OutsideCells<D>> outside_;  ///< of the fields in cells; no face outside the grid is read
  std::vector<Field<T, D>> memory_;       ///< of these arrays
  std::vector<Array> arrays_;             ///< the state's, then those of what is given as fields
  PerDim<std::array<detail::SideFaces<D>, 2>, D> sides_;
  std::array<Update, D + 1> updates_;
  std::vector<Level> levels_;
  TimeTiles<D> slabs_;                            ///< of a single step
  TileSizes<D> tiles_;                            ///< of several
  bool tiled_ = false;                            ///< some steps were
  std::array<std::vector<double>, D + 1> lanes_;  ///< of these sums in progress
  FastestWay fetches_ = FastestWay::of(2), fetches_with_change_ = FastestWay::of(2);
};

}  // namespace isohalo
