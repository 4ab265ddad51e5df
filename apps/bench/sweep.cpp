/// `isohalo bench sweep`: our step against a hand-written loop with the same arithmetic, halo exchange included,
/// and against what the memory allows. `isohalo bench temporal`: several steps per exchange against the same.

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/hand_rows.hpp"
#include "apps/bench/sweep_measure.hpp"
#include "framework/halo/grid_array.hpp"
#include "framework/halo/halo_plan.hpp"
#include "framework/halo/row_sweep.hpp"
#include "framework/io/digest.hpp"
#include "stencils/device/device_field.hpp"
#include "stencils/state_stepper.hpp"

namespace isohalo {

namespace {

/// A user's program: a time loop and a loop over rows of its own; of ours what isohalo/halo.hpp has. `Row` takes
/// the row in the old array and in the new one.
template <int D, class Row>
class Embedded final : public HandSteps<double, D> {
 public:
  /// Collective.
  Embedded(const CartesianDomain<D>& domain, const std::function<Row(const Index<D>&)>& make)
      : halo_(domain, StencilShape<D>::star(1), 1),
        sweep_(StencilShape<D>::star(1)),
        now_(domain.owned(), 1),
        next_(domain.owned(), 1),
        row_(make(now_.ref().stride)) {}

  double& at(const Index<D>& i, std::size_t) override { return now_.at(i); }

  void advance(std::int64_t steps) override {
    for (std::int64_t s = 0; s < steps; ++s) {
      halo_.exchange(now_.ref());
      sweep_({now_.ref().owned}, now_.ref(), next_.ref(), row_);
      std::swap(now_, next_);
    }
  }

 private:
  HaloPlan<D> halo_;
  RowSweep<double, D> sweep_;
  GridArray<double, D> now_, next_;
  Row row_;
};

/// A loop in a program that has but our exchange, and in our solver.
template <int D>
Json embedded(const SweepOrder& order, const std::string& name, const Index<D>& shape) {
  DomainOptions<D> options;
  PerDim<int, D> slabs;
  slabs.fill(1);
  MPI_Comm_size(order.comm, &slabs[0]);
  options.process_grid = slabs;
  options.periodic.fill(true);
  const CartesianDomain<D> domain(order.comm, shape, options);
  const auto make = [](const Index<D>& s) {
    HandHeatRow<D> row{{}, s};
    row.c.fill(0.1);
    return row;
  };
  StateStepper<double, D> ours("u", domain, StencilShape<D>::star(1), BoundaryRules<D>{}, 1, make);
  Embedded<D, HandHeatRow<D>> hand(domain, make);
  for_each_cell(domain.owned(), [&](const Index<D>& i) {
    ours.field().at(i) = hand.at(i, 0) = number_of(static_cast<std::uint64_t>(linear_index(domain.global(), i)));
  });
  return compare_steps<double, D>(name, domain, ours, nullptr, hand, 1, 2, order.repeats, 1);
}

void measure_all(SweepOrder& order) {
  const std::int64_t n2 = order.cells(4096), n3 = order.cells(256);
  add_solver_steps(order);
  order.cases.add("2d-embedded", [&] { order.rows.push_back(embedded<2>(order, "2d-embedded", {n2, n2})); });
  order.cases.add("3d-embedded", [&] { order.rows.push_back(embedded<3>(order, "3d-embedded", {n3, n3, n3})); });
  order.cases.measure("bench sweep");
}

}  // namespace

ExitCode bench_sweep(MPI_Comm user, const BenchSweepOptions& options) {
  const bool on_device = options.space == "device";
  SweepOrder order{user, options.size, options.repeats, Cases(options.cases)};
  on_device ? measure_device_steps(order) : measure_all(order);
  Json report = report_of("sweep");
  report["space"] = on_device ? DeviceSpace::name() : SweepSpace::name();
  report["repeats"] = options.repeats;
  report["cases"] = order.rows;
  return print_report(user, options.json, report, all_true(order.rows, "same_bits"));
}

ExitCode bench_temporal(MPI_Comm user, const BenchTemporalOptions& options) {
  SweepOrder order{user, options.size, options.repeats, Cases(options.cases)};
  order.tile = options.tile;
  measure_deep_steps(order, options.depths);
  Json report = report_of("temporal");
  report["repeats"] = options.repeats;
  report["cases"] = order.rows;
  return print_report(user, options.json, report, all_true(order.rows, "same_bits"));
}

}  // namespace isohalo
