#pragma once
/// What `bench scaling` measures, what follows from it, and how both are told.

#include <set>
#include <string>
#include <vector>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/scaling_model.hpp"
#include "datatypes/box.hpp"

namespace isohalo {

/// A grid in blocks.
struct Cut {
  Index<3> shape{};
  PerDim<int, 3> blocks{};
  int ranks() const { return blocks[0] * blocks[1] * blocks[2]; }
};

/// What the busiest rank does in a step of a 7-point stencil in float64; its threads share the cells.
StepWork work_of(const Cut& cut, int threads, int sharing, double residual);

/// What was measured.
struct ScalingPoint {
  std::string kind;  ///< "strong" or "weak"
  Cut cut;
  int threads = 1;
  int sharing = 1, cores = 1;                     ///< in use on the fullest compute node, and there
  double residual = 0;                            ///< in each step (1) or in none
  double seconds = 0;                             ///< per step
  bool fits() const { return sharing <= cores; }  ///< else ranks wait for cores, which no term tells
  StepWork work() const { return work_of(cut, threads, sharing, residual); }
};

/// The parts of a step's time that the table and the plots name.
struct Parts {
  Cut cut;
  double compute = 0, step = 0, messages = 0, bytes = 0, residual = 0, sum = 0;
  double total() const { return compute + step + messages + bytes + residual + sum; }
};

/// What follows from the measured points.
struct Outlook {
  StepCosts fitted;
  StepCosts costs;  ///< the same, but for those of a network that are given
  int sharing = 1;  ///< cores of a machine that share memory, of those measured
  std::vector<Parts> weak, strong;
  std::set<std::string> missing{};  ///< terms without a cost, for want of which ranks are left out
};

/// On standard output.
void print_scaling(const std::vector<ScalingPoint>& points, const Outlook& outlook,
                   const BenchScalingOptions& options);
/// scaling-weak.svg and scaling-strong.svg. Throws RunError.
void plot_scaling(const std::vector<ScalingPoint>& points, const Outlook& outlook, const std::string& directory);

}  // namespace isohalo
