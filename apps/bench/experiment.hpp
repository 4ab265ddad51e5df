#pragma once
/// Experiments as the papers run them: all in one random order, a sample is the slowest rank's time, means with 95
/// % intervals after Tukey's rule; a method whose result is wrong is not timed.

#include <mpi.h>

#include <functional>
#include <string>
#include <vector>

#include "apps/common/report.hpp"
#include "framework/mpi/communicator.hpp"

namespace isohalo {

/// One curve's point: something to run, and whether its result is right.
struct Experiment {
  std::string figure, method;
  std::string axis;    ///< what x is, as in JSON: "block_bytes", "ranks"
  std::int64_t x = 0;  ///< 0: no curve, but a column
  std::function<void()> run{};
  std::function<bool()> right{};  ///< runs once and checks; local
  bool correct = true;
  int batch = 1;
  std::vector<double> samples{};  ///< seconds of one run
};

/// Checks all, then takes `samples` of each, within about `seconds_each`, in random order. Collective.
void run_experiments(const Communicator& comm, std::vector<Experiment>& experiments, int samples,
                     double seconds_each);

/// The median of one method over that of another, of the same figure and x; negative when one is missing.
double ratio_of(const std::vector<Experiment>& all, const std::string& figure, std::int64_t x, const std::string& a,
                const std::string& b);

Json json_of(const Experiment& e);
/// One SVG per figure, named by its first word.
void write_plots(const std::vector<Experiment>& all, const std::string& directory);

/// Adds Figs. 8 and 9 of "Isomorphic, Sparse MPI-like Collective Communication Operations", section 7.3: the
/// exchange of a 5-point stencil with a halo of depth 10 around `order` squared bytes per rank (10^4 in the paper),
/// and of a 9-point stencil with depth 2 around 100 squared, on meshes (not periodic) of the first 1, 2, 3, ..
/// ranks. Collective.
void add_stencil_kernels(MPI_Comm user, int order, std::vector<Experiment>& experiments);

}  // namespace isohalo
