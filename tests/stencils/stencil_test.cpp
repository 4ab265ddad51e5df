/// Row kernels, boundary rules and deep stepping against one plain loop over the whole grid.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>

#include "datatypes/error.hpp"
#include "stencils/device/device_stepper.hpp"
#include "stencils/row_kernels.hpp"
#include "stencils/state_stepper.hpp"
#include "tests/halo/halo_cases.hpp"
#include "tests/mpi_main.hpp"
#include "tests/reduce/tree_by_definition.hpp"

namespace isohalo {
namespace {

constexpr double kDt = 0.125;
constexpr std::int64_t kFirstStep = 3;

/// Of a rule of one's own: with everything that its function is given.
double outside_of(const OutsideCell& c) {
  return (c.parameters[0] * c.mirrored + c.value) - c.parameters[1] * c.distance;
}

/// The whole field on every rank, with docs/model.md's recursive rule for cells outside.
template <class T, int D>
struct WholeField {
  Box<D> global;
  BoundaryRules<D> rules;
  std::vector<T> v;
  double time = 0;

  /// The value of a side of dimension j for outside cell i.
  double value(const BoundaryRule& rule, int j, const Index<D>& i) const {
    if (!rule.expression) return rule.value;
    std::vector<double> x;
    for (int k = 0; k < D; ++k) {
      const std::int64_t n = global.high[k], c = rules.periodic()[k] ? ((i[k] % n) + n) % n : i[k];
      x.push_back(rules.origin[k] + (static_cast<double>(c) + 0.5) * (rules.length[k] / static_cast<double>(n)));
    }
    if (rule.kind != Boundary::fixed)
      x[static_cast<std::size_t>(j)] = rules.origin[j] + (i[j] < 0 ? 0 : rules.length[j]);
    double at = 0;
    rule.expression->row(x, D - 1, {&x.back(), 1}, time, &at);
    return at;
  }

  T read(Index<D> i, int j = 0) const {
    for (; j < D; ++j) {
      const std::int64_t n = global.high[j];
      if (i[j] >= 0 && i[j] < n) continue;
      const BoundaryRule& rule = i[j] < 0 ? rules.low[j] : rules.high[j];
      if (rule.kind == Boundary::periodic) {
        i[j] = ((i[j] % n) + n) % n;
        continue;
      }
      const double at = value(rule, j, i);
      if (rule.kind == Boundary::fixed) return static_cast<T>(at);
      const Index<D> outside = i;
      i[j] = i[j] < 0 ? -1 - i[j] : 2 * n - 1 - i[j];
      const T m = read(i, j + 1);
      const double distance =
          static_cast<double>(std::abs(outside[j] - i[j])) * (rules.length[j] / static_cast<double>(n));
      if (rule.kind == Boundary::dirichlet) return T(2) * static_cast<T>(at) - m;
      if (rule.kind == Boundary::robin) {
        const double a = 0.5 * rule.parameters[0], b = rule.parameters[1] / distance;
        return static_cast<T>(at / (a + b)) - static_cast<T>((a - b) / (a + b)) * m;
      }
      if (rule.kind == Boundary::own)
        return static_cast<T>(outside_of({static_cast<double>(m), distance, at, rule.parameters}));
      return rule.expression || rule.value != 0 ? m + static_cast<T>(distance * at) : m;
    }
    return v[static_cast<std::size_t>(linear_index(global, i))];
  }
};

template <class T, int D>
double plain_step(WholeField<T, D>& u, const Offsets<D>& offsets, const std::vector<double>& weights) {
  WholeField<T, D> next = u;
  std::vector<double> change;
  for_each_cell(u.global, [&](const Index<D>& i) {
    T acc{};
    for (std::size_t k = 0; k < offsets.size(); ++k) {
      Index<D> o = i;
      for (int j = 0; j < D; ++j) o[j] += offsets[k][j];
      const T term = static_cast<T>(weights[k]) * u.read(o);
      acc = k == 0 ? term : acc + term;
    }
    const auto l = static_cast<std::size_t>(linear_index(u.global, i));
    next.v[l] = acc;
    const double d = static_cast<double>(acc) - static_cast<double>(u.v[l]);
    change.push_back(d * d);
  });
  u = next;
  u.time += kDt;
  Index<D> shape = u.global.high;
  return test::reduce_by_definition<double, D>(shape, default_tile<D>(), change, Sum());
}

template <int D>
BoundaryRules<D> random_rules(test::Random& random) {
  BoundaryRules<D> r;
  static const auto own = std::make_shared<const BoundaryKind>(
      BoundaryKind{.name = "own", .parameters = {"p", "q"}, .outside = outside_of});
  static const std::vector<std::string> texts{"t - x0", "x0^2 + 0.3", "x + x0*t", "0.25"};
  for (int j = 0; j < D; ++j) {
    r.origin[j] = random.real(-1, 1);
    r.length[j] = random.real(1, 2);
    const bool periodic = random.in(0, 3) == 0;
    for (auto* side : {&r.low[j], &r.high[j]}) {
      side->kind = periodic ? Boundary::periodic : static_cast<Boundary>(random.in(1, 5));
      if (side->kind != Boundary::neumann || random.in(0, 1)) side->value = random.real(-1, 1);
      if (random.in(0, 2) == 0)
        side->expression = std::make_shared<const Expression>(texts[static_cast<std::size_t>(random.in(0, 3))], D);
      side->parameters = {random.real(0, 1), random.real(0.1, 1)};
      if (side->kind == Boundary::own) side->own = own;
    }
  }
  return r;
}

template <class T, int D>
void check_stepper(const Index<D>& shape, const Offsets<D>& offsets, int depth, const PerDim<int, D>& grid,
                   std::uint64_t seed) {
  test::Random random(seed);
  const auto rules = random_rules<D>(random);
  std::vector<double> weights;
  for (std::size_t k = 0; k < offsets.size(); ++k) weights.push_back(random.real(-0.4, 0.6));
  WholeField<T, D> whole{box_of_shape<D>(shape), rules, {}, 0};
  for (std::int64_t l = 0; l < whole.global.cells(); ++l) whole.v.push_back(static_cast<T>(random.real(-1, 1)));
  DomainOptions<D> o;
  o.periodic = rules.periodic();
  o.process_grid = grid;
  o.alignment_tolerance = seed % 2 ? 0.3 : 0.0;
  const CartesianDomain<D> domain(MPI_COMM_WORLD, shape, o);
  const auto stencil = StencilShape<D>::of(offsets);
  const auto make_row = [&](const Index<D>& stride) {
    return WeightedRow<T, D>(offsets, weights, stride, seed % 2 == 0);
  };
  std::vector<Exchange> ways{Exchange::coalesced, Exchange::direct_packed, Exchange::shared};
  if (slabs_possible(stencil)) ways.push_back(Exchange::slabs_packed);
  const auto way = ways[seed % ways.size()];
  StateStepper<T, D> stepper("u", domain, stencil, rules, depth, make_row, way);
  StateStepper<T, D> overlapping("u", domain, stencil, rules, depth, make_row, way);
  overlapping.overlap_by(true);
  std::unique_ptr<Solver<D>> on_device;
  if constexpr (kOnDevice<T, D>) {
    using OnDevice = DeviceStepper<T, D, DeviceSpace>;
    const auto make_kernels = [&](const Index<D>& stride) {
      std::vector<std::int64_t> away;
      for (const Index<D>& offset : offsets) away.push_back(offset_of<D>(offset, {}, stride));
      typename OnDevice::Kernels kernels;
      kernels.push_back(OnDevice::kernel_of(WeightedList<T, DeviceSpace>{
          in_space<DeviceSpace>("away", away),
          in_space<DeviceSpace>("weights", std::vector<T>(weights.begin(), weights.end()))}));
      return kernels;
    };
    if (rules_against_device(ElementType::float64, rules).empty()) {
      auto made = std::make_unique<OnDevice>(StateFields{{"u"}}, domain, stencil, std::vector{rules}, depth,
                                             make_kernels, way);
      made->overlap_by(seed / 2 % 2 != 0);
      on_device = std::move(made);
    }
  }
  const auto device_cells = [&] {
    return on_device ? std::get<ArrayRef<T, D>>(on_device->fields()[0].array) : overlapping.field();
  };
  for_each_cell(domain.owned(), [&, cells = device_cells()](const Index<D>& i) {
    stepper.field().at(i) = whole.v[static_cast<std::size_t>(linear_index(whole.global, i))];
    cells.at(i) = overlapping.field().at(i) = stepper.field().at(i);
  });
  for (auto* s : {&stepper, &overlapping}) s->set_time(kFirstStep, kDt);
  if (on_device) {
    on_device->set_time(kFirstStep, kDt);
    on_device->start();
  }
  whole.time = static_cast<double>(kFirstStep) * kDt;
  for (int step = 1; step <= 5; ++step) {
    const double expected = plain_step(whole, offsets, weights);
    const double sum = stepper.advance(1, true);
    overlapping.advance(1, step == 5);
    if (on_device) {
      const bool change = step == 2 || step == 5;
      const double same = on_device->advance(1, change);
      ASSERT_TRUE(!change || std::memcmp(&same, &expected, sizeof same) == 0) << "on a device: " << same;
    }
    ASSERT_EQ(std::memcmp(&sum, &expected, sizeof sum), 0)
        << "change sum of step " << step << ": " << sum << " against " << expected;
    std::int64_t wrong = 0;
    for_each_cell(domain.owned(), [&, cells = device_cells()](const Index<D>& i) {
      const T got = stepper.field().at(i), want = whole.v[static_cast<std::size_t>(linear_index(whole.global, i))];
      wrong += std::memcmp(&got, &want, sizeof got) != 0;
      wrong += std::memcmp(&overlapping.field().at(i), &want, sizeof got) != 0;
      wrong += std::memcmp(&cells.at(i), &want, sizeof got) != 0;
    });
    ASSERT_EQ(wrong, 0) << "step " << step << " depth " << depth << " seed " << seed;
  }
}

template <int D>
void check_all(const std::vector<Index<D>>& grids, int deepest) {
  std::uint64_t seed = 100 * D;
  for (const auto& shape : grids)
    for (const auto& grid : all_process_grids<D>(shape, test::ranks()))
      for (const auto& [name, stencil] : test::shapes<D>())
        for (int depth = 1; depth <= deepest; ++depth) {
          SCOPED_TRACE(name + " on " + shape_string<D>(shape));
          ++seed;
          seed % 3 ? check_stepper<double, D>(shape, stencil.offsets(), depth, grid, seed)
                   : check_stepper<float, D>(shape, stencil.offsets(), depth, grid, seed);
          if (testing::Test::HasFatalFailure()) return;
        }
}

TEST(StateStepper, EqualsSingleStepsOnOneGridIn1D) {
  check_all<1>({{29}, {7}}, 4);
}
TEST(StateStepper, EqualsSingleStepsOnOneGridIn2D) {
  check_all<2>({{17, 20}, {6, 7}}, 4);
}
TEST(StateStepper, EqualsSingleStepsOnOneGridIn3D) {
  check_all<3>({{9, 8, 19}}, 3);
}
TEST(StateStepper, EqualsSingleStepsOnOneGridIn4D) {
  check_all<4>({{6, 4, 5, 6}}, 2);
}

TEST(StateStepper, OneSidedReachBeyondOneCellBlocks) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed)
    for (int depth = 1; depth <= 2; ++depth) {
      check_stepper<double, 1>({7}, {{-2}, {0}}, depth, {test::ranks()}, seed);
      check_stepper<double, 1>({7}, {{2}, {0}}, depth, {test::ranks()}, seed);
      check_stepper<double, 2>({7, 5}, {{-1, -2}, {-2, 0}}, depth, {test::ranks(), 1}, seed);
    }
}

/// Reads a coefficient two cells below.
struct LopsidedRow final : RowKernel<double, 1> {
  void run(const double* const* in, std::int64_t at, double* const* out, std::int64_t to, const CellRows& rows,
           const Index<1>&) const override {
    for (std::int64_t x = 0; x < rows.cells; ++x) out[0][to + x] = in[0][at + x] + in[1][at + x - 2];
  }
};

TEST(StateStepper, MirrorsCoefficientsOutsideTheGridWhateverTheRules) {
  const std::int64_t cells = std::max(4, test::ranks());  // one-cell blocks on four ranks and more
  BoundaryRules<1> rules;                                 // their outside cells have no mirrored ones
  rules.low[0].kind = rules.high[0].kind = Boundary::fixed;
  DomainOptions<1> o;
  o.periodic = rules.periodic();
  const CartesianDomain<1> domain(MPI_COMM_WORLD, {cells}, o);
  StateFields names{{"u"}};
  names.coefficients = {"c"};
  for (const int depth : {1, 2}) {
    StateStepper<double, 1> stepper(names, domain, StencilShape<1>::of({{-2}, {-1}}), {rules}, depth,
                                    [](const Index<1>&) {
                                      StateStepper<double, 1>::Kernels one;
                                      one.push_back(row_kernel<double, 1>(LopsidedRow()));
                                      return one;
                                    });
    const auto u = stepper.field();
    const auto c = std::get<ArrayRef<double, 1>>(stepper.coefficients()[0].array);
    for_each_cell(domain.owned(),
                  [&](const Index<1>& i) { u.at(i) = 0, c.at(i) = 10.0 + static_cast<double>(i[0]); });
    stepper.start();
    stepper.advance(2, false);
    for_each_cell(domain.owned(), [&](const Index<1>& i) {
      const std::int64_t read = i[0] - 2, mirrored = read < 0 ? -1 - read : read;
      EXPECT_EQ(stepper.field().at(i), 2 * (10.0 + static_cast<double>(mirrored)))
          << "cell " << i[0] << ", depth " << depth;
    });
  }
}

/// Both ways in turns and then the chosen one: the bits of single steps on one grid throughout.
TEST(StateStepper, ChoosesWhetherToOverlapOnTheWay) {
  DomainOptions<2> o;
  o.periodic = {true, true};
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {24, 31}, o);
  const Offsets<2> offsets{{0, 0}, {-1, 0}, {1, 0}, {0, -1}, {0, 1}};
  const std::vector<double> weights{0.5, 0.11, 0.12, 0.13, 0.14};
  StateStepper<double, 2> stepper("u", domain, StencilShape<2>::star(1), BoundaryRules<2>{}, 1,
                                  [&](const Index<2>& s) { return WeightedRow<double, 2>(offsets, weights, s); });
  WholeField<double, 2> whole{domain.global(), BoundaryRules<2>{}, {}, 0};
  for (std::int64_t l = 0; l < whole.global.cells(); ++l) whole.v.push_back(static_cast<double>(l * l % 1001));
  for_each_cell(domain.owned(), [&](const Index<2>& i) {
    stepper.field().at(i) = whole.v[static_cast<std::size_t>(linear_index(whole.global, i))];
  });
  EXPECT_EQ(stepper.overlap().decided(), test::ranks() == 1);
  for (int step = 1; step <= 80; ++step) {  // memory first, then the overlap
    plain_step(whole, offsets, weights);
    stepper.advance(1, step % 5 == 0);  // steps with change sums take no part in the trial
    std::int64_t wrong = 0;
    for_each_cell(domain.owned(), [&](const Index<2>& i) {
      wrong += stepper.field().at(i) != whole.v[static_cast<std::size_t>(linear_index(whole.global, i))];
    });
    ASSERT_EQ(wrong, 0) << "step " << step;
  }
  EXPECT_TRUE(stepper.overlap().decided());
  const auto chosen = static_cast<std::int64_t>(stepper.overlap().way());
  EXPECT_EQ(domain.comm().min(chosen), domain.comm().max(chosen));
}

/// Copies, in no less than a millisecond per row.
struct SlowRow {
  void operator()(const double* in, double* out, std::int64_t n) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::copy_n(in, n, out);
  }
};

TEST(StateStepper, WhatIsSweptDuringAnExchangeIsChargedToTheSweep) {
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {60, 8}, {.periodic = {true, true}});
  for (const bool overlap : {true, false}) {
    StateStepper<double, 2> stepper(
        "u", domain, StencilShape<2>::star(1), BoundaryRules<2>{}, 1, [](const Index<2>&) { return SlowRow{}; },
        Exchange::coalesced);
    stepper.overlap_by(overlap);
    PhaseClock clock;
    stepper.time_phases(&clock);
    stepper.advance(3, false);
    EXPECT_GE(clock.seconds(Phase::sweep), 3e-3 * static_cast<double>(domain.owned().extent(0)));
  }
}

TEST(FastestWay, IsThatOfTheSlowestRank) {
  const Communicator comm = Communicator::of(MPI_COMM_WORLD);
  const bool last = test::rank() == test::ranks() - 1;
  const auto decide = [&](double without, double with) {
    FastestWay ways = FastestWay::of(2);
    test::Random random(static_cast<std::uint64_t>(test::rank()));
    int steps = 0, overlapped = 0;
    for (; !ways.decided(); ++steps) {
      overlapped += ways.way() == 1;
      const double t = ways.way() == 1 ? with : without;
      // The first steps count for nothing.
      ways.took(steps < 4 ? 100 : steps % 3 ? t : t * (1 + random.real(0, 1)), &comm);
    }
    EXPECT_EQ(overlapped, steps / 2);
    return ways.way() == 1;
  };
  EXPECT_TRUE(decide(1.0, 0.9));
  EXPECT_FALSE(decide(1.0, 0.99));
  EXPECT_FALSE(decide(1.0, 1.1));
  if (test::ranks() > 1) {
    EXPECT_FALSE(decide(1.0, last ? 1.2 : 0.5));  // one rank is held up
    EXPECT_TRUE(decide(last ? 1.2 : 0.5, 1.0));
  }
}

#if !defined(__SANITIZE_ADDRESS__)  // which takes terabytes of addresses
TEST(StateStepper, MemoryThatOneRankLacksIsAnErrorOfAll) {
  const std::int64_t n = 4096;
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {n * test::ranks(), n});
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  if (test::rank() == test::ranks() - 1) {
    std::int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit now{static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + (std::int64_t{64} << 20)),
                     before.rlim_max};
    setrlimit(RLIMIT_AS, &now);
  }
  const auto make = [&] {
    StateStepper<double, 2>("u", domain, StencilShape<2>::star(1), BoundaryRules<2>{}, 1,
                            [](const Index<2>& stride) {
                              return PointRow<double, 2, HeatPoint>({{{0.1, 0.1}, stride}});
                            });
  };
  EXPECT_THROW(make(), RunError);
  setrlimit(RLIMIT_AS, &before);
  EXPECT_NO_THROW(make());
}
#endif

TEST(Boundary, RefusesStencilsBeyondTheGrid) {
  BoundaryRules<1> rules;
  rules.low[0].kind = rules.high[0].kind = Boundary::neumann;
  EXPECT_THROW(
      refuse_reach_beyond_grid(StencilShape<1>::star(3), boundary_topology_of(rules, box_of_shape<1>({2}))),
      UsageError);
  EXPECT_NO_THROW(
      refuse_reach_beyond_grid(StencilShape<1>::star(3), boundary_topology_of(rules, box_of_shape<1>({3}))));
}

}  // namespace
}  // namespace isohalo
