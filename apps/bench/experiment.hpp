#pragma once
/// Experiments as the papers run them: all in one random order, a sample is the slowest rank's time, means with 95
/// % intervals after Tukey's rule; a method whose result is wrong is not timed.

#include <functional>
#include <string>
#include <vector>

#include "apps/bench/report.hpp"
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

}  // namespace isohalo
