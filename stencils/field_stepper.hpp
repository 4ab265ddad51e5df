#pragma once
/// A solver with fields that are advanced together, several steps per halo exchange, wherever they lie: what
/// StateStepper and DeviceStepper have in common.

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/halo/halo_plan.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/run/solver.hpp"
#include "framework/schedule/fastest_way.hpp"
#include "stencils/coefficient_in_time.hpp"
#include "stencils/state_fields.hpp"

namespace isohalo {

/// Advances fields by kernels, one for each stage; or, of one stage, by one kernel or several that take turns.
/// Every owned cell after every step has the bits that single steps on one rank give. A kernel reads the fields;
/// then, where there are several stages, the fields at the step's begin, or, where there are such, the fields a
/// step before; then the coefficients. It writes the fields.
///
/// `Parts`: the types of a Field, of its cells Outside the grid, of a Kernel and of a change Sum.
template <class T, int D, class Parts>
class FieldStepper : public Solver<D> {
 public:
  using Kernel = typename Parts::Kernel;
  using Kernels = std::vector<std::unique_ptr<const Kernel>>;
  using MakeKernels = std::function<Kernels(const Index<D>& stride)>;

  ~FieldStepper() override;

  /// The first one. Its strides are those of all fields.
  const ArrayRef<T, D>& field() const { return now_[0].ref(); }
  /// The same with everything in place that the next step reads: ghosts and cells outside the grid. Collective.
  const ArrayRef<T, D>& ready() {
    bring_ghosts(now_, 0, false);
    return field();
  }
  std::vector<FieldHandle<D>> fields() override { return handles(now_, next_); }
  std::vector<FieldHandle<D>> coefficients() override { return coefficient_handles(coefficients_); }
  std::string residual_of() const override { return names_.change(); }
  ExchangeChoice exchange() const override { return plans_.begin()->second.choice(); }
  int depth() const override { return depth_; }
  Index<D> tile() const override { return reducer_.tile(); }
  void time_phases(PhaseClock* clock) override { phases_ = clock; }
  /// Sets up exchanges as well, since what that takes belongs to no step.
  void reduce_by(const ReductionOptions& options) override {
    reducer_.reduce_by(options);
    exchange_ghosts(now_, false);
  }
  /// Brings the coefficients' ghosts; outside the grid they are mirrored, whatever the fields' rules.
  void start() override;
  void set_time(std::int64_t step, double dt) override { step_ = step, dt_ = dt; }
  /// The ghosts are stale; not the outside cells of sides that are `fixed` at all times, which nobody else may
  /// write.
  void fields_changed() override { steps_left_ = 0, ghosts_written_ = false; }
  /// Whether a step without change sum that needs an exchange sweeps, while the messages travel, what reads no
  /// ghosts of other ranks, if it has one stage. Before the first step, the same on all ranks; by default what is
  /// faster. Local.
  void overlap_by(bool overlap) {
    if (names_.stages == 1) overlap_ = FastestWay::decided_for(overlap);
  }
  /// 1: it does; or that it is not known yet.
  const FastestWay& overlap() const { return overlap_; }

 protected:
  using Field = typename Parts::Field;
  using Fields = std::vector<Field>;
  using Addresses = std::vector<T*>;  ///< of the first owned cells of fields

  /// `rules`: of each field. `make_kernels(stride)` builds the kernels for the fields' strides. `depth` >= 1 steps
  /// per exchange. `workers`, `runs_on`: of the exchanges (HaloOptions); `memory`: of a Field. Collective in order.
  template <class... Memory>
  FieldStepper(const StateFields& names, const CartesianDomain<D>& domain, const StateShapes<D>& shapes,
               const std::vector<BoundaryRules<D>>& rules, int depth, const MakeKernels& make_kernels,
               Exchange exchange, const Workers& workers, bool runs_on, Memory... memory)
      : names_(names),
        domain_(domain),
        around_(names.topology(rules, domain.global())),
        halo_options_{around_.mirror_low, around_.mirror_high, exchange, workers, runs_on},
        shapes_(shapes),
        depth_(depth),
        sweeps_(names.reaches(depth)),
        deepest_(sweeps_),
        reducer_(domain),
        overlap_(names.stages > 1 || domain.comm().size() == 1 ? FastestWay::decided_for(0) : FastestWay::of(2)),
        previous_read_(!names.before.empty()) {
    const StencilShape<D>& shape = shapes_.all;
    const auto ghosts = shape.ghost_widths(deepest_, around_), layers = shape.ghost_widths(1, around_);
    const auto fields = [&](const std::vector<std::string>& list, const char* suffix) {
      Fields all;
      for (const auto& name : list)
        all.emplace_back(name + suffix, domain.owned(), ghosts[0], ghosts[1], memory...);
      return all;
    };
    agreed(domain.comm(), [&] {  // since what follows is collective
      now_ = fields(names.state, "");
      next_ = fields(names.state, " (next)");
      if (names.stages > 1) third_ = fields(names.state, " (stage)");
      coefficients_ = fields(names.coefficients, "");
    });
    kernels_ = make_kernels(field().stride);
    layers_low_ = layers[0];
    layers_high_ = layers[1];
    for (const BoundaryRules<D>& of_field : rules)
      outside_.emplace_back(of_field, domain.global(), layers_low_, layers_high_);
    for (int m = 0; m <= deepest_; ++m) bounds_.push_back(detail::reachable(domain.owned(), shape, m, around_));
    inner_ = detail::without_ghosts(domain, layers_low_, layers_high_);
    plan();
  }

  /// Coefficient c depends on the time; steps read it in their own cells only. Before each step, or stage, its
  /// cells get the values of that time, rounded to the field's type. Collective.
  void change_in_time(std::size_t c, const ValuesInTime<D>& values);
  /// One sweep of this kernel, of the fields with all that it reads, into the fields a step before. Collective.
  void sweep_before(const Kernel& kernel);
  /// One step, which sweeps the interior while ghosts travel where it may and is to `overlap`; with `change` its
  /// change sum.
  double step(bool change, bool overlap);

  /// The sweep of a stage, of the cells that `steps_left_` further ones need; not of the interior where that is
  /// done.
  virtual void sweep_stage(const Kernel& kernel, const Fields& in, const Fields& out, int stage,
                           bool interior_done) = 0;
  /// The same with the change sum.
  virtual double sweep_stage_with_change(const Kernel& kernel, const Fields& in, const Fields& out, int stage) = 0;
  /// That of `inner_`, while messages travel.
  virtual void sweep_interior(const Fields& u) = 0;
  /// The coefficients that depend on the time, where such a sweep reads them.
  virtual void bring_coefficients(int further, int stage) = 0;

  /// The plan of the exchanges at present; of the first use of each collective.
  HaloPlan<D>& plan() { return plan_of(sweeps_); }
  HaloPlan<D>& plan_of(int sweeps);
  /// Of a stage of the step that comes q steps after this one. Without stages, kernels take turns from step to
  /// step.
  const Kernel& kernel(int stage, int q) const {
    const auto turn =
        names_.stages > 1 ? static_cast<std::size_t>(stage) : static_cast<std::size_t>(step_ + q) % kernels_.size();
    return *kernels_[turn];
  }
  double time_at(std::int64_t step, double after) const { return static_cast<double>(step) * dt_ + after * dt_; }
  double after(int stage) const { return names_.stage_times[static_cast<std::size_t>(stage)]; }
  /// All cells inside the grid that m steps can reach.
  const Box<D>& bounds(int m) const { return bounds_[static_cast<std::size_t>(m)]; }

  /// Does an exchange bring the ghosts of the fields a step before?
  bool previous_exchanged() const { return previous_read_ && sweeps_ > 1; }
  /// Everything that a sweep from `u` reads; returns true when the interior was swept meanwhile.
  bool bring_ghosts(const Fields& u, int stage, bool overlap);
  /// The outside cells around `valid` of the fields whose ghosts are read, by the rules' values so many steps after
  /// `step`.
  void fill_outside_of(const Fields& fields, const Box<D>& valid, std::int64_t step, double after) {
    const double time = time_at(step, after);
    for (std::size_t f = 0; f < fields.size(); ++f)
      if (shapes_.travels(f, sweeps_)) outside_[f].fill(fields[f].ref(), valid, time);
  }

  /// The same for the stage that comes, in the phase of that name.
  void place_outside(const Fields& fields, const Box<D>& valid, int stage) {
    if (around_.wraps()) return;
    const PhaseScope scope(phases_, Phase::boundary);
    fill_outside_of(fields, valid, step_, after(stage));
  }

  // Lists that are made for each call; they keep their memory.
  static std::span<T* const> addresses(const Fields& fields, Addresses& list) {
    list.clear();
    for (const Field& u : fields) list.push_back(u.ref().data);
    return list;
  }
  /// What a kernel of this stage reads. Good until the next call.
  std::span<T* const> reads(const Fields& in, const Fields& out, int stage);

  /// The fields of a state, or copies of them, by their names.
  template <class State, class Before>
  std::vector<FieldHandle<D>> handles(const State& state, const Before& before) const {
    std::vector<FieldHandle<D>> all;
    for (std::size_t f = 0; f < names_.state.size(); ++f)
      all.push_back({names_.state[f], "1", "state", state[f].ref()});
    for (std::size_t f = 0; f < names_.before.size(); ++f)
      all.push_back({names_.before[f], "1", "auxiliary", before[f].ref()});
    return all;
  }
  template <class Coefficients>
  std::vector<FieldHandle<D>> coefficient_handles(const Coefficients& coefficients) const {
    std::vector<FieldHandle<D>> all;
    for (std::size_t c = 0; c < names_.coefficients.size(); ++c)
      all.push_back({names_.coefficients[c], "1", "auxiliary", coefficients[c].ref()});
    return all;
  }

  StateFields names_;
  CartesianDomain<D> domain_;
  BoundaryTopology<D> around_;
  HaloOptions<D> halo_options_;
  StateShapes<D> shapes_;
  int depth_;    ///< steps per exchange
  int sweeps_;   ///< so many stencil reaches: of the exchanges at present
  int deepest_;  ///< reaches that the fields have ghosts for
  typename Parts::Sum reducer_;
  FastestWay overlap_;  ///< 1: overlap
  bool previous_read_;
  Fields now_, next_, third_, coefficients_;
  Kernels kernels_;
  Index<D> layers_low_{}, layers_high_{};
  std::vector<typename Parts::Outside> outside_;  ///< of each field
  std::vector<CoefficientInTime<D>> in_time_;
  Box<D> inner_;                      ///< reads no ghosts of other ranks; may be empty
  std::map<int, HaloPlan<D>> plans_;  ///< by reaches
  bool ghosts_written_ = false;       ///< of the state, by the last sweep
  int steps_left_ = 0;                ///< sweeps until the next exchange
  std::int64_t step_ = 0;             ///< of the state
  double dt_ = 0;
  Addresses reads_, writes_, before_;
  PhaseClock* phases_ = nullptr;

 private:
  /// Made for each call, as those above.
  std::span<const ErasedArray<D>> erased(std::initializer_list<const Fields*> lists);
  std::span<const ErasedArray<D>> travelling(const Fields& u);
  /// Goes by what the first plan has found, as far as these needs allow. Collective.
  HaloPlan<D> new_plan(const std::vector<HaloNeed<D>>& needs);
  /// Brings the ghosts; returns true when it has swept the interior meanwhile.
  bool exchange_ghosts(const Fields& u, bool overlap);

  std::vector<Box<D>> bounds_;
  std::vector<ErasedArray<D>> erased_;
};

// Compiled once, with each kind of parts.
template <class T, int D, class Parts>
FieldStepper<T, D, Parts>::~FieldStepper() = default;

template <class T, int D, class Parts>
void FieldStepper<T, D, Parts>::change_in_time(std::size_t c, const ValuesInTime<D>& values) {
  agreed(domain_.comm(), [&] { in_time_.emplace_back(c, values, bounds(deepest_)); });
}

template <class T, int D, class Parts>
void FieldStepper<T, D, Parts>::start() {
  if (!coefficients_.empty()) {
    const auto arrays = erased({&coefficients_});
    if (shapes_.differ(deepest_))  // that plan has one need for each field that travels
      new_plan({{shapes_.all, deepest_}}).exchange(arrays);
    else
      plan_of(deepest_).exchange(arrays);
    typename Parts::Outside mirrored(detail::mirrored_rules(around_), domain_.global(), layers_low_, layers_high_);
    for (const Field& c : coefficients_) mirrored.fill(c.ref(), bounds(deepest_), 0);
  }
  fields_changed();
}

template <class T, int D, class Parts>
HaloPlan<D>& FieldStepper<T, D, Parts>::plan_of(int sweeps) {
  if (const auto made = plans_.find(sweeps); made != plans_.end()) return made->second;
  return plans_.emplace(sweeps, new_plan(shapes_.needs(sweeps))).first->second;
}

template <class T, int D, class Parts>
HaloPlan<D> FieldStepper<T, D, Parts>::new_plan(const std::vector<HaloNeed<D>>& needs) {
  HaloOptions<D> options = halo_options_;
  // What was the fastest for one depth is that, or nearly, for another; its trial takes as long as many steps.
  if (options.exchange == Exchange::automatic && !plans_.empty()) {
    options.exchange = exchange().used;
    for (const HaloNeed<D>& need : needs)
      if (!fits(options.exchange, need.shape)) options.exchange.pattern = HaloPattern::coalesced;
  }
  return {domain_, needs, options};
}

template <class T, int D, class Parts>
void FieldStepper<T, D, Parts>::sweep_before(const Kernel& kernel) {
  bring_ghosts(now_, 0, false);
  steps_left_ = 0;
  bring_coefficients(0, 0);
  sweep_stage(kernel, now_, next_, 0, false);
  ghosts_written_ = false;
}

template <class T, int D, class Parts>
double FieldStepper<T, D, Parts>::step(bool change, bool overlap) {
  const int last = names_.stages - 1;
  double sum = 0;
  for (int stage = 0; stage <= last; ++stage) {
    const Fields& in = stage == 0 ? now_ : stage % 2 == 1 ? next_ : third_;
    const Fields& out = stage % 2 == 0 ? next_ : third_;
    // Before the ghosts come, since the interior may be swept meanwhile.
    bring_coefficients((steps_left_ == 0 ? sweeps_ : steps_left_) - 1, stage);
    const bool interior_done = bring_ghosts(in, stage, overlap);
    --steps_left_;
    if (change && stage == last)
      sum = sweep_stage_with_change(kernel(stage, 0), in, out, stage);
    else
      sweep_stage(kernel(stage, 0), in, out, stage, interior_done);
  }
  ++step_;
  std::swap(now_, last % 2 == 0 ? next_ : third_);
  return sum;
}

template <class T, int D, class Parts>
bool FieldStepper<T, D, Parts>::bring_ghosts(const Fields& u, int stage, bool overlap) {
  bool interior_done = false;
  if (steps_left_ == 0) {
    const PhaseScope scope(phases_, Phase::exchange);
    if (!ghosts_written_) interior_done = exchange_ghosts(u, overlap);
    steps_left_ = sweeps_;
  }
  place_outside(u, bounds(steps_left_), stage);
  return interior_done;
}

template <class T, int D, class Parts>
bool FieldStepper<T, D, Parts>::exchange_ghosts(const Fields& u, bool overlap) {
  HaloPlan<D>& plan = this->plan();
  const auto arrays = previous_exchanged() ? erased({&u, &next_}) : travelling(u);
  if (!overlap || inner_.empty() || previous_exchanged()) {
    plan.exchange(arrays);
    return false;
  }
  plan.start(arrays);
  // After `start` the ghosts copied within this rank are in place, unless they wait for an earlier stage.
  overlap = plan.choice().used.pattern != HaloPattern::slabs;
  if (overlap) {
    place_outside(u, detail::in_place(domain_, bounds(sweeps_)), 0);
    sweep_interior(u);
  }
  plan.finish();
  return overlap;
}

template <class T, int D, class Parts>
std::span<const ErasedArray<D>> FieldStepper<T, D, Parts>::erased(std::initializer_list<const Fields*> lists) {
  erased_.clear();
  for (const Fields* list : lists)
    for (const Field& u : *list) erased_.push_back(u.erased());
  return erased_;
}

template <class T, int D, class Parts>
std::span<const ErasedArray<D>> FieldStepper<T, D, Parts>::travelling(const Fields& u) {
  erased_.clear();
  for (std::size_t f = 0; f < u.size(); ++f)
    if (shapes_.travels(f, sweeps_)) erased_.push_back(u[f].erased());
  return erased_;
}

template <class T, int D, class Parts>
std::span<T* const> FieldStepper<T, D, Parts>::reads(const Fields& in, const Fields& out, int stage) {
  addresses(in, reads_);
  const Fields* own = stage > 0 ? &now_ : names_.before.empty() ? nullptr : &out;
  if (own)
    for (const Field& u : *own) reads_.push_back(u.ref().data);
  for (const Field& c : coefficients_) reads_.push_back(c.ref().data);
  return reads_;
}

}  // namespace isohalo
