/// The library's own collectives on the live communicator, against their definitions.

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <vector>

#include "apps/isohalo/live_check.hpp"
#include "datatypes/mix.hpp"
#include "framework/neighborhood/iso_comm.hpp"
#include "framework/reduce/allreduce.hpp"
#include "framework/reduce/tree_reducer.hpp"
#include "framework/schedule/schedule_search.hpp"

namespace isohalo {

namespace {

/// Repeats, zeros, and steps longer than small meshes.
Offsets<2> awkward_list() {
  return {{0, 0}, {1, 0}, {1, 0}, {-3, 2}, {0, -1}, {5, -4}, {0, 0}, {-1, 1}};
}

constexpr int kBlock = 5;  // elements

std::int64_t element(int rank, std::size_t block, int k) {
  return (rank + 1) * std::int64_t{1000000} + static_cast<std::int64_t>(block) * 100 + k;
}

/// Block i must come from X - C^i, and be untouched where there is no such rank.
void check_blocks(LiveRow& row, const IsoComm& iso, bool shared, const std::string& place, bool broken) {
  const auto& n = iso.neighbors();
  const auto blocks = static_cast<std::size_t>(n.count());
  std::vector<std::int64_t> send, receive(blocks * kBlock, -1);
  for (std::size_t b = 0; b < (shared ? 1 : blocks); ++b)
    for (int k = 0; k < kBlock; ++k) send.push_back(element(n.rank(), b, k));
  iso.execute(
      shared ? NeighborCall::allgather(n, send.data(), kBlock, MPI_INT64_T, receive.data(), kBlock, MPI_INT64_T)
             : NeighborCall::alltoall(n, send.data(), kBlock, MPI_INT64_T, receive.data(), kBlock, MPI_INT64_T));
  if (broken) receive.front() ^= 1;
  for (std::size_t b = 0; b < blocks; ++b)
    for (int k = 0; k < kBlock; ++k) {
      const int source = n.sources()[b];
      const std::int64_t expected = source == Mesh::no_rank ? -1 : element(source, shared ? 0 : b, k);
      const std::int64_t found = receive[b * kBlock + static_cast<std::size_t>(k)];
      row.check(found == expected, [&] {
        return fmt::format("{} {}, rank {}: element {} of block {}, from rank {}, should be {}, found {}", place,
                           shared ? "allgather" : "alltoall", n.rank(), k, b, source, expected, found);
      });
    }
  ++row.cases;
}

/// Cancellation over 30 orders of magnitude: any other order of additions gives other bits.
double hard_value(std::int64_t l) {
  const std::uint64_t z = mix64(static_cast<std::uint64_t>(l + 1) * kGolden);
  return std::ldexp(static_cast<double>(z >> 12) * 0x1p-52 - 0.5, static_cast<int>(z % 101) - 50);
}

template <int D>
double sum_on(MPI_Comm user, const Index<D>& shape, const PerDim<int, D>& grid, const ReductionOptions& options) {
  DomainOptions<D> o;
  o.process_grid = grid;
  const CartesianDomain<D> domain(user, shape, o);
  TreeReducer<double, D, Sum> reducer(domain);
  reducer.reduce_by(options);
  return reducer.reduce([&](const Index<D>& i) { return hard_value(linear_index(domain.global(), i)); });
}

/// All process grids of a grid of cells must give the bits that one rank gives.
void check_sums(MPI_Comm user, LiveRow& row, const ReductionOptions& options, bool broken) {
  const Communicator comm = Communicator::of(user);
  const Index<2> shape{comm.size() + 61, 35};
  ReductionOptions alone;
  if (options.method == ReductionMethod::exact_over_tiles) alone.method = ReductionMethod::exact_over_tiles;
  const double expected = sum_on<2>(MPI_COMM_SELF, shape, {1, 1}, alone);
  for (const auto& grid : all_process_grids<2>(shape, comm.size())) {
    double found = sum_on<2>(user, shape, grid, options);
    if (broken) found = std::nextafter(found, 1e300);
    row.check(std::bit_cast<std::uint64_t>(found) == std::bit_cast<std::uint64_t>(expected), [&] {
      return fmt::format("{} cells on {} x {} ranks, rank {}: the sum should be {:.17g}, found {:.17g}",
                         shape_string<2>(shape), grid[0], grid[1], comm.rank(), expected, found);
    });
    ++row.cases;
  }
}

void check_allreduce(MPI_Comm user, LiveRow& row, bool broken) {
  const Communicator comm = Communicator::of(user);
  const int ranks = comm.size();
  PlanOptions options;
  std::vector<std::string> schedules{"auto"};
  for (const Plan& p : plan_candidates(ranks, options, 3)) schedules.push_back(p.schedule.text());
  for (const auto& schedule : schedules)
    for (const int count : {1, 1000}) {
      ScheduledAllreduce sum(user, count, MPI_INT64_T, MPI_SUM, schedule);
      std::vector<std::int64_t> values;
      for (int k = 0; k < count; ++k) values.push_back((comm.rank() + 1) * std::int64_t{k + 1});
      sum.reduce(values.data());
      if (broken) ++values.back();
      for (int k = 0; k < count; ++k) {
        const std::int64_t expected = std::int64_t{ranks} * (ranks + 1) / 2 * (k + 1);
        const std::int64_t found = values[static_cast<std::size_t>(k)];
        row.check(found == expected, [&] {
          return fmt::format("schedule {}, rank {}: sum {} of {} should be {}, found {}", schedule, comm.rank(), k,
                             count, expected, found);
        });
      }
      ++row.cases;
    }
}

}  // namespace

void check_neighborhoods(MPI_Comm user, LiveReport& report) {
  const int ranks = Communicator::of(user).size();
  const auto grids = all_process_grids<2>(index_of<2>(ranks), ranks);
  for (const Algorithm a : {Algorithm::direct, Algorithm::combining, Algorithm::logarithmic}) {
    const std::string name = std::string("neighbors_") + to_string(a);
    LiveRow& row = report.add("collective", name);
    for (const auto& grid : {grids.front(), grids[grids.size() / 2]})
      for (const bool periodic : {true, false})
        for (const auto& list : {moore<2>(1, Self::leave_out), awkward_list()}) {
          DomainOptions<2> o;
          o.process_grid = grid;
          o.periodic.fill(periodic);
          const CartesianDomain<2> domain(user, {grid[0], grid[1]}, o);
          IsoComm iso(domain, list);
          iso.set_algorithm(a);
          const std::string place = fmt::format("{} x {} ranks{}, {} offsets,", grid[0], grid[1],
                                                periodic ? ", periodic" : "", list.size());
          naming_place(name + ": " + place, [&] {
            for (const bool shared : {false, true}) check_blocks(row, iso, shared, place, report.broken(name));
          });
        }
  }
}

void check_reductions(MPI_Comm user, LiveReport& report) {
  ReductionOptions messages, node, binary, exact;
  messages.on_node = false;
  binary.method = ReductionMethod::binary_tree;
  exact.method = ReductionMethod::exact_over_tiles;
  const std::pair<const char*, ReductionOptions> methods[] = {
      {"tree", messages}, {"tree_on_node", node}, {"binary_tree", binary}, {"exact", exact}};
  for (const auto& [name, options] : methods) {
    LiveRow& row = report.add("collective", name);
    naming_place(name, [&, n = name, o = options] { check_sums(user, row, o, report.broken(n)); });
  }
  LiveRow& row = report.add("collective", "allreduce");
  naming_place("allreduce", [&] { check_allreduce(user, row, report.broken("allreduce")); });
}

}  // namespace isohalo
