/// The exchange over MPI, by every transport: after it every needed ghost is right, every other ghost keeps the
/// sentinel, every owned cell is untouched.

#include <gtest/gtest.h>

#include "datatypes/error.hpp"
#include "tests/halo/halo_fields.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

using detail::NeededCells;
using test::Memory;

/// All periodicities x shapes x depths x transports; the process grids of the list, the layout and the type go
/// round.
template <int D>
void check(const Index<D>& extents, const std::vector<PerDim<int, D>>& grids, int deepest,
           const std::vector<test::NamedShape<D>>& shapes) {
  std::size_t next = 0;
  int turn = 0;
  for (const auto& periodic : test::periodicities<D>()) {
    DomainOptions<D> o;
    o.periodic = periodic;
    o.alignment_tolerance = turn % 2 ? 0.3 : 0.0;
    std::vector<CartesianDomain<D>> domains;
    for (const auto& grid : grids) {
      o.process_grid = grid;
      domains.emplace_back(MPI_COMM_WORLD, extents, o);
    }
    ++next;  // shapes and depths meet other grids
    for (const auto& [name, shape] : shapes)
      for (int depth = 0; depth <= deepest; ++depth) {
        const CartesianDomain<D>& domain = domains[next++ % domains.size()];
        const auto what = name + " depth " + std::to_string(depth) + " on " + shape_string<D>(extents);
        ++turn;
        const auto exchange = [&, &shape = shape](const auto& needed) {
          for (const Exchange e : test::exchanges(shape)) {
            const auto memory = static_cast<Memory>(turn++ % test::kMemories);
            const auto wrong = turn / 4 % 2
                                   ? test::exchange_once<double, D>(domain, shape, depth, memory, e, needed)
                                   : test::exchange_once<float, D>(domain, shape, depth, memory, e, needed);
            EXPECT_EQ(wrong, 0) << exchange_name(e) << ": " << what << ", layout " << static_cast<int>(memory);
          }
        };
        // A set takes longer than the exchanges, so most cases in space have the other. Exchanges show they agree.
        if (D <= 2 || (depth == 1 && domain.global().cells() < 1000))
          exchange(test::needed_on(domain, shape, depth));
        else
          exchange(NeededCells<D>(domain, shape, depth));
      }
  }
}

template <int D>
void check_all_grids(const Index<D>& extents, int deepest, const std::vector<test::NamedShape<D>>& shapes) {
  for (const auto& grid : all_process_grids<D>(extents, test::ranks())) check<D>(extents, {grid}, deepest, shapes);
}

TEST(HaloExchange, AllCasesIn1D) {
  check_all_grids<1>({17}, 5, test::shapes<1>());
  if (test::ranks() <= 6) check_all_grids<1>({6}, 12, test::shapes<1>());  // one cell a block; depth 2 x extent
}
TEST(HaloExchange, AllCasesIn2D) {
  check_all_grids<2>({17, 20}, 5, test::shapes<2>());
  check_all_grids<2>({6, 6}, 3, test::shapes<2>());
}
TEST(HaloExchange, AllCasesIn3D) {
  check_all_grids<3>({7, 5, 11}, 2, test::few_shapes<3>());
  check<3>({17, 20, 21}, {choose_process_grid<3>({17, 20, 21}, test::ranks())}, 3, test::few_shapes<3>());
}
TEST(HaloExchange, AllCasesIn4D) {
  check<4>({5, 6, 4, 7}, {choose_process_grid<4>({5, 6, 4, 7}, test::ranks())}, 2, test::few_shapes<4>());
  check<4>({6, 6, 6, 6}, {all_process_grids<4>({6, 6, 6, 6}, test::ranks()).front()}, 1, test::few_shapes<4>());
}

// Halos many times deeper than the blocks and the grid take longer: run as halo_depths (tests/components.cmake).
TEST(HaloDepths, DISABLED_In3D) {
  check<3>({5, 4, 7}, all_process_grids<3>({5, 4, 7}, test::ranks()), 5, test::shapes<3>());
}
TEST(HaloDepths, DISABLED_In4D) {
  check<4>({2, 3, 2, 3}, all_process_grids<4>({2, 3, 2, 3}, test::ranks()), 5, test::shapes<4>());
}

TEST(HaloExchange, UserCutsWithOneCellBlocks) {
  DomainOptions<2> o;
  o.periodic = {true, false};
  PerDim<std::vector<std::int64_t>, 2> cuts;
  for (int c = 0; c < test::ranks(); ++c) cuts[0].push_back(c);
  cuts[0].push_back(test::ranks() + 9);
  cuts[1] = {0, 5};
  o.cuts = cuts;
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {test::ranks() + 9, 5}, o);
  for (const auto& [name, shape] : test::shapes<2>())
    for (int depth = 0; depth <= 3; ++depth)
      for (const Exchange e : test::exchanges(shape))
        EXPECT_EQ((test::exchange_once<double, 2>(domain, shape, depth, Memory::plain, e,
                                                  NeededCells<2>(domain, shape, depth))),
                  0)
            << exchange_name(e) << ": " << name << " depth " << depth;
}

TEST(HaloExchange, SubCommunicatorAndReorderedCommunicator) {
  MPI_Comm reversed = MPI_COMM_NULL, odd = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -test::rank(), &reversed);
  MPI_Comm_split(MPI_COMM_WORLD, test::rank() % 2, test::rank(), &odd);
  for (MPI_Comm comm : {reversed, odd}) {
    DomainOptions<2> o;
    o.periodic = {true, false};
    const CartesianDomain<2> domain(comm, {14, 9}, o);
    const auto shape = StencilShape<2>::moore(1);
    const NeededCells<2> needed(domain, shape, 1);
    for (const Exchange e : test::exchanges(shape))
      EXPECT_EQ((test::exchange_once<double, 2>(domain, shape, 1, Memory::plain, e, needed)), 0)
          << exchange_name(e);
  }
  MPI_Comm_free(&reversed);
  MPI_Comm_free(&odd);
}

TEST(HaloPlan, RefusesBadDepthsAndSlabsOfListsWithoutAName) {
  const CartesianDomain<1> domain(MPI_COMM_WORLD, {4 * test::ranks()});
  EXPECT_THROW((HaloPlan<1>(domain, StencilShape<1>::star(1), -1)), UsageError);
  for (const Exchange e : {Exchange::slabs, Exchange::slabs_packed}) try {
      HaloOptions<1> options;
      options.exchange = e;
      HaloPlan<1>(domain, StencilShape<1>::of({{2}, {-1}}), 1, options);
      ADD_FAILURE();
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find('"' + exchange_name(e) + '"'), std::string::npos) << error.what();
    }
}

TEST(HaloPlan, RefusesArraysThatDoNotFit) {
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {8 * test::ranks(), 8});
  HaloPlan<2> plan(domain, StencilShape<2>::moore(1), 2);
  std::vector<double> memory(static_cast<std::size_t>(adopted_size(domain.owned(), 1)));
  EXPECT_THROW(plan.start(adopt(memory.data(), domain.owned(), 1)), UsageError);
  auto shifted = adopt(memory.data(), domain.owned().shifted({0, 1}), 2);
  EXPECT_THROW(plan.start(shifted), UsageError);
  std::vector<double> wide(static_cast<std::size_t>(adopted_size(domain.owned(), 2)));
  EXPECT_NO_THROW(plan.exchange(adopt(wide.data(), domain.owned(), 2)));  // usable after refusals
}

/// Each cell once, in few messages, which arrays with different needs share.
TEST(HaloSchedule, SendsWhatIsNeeded) {
  DomainOptions<2> o;
  o.periodic = {true, true};
  o.process_grid = {{test::ranks(), 1}};
  const std::int64_t p = test::ranks();
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {8 * p, 10}, o);
  const BoundaryTopology<2> around{domain.global(), domain.periodic(), {}, {}};
  const auto moore = StencilShape<2>::moore(1), star = StencilShape<2>::star(1);
  for (const HaloPattern pattern : {HaloPattern::direct, HaloPattern::coalesced, HaloPattern::slabs}) {
    const auto made = [&](const StencilShape<2>& shape) {
      return halo_schedule(pattern, HaloGeometry<2>{domain.decomposition(), shape, 2, around},
                           domain.coordinates());
    };
    const std::vector<HaloSchedule<2>> schedules{made(moore), made(star)};
    const HaloSchedule<2>& schedule = schedules.front();
    const HaloCost cost = halo_cost(schedule);
    const std::int64_t received = test::cells_received(schedule);
    const bool slabs = pattern == HaloPattern::slabs;
    const auto what = ::testing::Message() << "pattern " << static_cast<int>(pattern);
    EXPECT_EQ(received + cost.cells_copied, 12 * 14 - 8 * 10) << what;
    EXPECT_EQ(cost.cells_sent, received) << what;
    EXPECT_EQ(schedule.size(), slabs ? 2u : 1u);
    if (p == 1) continue;
    EXPECT_EQ(received, slabs ? 4 * 10 : 4 * 14) << what;
    std::int64_t messages = 0, shared = 0;
    for (std::size_t k = 0; k < schedule.size(); ++k) {
      messages += std::ssize(schedule[k].send);
      shared += std::ssize(joined<2>(schedules, k, &HaloStage<2>::send));
    }
    EXPECT_EQ(messages, pattern == HaloPattern::direct ? 6 : std::min<std::int64_t>(p - 1, 2)) << what;
    EXPECT_EQ(shared, messages) << what;
  }
}

}  // namespace
}  // namespace isohalo
