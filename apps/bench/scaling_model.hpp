#pragma once
/// A model of the time of a step, whose terms each have a name and a cost, fitted to what was measured.

#include <cstdint>
#include <string>
#include <vector>

namespace isohalo {

/// So much of something that costs time.
struct Amount {
  std::string term;
  double amount = 0;
};

/// What the busiest rank has to do in a step.
struct StepWork {
  int ranks = 1;
  int sharing = 1;      ///< cores that share memory with it, itself included
  double cells = 0;     ///< of its block
  double messages = 0;  ///< that it sends
  double bytes = 0;     ///< of these
  double residual = 0;  ///< residuals per step: 1, or a part
  std::string level{};  ///< where its fields fit: "second-level cache", "third-level cache" or "memory"
};

/// Terms: a cell, by level and cores that share it; what a residual adds to a cell; the step itself; a message; a
/// byte sent; the sum of a residual and each of its log2(ranks) levels.
std::vector<Amount> amounts_of(const StepWork& work);

/// What a block of so many bytes is swept from where so many cores share the machine.
std::string memory_level(double bytes, int sharing);

struct MeasuredStep {
  std::vector<Amount> amounts;
  double seconds = 0;
};

struct StepCosts {
  struct Term {
    std::string name;
    double seconds = 0;  ///< of one
  };
  std::vector<Term> terms;
  double mean_error = 0, largest_error = 0;  ///< relative, of the fit: root mean square, and largest

  bool has(const std::string& term) const;
  /// Of one; throws UsageError for a term that was not measured.
  double of(const std::string& term) const;
  double seconds(const std::vector<Amount>& amounts) const;
};

/// The costs, none below 0, with the least sum of squared relative errors. Throws UsageError without points.
StepCosts fit_costs(const std::vector<MeasuredStep>& points);

}  // namespace isohalo
