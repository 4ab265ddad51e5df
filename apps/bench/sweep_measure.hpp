#pragma once
/// How `bench sweep` times steps of ours against hand-written ones.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "apps/bench/copy_rate.hpp"
#include "framework/run/solver.hpp"

namespace isohalo {

struct SweepFigures {
  std::string name, shape, type;
  int ranks = 1;
  double ours = 0, by_hand = 0, with_residual = 0;  ///< million updates/s, medians; 0: no opponent
  double ratio = 0;                                 ///< ours / by hand, median of pairs
  double bytes = 0;          ///< that an update must move at least: what is read once, what is written once
  double gb_per_s = 0;       ///< of ours, by these
  double copied = 0;         ///< GB/s of memcpy on all ranks at once, read and written
  double of_copy = 0;        ///< the one over the other, median of pairs
  double residual_cost = 0;  ///< time with the residual / without, median of pairs
  double overlap_cost = 0;   ///< time with exchange and sweep overlapped / one after the other; 0: not measured
  bool overlap = false;      ///< what a stepper on its own chooses
  bool same_bits = false;
};

/// Times `ours`, the hand-written opponent and, unless it is null, `overlapped`, which begin with the same values
/// of `fields` fields of type T, and compares all bits at the end. `arrays`: those that a step must read, and
/// write. Collective.
template <class T, int D, class Hand>
SweepFigures compare_steps(const CartesianDomain<D>& domain, Solver<D>& ours, Solver<D>* overlapped, Hand& hand,
                           std::size_t fields, double arrays, int repeats) {
  const double cells = static_cast<double>(domain.global().cells());
  const Communicator& comm = domain.comm();
  CopyRate copy(domain.owned().cells() * static_cast<std::int64_t>(sizeof(T)));
  ours.advance(2, false), hand.advance(2);  // pages are touched, an exchange is chosen
  const double once = timed(comm, [&] { ours.advance(2, false), hand.advance(2); }) / 4;
  constexpr std::int64_t trial = 60;  // steps, after which all ways are chosen
  ours.advance(trial, false), hand.advance(trial);
  for (std::int64_t s = 0; s < trial; ++s) ours.advance(1, true);
  hand.advance(trial);
  if (overlapped) overlapped->advance(4 + 2 * trial, false);
  const auto steps = static_cast<std::int64_t>(std::clamp(0.25 / once, 4.0, 1000.0));
  std::vector<double> a, b, r, c, ratio, cost, overlap, of_copy;
  for (int k = 0; k < repeats; ++k) {  // A B C A B C .. so that all see the same weather
    a.push_back(timed(comm, [&] { ours.advance(steps, false); }));
    b.push_back(timed(comm, [&] { hand.advance(steps); }));
    c.push_back(copy.seconds(comm, steps));
    r.push_back(timed(comm, [&] {
      for (std::int64_t s = 0; s < steps; ++s) ours.advance(1, true);
    }));
    hand.advance(steps);  // as far as ours
    if (overlapped) {
      const double o = timed(comm, [&] { overlapped->advance(steps, false); });
      overlapped->advance(steps, false);
      overlap.push_back(o / a.back());
    }
    ratio.push_back(b.back() / a.back());
    cost.push_back(r.back() / a.back());
    of_copy.push_back(c.back() * static_cast<double>(steps) * 0.5 * arrays / a.back());
  }
  std::int64_t wrong = 0;
  const auto compare = [&](Solver<D>& solver) {
    const auto all = solver.fields();
    for (std::size_t f = 0; f < fields; ++f) {
      const auto u = std::get<ArrayRef<T, D>>(all[f].array);
      for_each_cell(domain.owned(),
                    [&](const Index<D>& i) { wrong += std::memcmp(&u.at(i), &hand.at(i, f), sizeof(T)) != 0; });
    }
  };
  compare(ours);
  if (overlapped) compare(*overlapped);
  const auto rate = [&](const std::vector<double>& v) {
    return cells * static_cast<double>(steps) / median(v) / 1e6;
  };
  SweepFigures f;
  f.shape = shape_string<D>(domain.global().extents());
  f.ranks = comm.size();
  f.ours = rate(a), f.by_hand = rate(b), f.with_residual = rate(r);
  f.ratio = median(ratio), f.residual_cost = median(cost), f.of_copy = median(of_copy);
  f.bytes = arrays * sizeof(T);
  f.gb_per_s = f.ours * 1e6 * f.bytes / 1e9;
  f.copied = cells * 2 * sizeof(T) / median(c) / 1e9;
  if (overlapped) f.overlap_cost = median(overlap);
  f.same_bits = comm.max(wrong) == 0;
  return f;
}

/// The cases of solvers that input files ask for, as far as they are wanted; `size` cells per dimension, 0: far
/// more than caches hold.
struct SweepOrder {
  MPI_Comm comm;
  std::vector<std::string> cases;  ///< empty: all
  std::int64_t size = 0;
  int repeats = 7;
  bool wants(const std::string& name) const {
    return cases.empty() || std::find(cases.begin(), cases.end(), name) != cases.end();
  }
};
std::vector<SweepFigures> measure_solver_steps(const SweepOrder& order);
/// Their names.
std::vector<std::string> solver_step_names();
/// Those that compute on Kokkos' default execution space, against a copy there and by the host's bits.
std::vector<SweepFigures> measure_device_steps(const SweepOrder& order);

}  // namespace isohalo
