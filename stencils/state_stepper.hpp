#pragma once
/// A solver with fields that are advanced together, k steps per halo exchange: sweeps on regions that shrink by one
/// stencil reach a step, in time tiles (time_tiles.hpp).

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/halo/field.hpp"
#include "framework/halo/halo_plan.hpp"
#include "framework/run/solver.hpp"
#include "framework/schedule/fastest_way.hpp"
#include "stencils/boundary.hpp"
#include "stencils/depth_choice.hpp"
#include "stencils/kernel_sweep.hpp"
#include "stencils/overlap_choice.hpp"
#include "stencils/state_fields.hpp"
#include "stencils/time_tiles.hpp"

namespace isohalo {

/// Advances fields by kernels, one for each stage; or, of one stage, by one kernel or several that take turns.
/// Every owned cell after every step has the bits that single steps on one rank give. A kernel reads the fields;
/// then, where there are several stages, the fields at the step's begin, or, where there are such, the fields a
/// step before; then the coefficients. It writes the fields.
template <class T, int D>
class StateStepper : public Solver<D> {
 public:
  using Kernels = std::vector<KernelPointer<T, D>>;
  using MakeKernels = std::function<Kernels(const Index<D>& stride)>;

  /// `rules`: of each field. `make_kernels(stride)` builds the kernels for the fields' strides. `depth` >= 1 steps
  /// per exchange. Collective in order.
  StateStepper(const StateFields& names, const CartesianDomain<D>& domain, const StencilShape<D>& shape,
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

  const ArrayRef<T, D>& field() const { return now_[0].ref(); }
  std::vector<FieldHandle<D>> fields() override;
  std::vector<FieldHandle<D>> coefficients() override;
  std::string residual_of() const override { return names_.change(); }
  ExchangeChoice exchange() const override { return plans_.begin()->second.choice(); }
  int depth() const override { return depth_; }
  std::string sweeps() const override;
  void try_depths(const std::vector<int>& depths) override;
  void sweep_by(const SweepSettings<D>& settings) override;
  Index<D> tile() const override { return reducer_.tile(); }
  void time_phases(PhaseClock* clock) override { phases_ = clock; }
  /// Sets up exchanges as well, since what that takes belongs to no step.
  void reduce_by(const ReductionOptions& options) override;
  /// Brings the coefficients' ghosts; outside the grid they are mirrored, whatever the fields' rules.
  void start() override;
  void set_time(std::int64_t step, double dt) override { step_ = step, dt_ = dt; }
  /// The ghosts are stale; not the outside cells of sides that are `fixed` at all times, which nobody else may
  /// write.
  void fields_changed() override { steps_left_ = 0; }

  /// Whether a step without change sum that needs an exchange sweeps, while the messages travel, what reads no
  /// ghosts of other ranks; where it may. Before the first step, the same on all ranks; by default what is faster.
  /// Local.
  void overlap_by(Overlap mode);
  /// What it does (1: overlaps), or that it is not known yet.
  const FastestWay& overlap() const { return overlap_; }

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
  /// on steps without a change sum write what they read. Then they must come in pairs. A kernel that is called with
  /// one array leaves the cells of the other colour alone.
  void update_in_place() { in_place_ = true; }

  /// The field with everything in place that the next step reads: ghosts and cells outside the grid. Collective.
  const ArrayRef<T, D>& ready();

  /// v = f(v) in every cell of the first field that holds a value, ghosts included, so that they stay copies of
  /// each other. Local.
  template <class F>
  void change_all(const F& f) {
    const ArrayRef<T, D> u = now_[0].ref();
    const PhaseScope scope(phases_, Phase::sweep);
    for_each_row_of("isohalo::shift", levels_[static_cast<std::size_t>(steps_left_)].all.in_blocks,
                    [&](const Index<D>& i, std::int64_t n) {
                      T* const row = &u.at(i);
                      for (std::int64_t x = 0; x < n; ++x) row[x] = f(row[x]);
                    });
  }

  double advance(std::int64_t steps, bool change) override;

  /// Extents of the tiles of the last steps that were made in such; 0: none were.
  const Index<D>& time_tile() const { return time_tile_; }

 protected:
  /// Coefficient c depends on the time; steps read it in their own cells only. Before each step, or stage, its
  /// cells get the values of that time, rounded to the field's type. Local.
  void change_in_time(std::size_t c, const ValuesInTime<D>& values) { in_time_.emplace_back(c, values); }

  /// One sweep of this kernel, of the fields with all that it reads, into the fields a step before. Collective.
  void sweep_before(const RowKernel<T, D>& kernel);

 private:
  using Fields = std::vector<Field<T, D>>;
  using Addresses = std::vector<T*>;  ///< of the first owned cells of fields

  /// Cells to be swept, in blocks of rows and, of three dimensions and more, plane by plane: which is faster is
  /// tried out.
  struct Region {
    SweepRegion<D> in_blocks, by_planes;
  };
  Region in_orders(const std::vector<Box<D>>& boxes) const;
  const SweepRegion<D>& ordered(const Region& r) const { return orders_.way() == 0 ? r.in_blocks : r.by_planes; }
  Fields make_fields(const std::vector<std::string>& names, const char* suffix, FieldMemory memory) const;

  // Lists that are made for each call; they keep their memory.
  std::span<const ErasedArray<D>> erased(std::initializer_list<const Fields*> lists);
  static std::span<T* const> addresses(const Fields& fields, Addresses& list);
  /// What this kernel, of a stage, reads and writes. Good until the next call.
  RowUpdate<T, D> update(const RowKernel<T, D>& kernel, const Fields& in, const Fields& out, int stage);
  double time_at(std::int64_t step, double after) const { return static_cast<double>(step) * dt_ + after * dt_; }
  /// Of a stage of the step that comes q steps after this one. Without stages, kernels take turns from step to
  /// step.
  const RowKernel<T, D>& kernel(int stage, int q) const {
    const auto turn =
        names_.stages > 1 ? static_cast<std::size_t>(stage) : static_cast<std::size_t>(step_ + q) % kernels_.size();
    return *kernels_[turn];
  }
  double time_of_stage() const { return names_.stage_times[static_cast<std::size_t>(stage_)]; }

  /// The plan of the exchanges at present; of the first use of each collective.
  HaloPlan<D>& plan() { return plan_of(sweeps_); }
  HaloPlan<D>& plan_of(int sweeps);
  /// From the next exchange on, which comes next, so many steps follow one.
  void go_deep(int depth);
  /// Are depths tried out? Once sweeps are as they stay.
  bool tries_depths() const { return !depth_choice_.decided() && sweeps_decided() && overlap_.decided(); }
  bool sweeps_decided() const { return fetches_.decided() && orders_.decided(); }

  /// Does an exchange bring the ghosts of the fields a step before?
  bool previous_exchanged() const { return previous_read_ && sweeps_ > 1; }
  /// Is the next step to overlap exchange and sweep, if it can? It is tried out once sweeps are as they stay. Steps
  /// in tiles gain more than an exchange costs that comes once in several steps: they do so only when told to. The
  /// same on all ranks.
  bool overlaps() const {
    return (sweeps_ == 1 || always_overlaps_) && !previous_exchanged() && overlap_.way() == 1 &&
           (overlap_.decided() || sweeps_decided());
  }
  Fetch fetch(const FastestWay& ways) const { return Fetch::by_way(ways.way(), lead_); }

  /// Between the parts of an interior, messages that MPI moves only when it is called get on.
  static constexpr std::int64_t kParts = 16;

  /// What lies `m` steps around the block.
  struct Level {
    Box<D> bounds;  // all cells inside the grid that m steps can reach
    Region all;
    SweepRegion<D> shell;
    std::vector<Box<D>> boxes;   // of `all`, the largest first
    std::vector<Box<D>> around;  ///< those without the owned cells
  };

  /// At least one step and at most so many; returns how many. Where all are done `sum` becomes the change sum, if
  /// it is wanted.
  std::int64_t advance_some(std::int64_t most, bool change, double& sum);
  /// One part of a tile: step q of so many. Before the last one the outside cells that the next one reads; after it
  /// the tile values of the change, if they are wanted.
  void sweep_part(const Level& level, const Box<D>& part, int q, int steps, bool change);
  /// `part` and beside a side of the grid the cells that outside ones mirror. They have their values of the same
  /// step: those that lie lower are of earlier tiles, and less than a skew away, so that the step after the next
  /// has not come to them.
  Box<D> with_mirrored(Box<D> part, const Box<D>& bounds) const;

  double step(bool change);

  double step(bool change, bool overlap);

  double sweep_stage(int stage, const Fields& in, const Fields& out, bool change, bool overlap);

  /// Everything that a sweep from `u` reads; returns true when the interior was swept meanwhile.
  bool bring_ghosts(const Fields& u, bool overlap);

  /// The coefficients that depend on the time, so many steps after `step`, where a sweep of these cells reads them.
  template <class Cells>
  void bring_coefficients(const Cells& cells, std::int64_t step, double after);

  /// The outside cells around `valid`, by the rules' values so many steps after `step`.
  void fill_outside_of(const Fields& fields, const Box<D>& valid, std::int64_t step, double after);

  /// The fields that hold what the ghosts of `u` and, where further steps read them, of the fields a step before
  /// are made of.
  std::span<const ErasedArray<D>> to_exchange(const Fields& u);

  /// Brings the ghosts; returns true when it has swept the interior meanwhile.
  bool exchange_ghosts(const Fields& u, bool overlap);

  StateFields names_;
  CartesianDomain<D> domain_;
  BoundaryTopology<D> around_;
  std::vector<OutsideCells<D>> outside_;  ///< of each field
  HaloOptions<D> halo_options_;
  StencilShape<D> shape_;
  int depth_ = 1;                     ///< steps per exchange
  int sweeps_ = 1;                    ///< so many stencil reaches: of the exchanges at present
  int deepest_;                       ///< reaches that the fields have ghosts for
  std::map<int, HaloPlan<D>> plans_;  ///< by reaches
  DepthChoice depth_choice_;
  ChangeSum<T, D> reducer_;
  Fields now_, next_, third_, coefficients_;
  std::vector<std::pair<std::size_t, ValuesInTime<D>>> in_time_;  ///< coefficients that depend on the time
  Kernels kernels_;
  Index<D> layers_low_{}, layers_high_{};
  FastestWay overlap_;  ///< 1: overlap
  bool previous_read_, always_overlaps_ = false, change_over_two_ = false, in_place_ = false;
  Region interior_;  ///< of the first step after an exchange, as `rest_`
  SweepRegion<D> rest_;
  std::vector<Level> levels_;
  std::map<int, TileSizes<D>> tilings_;  ///< by reaches
  bool tiles_tried_ = false;             ///< by the last steps
  Index<D> time_tile_{};
  std::int64_t lead_ = 0;  ///< see Fetch
  std::optional<Index<D>> forced_tile_;
  FastestWay fetches_ = FastestWay::of(Fetch::kWays), fetches_with_change_ = FastestWay::of(Fetch::kWays);
  FastestWay orders_ = FastestWay::decided_for(0);  ///< tried once `fetches_` are decided; 0: in blocks
  std::vector<double> scratch_;
  std::vector<ErasedArray<D>> erased_;
  Addresses reads_, writes_, before_;
  int steps_left_ = 0;     ///< sweeps until the next exchange
  std::int64_t step_ = 0;  ///< of the state
  double dt_ = 0;
  int stage_ = 0;  ///< of the next sweep
  PhaseClock* phases_ = nullptr;
};

}  // namespace isohalo
