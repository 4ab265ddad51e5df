#pragma once
/// A solver with fields that are advanced together, k steps per halo exchange: sweeps on regions that shrink by one
/// stencil reach a step, in time tiles (time_tiles.hpp).

#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/halo/field.hpp"
#include "stencils/boundary.hpp"
#include "stencils/depth_choice.hpp"
#include "stencils/field_stepper.hpp"
#include "stencils/kernel_sweep.hpp"
#include "stencils/replaced_cells.hpp"
#include "stencils/time_tiles.hpp"

namespace isohalo {

/// Of a FieldStepper of fields in the memory of the host, advanced by its rows.
template <class T, int D>
struct HostParts {
  using Field = isohalo::Field<T, D>;
  using Outside = OutsideCells<D>;
  using Kernel = RowKernel<T, D>;
  using Sum = ChangeSum<T, D>;
};

#define ISOHALO_DECLARE(T, D) extern template class FieldStepper<T, D, HostParts<T, D>>;
ISOHALO_FOR_EACH_FIELD(ISOHALO_DECLARE)
#undef ISOHALO_DECLARE

/// A FieldStepper by row kernels on the host, in time tiles (time_tiles.hpp) where several steps follow an
/// exchange.
template <class T, int D>
class StateStepper : public FieldStepper<T, D, HostParts<T, D>> {
  using Base = FieldStepper<T, D, HostParts<T, D>>;

 public:
  using typename Base::Kernels;
  using typename Base::MakeKernels;

  /// See FieldStepper. Collective in order.
  StateStepper(const StateFields& names, const CartesianDomain<D>& domain, const StateShapes<D>& shapes,
               const std::vector<BoundaryRules<D>>& rules, int depth, const MakeKernels& make_kernels,
               Exchange exchange = Exchange::automatic);
  /// Of one field of that name: `make_row(stride)` builds its kernel, or an array of kernels that take turns.
  template <class MakeRow>
  StateStepper(const std::string& name, const CartesianDomain<D>& domain, const StencilShape<D>& shape,
               const BoundaryRules<D>& rules, int depth, const MakeRow& make_row,
               Exchange exchange = Exchange::automatic)
      : StateStepper(
            StateFields{{name}}, domain, shape, std::vector{rules}, depth,
            [&](const Index<D>& stride) {
              Kernels kernels;
              const auto made = make_row(stride);
              if constexpr (requires { std::begin(made); })
                for (const auto& row : made) kernels.push_back(row_kernel<T, D>(row));
              else
                kernels.push_back(row_kernel<T, D>(made));
              return kernels;
            },
            exchange) {}

  ~StateStepper() override;

  std::string sweeps() const override;
  void try_depths(const std::vector<int>& depths) override;
  void sweep_by(const SweepSettings<D>& settings) override;

  /// The field before the last step, which took one stage; its ghosts are of no use. A kernel may read it in the
  /// cells that it writes: they hold it until then.
  const ArrayRef<T, D>& previous() const { return next_[0].ref(); }
  /// For such a kernel: from now on exchanges that several steps follow bring its ghosts, too. Steps then do not
  /// overlap them, since they write what is being sent.
  void exchange_previous() { previous_read_ = true; }

  /// For two kernels that take turns, of a single field, and that together are one step of a method: from now on a
  /// change sum is of the last two steps. Not for coefficients that depend on the time.
  void change_over_two() { change_over_two_ = true; }
  /// For two such kernels, each of which changes cells of one colour and reads adjacent ones of the other: from now
  /// on steps in tiles write what they read. Then they must come in pairs. A kernel that is called with one array
  /// leaves the cells of the other colour alone.
  void update_in_place() { in_place_ = true; }

  /// v = f(v) in every cell of the first field that holds a value, ghosts included, so that they stay copies of
  /// each other. Local.
  template <class F>
  void change_all(const F& f) {
    const ArrayRef<T, D> u = now_[0].ref();
    const PhaseScope scope(phases_, Phase::sweep);
    for_each_row_of("isohalo::shift", level(steps_left_).all.in_blocks, [&](const Index<D>& i, std::int64_t n) {
      T* const row = &u.at(i);
      for (std::int64_t x = 0; x < n; ++x) row[x] = f(row[x]);
    });
  }

  double advance(std::int64_t steps, bool change) override;

  /// Extents of the tiles of the last steps of this depth, without a change sum if there were such; 0: there were
  /// none.
  const Index<D>& time_tile() const { return tiles_taken().extents; }

 private:
  using Base::around_, Base::domain_, Base::outside_, Base::overlap_, Base::plans_, Base::previous_read_;
  using Base::before_, Base::writes_, Base::in_time_, Base::kernels_, Base::names_, Base::phases_, Base::reducer_;
  using Base::depth_, Base::sweeps_, Base::steps_left_, Base::step_, Base::layers_high_, Base::layers_low_;
  using Base::now_, Base::next_, Base::third_, Base::coefficients_, Base::inner_, Base::shapes_, Base::deepest_;
  using typename Base::Fields;
  using typename Base::Kernel;

  /// Cells to be swept, in blocks of rows and, of three dimensions and more, plane by plane: which is faster is
  /// tried out.
  struct Region {
    SweepRegion<D> in_blocks, by_planes;
  };
  Region in_orders(const std::vector<Box<D>>& boxes) const;
  const SweepRegion<D>& ordered(const Region& r) const { return orders_.way() == 0 ? r.in_blocks : r.by_planes; }

  /// What this kernel, of a stage, reads and writes. Good until the next call.
  RowUpdate<T, D> update(const Kernel& kernel, const Fields& in, const Fields& out, int stage) {
    return {kernel, in[0].ref(), this->reads(in, out, stage), this->addresses(out, writes_)};
  }

  /// From the next exchange on, which comes next, so many steps follow one.
  void go_deep(int depth);
  /// Are depths tried out? Once sweeps are as they stay.
  bool tries_depths() const { return !depth_choice_.decided() && sweeps_decided() && overlap_.decided(); }
  bool sweeps_decided() const { return fetches_.decided() && orders_.decided(); }

  /// Is the next step to overlap exchange and sweep, if it can? It is tried out once sweeps are as they stay. Steps
  /// in tiles gain more than an exchange costs that comes once in several steps. The same on all ranks.
  bool overlaps() const { return sweeps_ == 1 && overlap_.way() == 1 && (overlap_.decided() || sweeps_decided()); }
  Fetch fetch(const FastestWay& ways) const {
    Fetch how = Fetch::by_way(ways.way(), lead_);
    how.in_cache = in_cache_;
    return how;
  }

  /// Between the parts of an interior, messages that MPI moves only when it is called get on.
  static constexpr std::int64_t kParts = 16;

  /// What lies `m` steps around the block.
  struct Level {
    Region all;
    SweepRegion<D> shell;
    std::vector<Box<D>> boxes;  ///< of `all`, the largest first
  };
  const Level& level(int m) const { return levels_[static_cast<std::size_t>(m)]; }

  /// At least one step and at most so many; returns how many. Where all are done `sum` becomes the change sum, if
  /// it is wanted.
  std::int64_t advance_some(std::int64_t most, bool change, double& sum);
  /// One part of a tile: step q of so many, `further` steps before the next exchange. Before the last one the
  /// outside cells that the next one reads; after it the tile values of the change, if they are wanted.
  /// `lines`: the part, and in ghosts the rest of its cache lines.
  void sweep_part(int further, const Box<D>& lines, int q, int steps, bool change, const TimeTiles<D>& tiles);
  const TimeTiles<D>& tiles_taken() const { return tiles_taken_[tiles_taken_[0].extents[0] > 0 ? 0 : 1]; }
  /// A box, longer by the cells of the same cache lines where its rows end in ghosts, so that vectors have no cells
  /// left over. Cells that are needed read none of these. They overwrite values of two steps ago, as all do: who
  /// needed those has read them, in this tile or an earlier one.
  Box<D> in_whole_lines(Box<D> box) const;
  /// `part` and beside a side of the grid the cells that outside ones mirror. They have their values of the same
  /// step: those that lie lower are of earlier tiles, and less than a skew away, so that the step after the next
  /// has not come to them.
  Box<D> with_mirrored(Box<D> part, const Box<D>& bounds) const;

  double step(bool change);
  void sweep_stage(const Kernel& kernel, const Fields& in, const Fields& out, int stage,
                   bool interior_done) override;
  double sweep_stage_with_change(const Kernel& kernel, const Fields& in, const Fields& out, int stage) override;
  void sweep_interior(const Fields& u) override;
  void bring_coefficients(int further, int stage) override {
    give_coefficients(level(further).all.in_blocks, step_, this->after(stage));
  }
  /// The coefficients that depend on the time, so many steps after `step`, in these cells.
  template <class Cells>
  void give_coefficients(const Cells& cells, std::int64_t step, double after);

  DepthChoice depth_choice_;
  bool change_over_two_ = false, in_place_ = false;
  Region interior_;  ///< of the first step after an exchange, as `rest_`
  SweepRegion<D> rest_;
  std::vector<Level> levels_;
  std::map<int, TileSizes<D>> tilings_;  ///< by reaches
  bool tiles_tried_ = false;             ///< by the last steps
  TimeTiles<D> tiles_taken_[2];          ///< by the last steps in tiles, without and with a change sum
  std::int64_t lead_ = 0;                ///< see Fetch, as `in_cache_`
  bool in_cache_ = false;
  std::optional<Index<D>> forced_tile_;
  FastestWay fetches_ = FastestWay::of(Fetch::kWays),
             fetches_with_change_ = FastestWay::of(D > 1 && sizeof(T) > 1 ? Fetch::kWaysOfSums : Fetch::kWays);
  FastestWay orders_ = FastestWay::decided_for(0);  ///< tried once `fetches_` are decided; 0: in blocks
  ReplacedCells<T, D> replaced_;                    ///< of steps in place with a change sum
  std::vector<double> scratch_;
};

}  // namespace isohalo
