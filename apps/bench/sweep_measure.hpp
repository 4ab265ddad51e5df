#pragma once
/// How `bench sweep` times steps of ours against hand-written ones.

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "apps/bench/copy_rate.hpp"
#include "apps/bench/hand_grid.hpp"
#include "apps/common/report.hpp"
#include "framework/run/solver.hpp"

namespace isohalo {

/// What is timed, in this order, in seconds per step; copies are of as many bytes as a field of this rank has.
enum SweepWay : std::size_t { kCopying, kOurs, kByHand, kWithResidual, kOverlapped };

/// So many steps take about a quarter of a second where one takes `seconds`.
inline std::int64_t steps_to_time(double seconds, double least, double most) {
  return static_cast<std::int64_t>(std::clamp(0.25 / seconds, least, most));
}

/// The figures of a case. `arrays`: those that a step must read, and write.
template <class T, int D>
Json sweep_row(const std::string& name, const CartesianDomain<D>& domain, const Turns& turns, double arrays,
               bool same_bits) {
  const double cells = static_cast<double>(domain.global().cells());
  const double ours = cells / turns.middle(kOurs) / 1e6, bytes = arrays * sizeof(T);
  return {{"case", name},
          {"shape", shape_string<D>(domain.global().extents())},
          {"type", std::is_same_v<T, double> ? "float64" : "uint8"},
          {"ranks", domain.size()},
          {"isohalo_mupdates_per_s", ours},
          {"bytes_per_update", bytes},
          {"gb_per_s", ours * 1e6 * bytes / 1e9},
          {"copy_gb_per_s", cells * 2 * sizeof(T) / turns.middle(kCopying) / 1e9},
          {"of_copy", 0.5 * arrays * turns.ratio(kCopying, kOurs)},
          {"same_bits", same_bits}};
}

/// Times `ours`, the hand-written opponent and, unless it is null, `overlapped`, which begin with the same values
/// of `fields` fields of type T, and compares all bits at the end; of one step per exchange with residuals as well.
/// `arrays` as above. Collective.
template <class T, int D>
Json compare_steps(const std::string& name, const CartesianDomain<D>& domain, Solver<D>& ours,
                   Solver<D>* overlapped, HandSteps<T, D>& hand, std::size_t fields, double arrays, int repeats,
                   int depth) {
  const Communicator& comm = domain.comm();
  CopyRate copy(domain.owned().cells() * static_cast<std::int64_t>(sizeof(T)));
  ours.advance(2 * depth, false), hand.advance(2 * depth);  // pages are touched, an exchange is chosen
  const double once = timed(comm, [&] { ours.advance(2 * depth, false), hand.advance(2 * depth); }) / (4 * depth);
  const std::int64_t trial = std::max(60 / depth, 10) * depth;  // steps, after which all ways are chosen
  ours.advance(trial, false), hand.advance(trial);
  for (std::int64_t s = 0; depth == 1 && s < trial; ++s) ours.advance(1, true), hand.advance(1);
  if (overlapped) overlapped->advance(4 + 2 * trial, false);
  const std::int64_t steps = (steps_to_time(once, 4, 1000) + depth - 1) / depth * depth;
  const auto per_step = [&](const auto& work) { return timed(comm, work) / static_cast<double>(steps); };
  std::vector<std::function<double()>> ways{[&] { return copy.seconds(comm, steps); },
                                            [&] { return per_step([&] { ours.advance(steps, false); }); },
                                            [&] { return per_step([&] { hand.advance(steps); }); }};
  if (depth == 1)
    ways.push_back([&] {
      hand.advance(steps);  // as far as ours
      return timed_calls(comm, steps, [&] { ours.advance(1, true); });
    });
  if (overlapped)
    ways.push_back([&] {
      overlapped->advance(steps, false);
      return per_step([&] { overlapped->advance(steps, false); });
    });
  const Turns turns(repeats, ways);
  std::int64_t wrong = 0;
  for (Solver<D>* solver : {&ours, overlapped}) {
    if (!solver) continue;
    const auto all = solver->fields();
    for (std::size_t f = 0; f < fields; ++f) {
      const auto u = std::get<ArrayRef<T, D>>(all[f].array);
      for_each_cell(domain.owned(),
                    [&](const Index<D>& i) { wrong += std::memcmp(&u.at(i), &hand.at(i, f), sizeof(T)) != 0; });
    }
  }
  Json row = sweep_row<T, D>(name, domain, turns, arrays, comm.max(wrong) == 0);
  row["hand_written_mupdates_per_s"] = static_cast<double>(domain.global().cells()) / turns.middle(kByHand) / 1e6;
  row["ratio"] = turns.ratio(kByHand, kOurs);
  if (depth == 1) row["residual_cost"] = turns.ratio(kWithResidual, kOurs);
  if (overlapped) row["overlap_cost"] = turns.ratio(kOverlapped, kOurs);
  return row;
}

/// What `bench sweep` or `bench temporal` was asked for; the cases that follow are added to `rows`.
struct SweepOrder {
  MPI_Comm comm;
  std::int64_t size;  ///< cells per dimension; 0: far more than caches hold
  int repeats;
  Cases cases;
  std::optional<int> depth = {};        ///< steps per exchange, of `bench temporal`
  std::vector<std::int64_t> tile = {};  ///< then only cases with as many dimensions
  Json rows = Json::array();
  std::int64_t cells(std::int64_t usual) const { return size > 0 ? size : usual; }
};
/// Adds the cases of solvers that input files ask for. Measures those of `bench temporal`, each with these depths.
void add_solver_steps(SweepOrder& order);
void measure_deep_steps(SweepOrder& order, const std::set<int>& depths);
/// Those that compute on Kokkos' default execution space, against a copy there and by the host's bits.
void measure_device_steps(SweepOrder& order);

}  // namespace isohalo
