#pragma once
/// Means with confidence intervals, as the papers report them: outliers removed by Tukey's rule first.

#include <cstddef>
#include <vector>

namespace isohalo {

struct Sample {
  std::size_t taken = 0, kept = 0;
  double mean = 0, median = 0;
  double ci95 = 0;  ///< half width of the 95 % interval of the mean (Student's t)
};

/// Values further than `factor` interquartile ranges outside the quartiles are removed (Tukey; the paper uses 3).
Sample summarize(std::vector<double> values, double factor = 3.0);

}  // namespace isohalo
