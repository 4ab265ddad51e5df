#include "apps/bench/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace isohalo {

namespace {

/// Linear interpolation between order statistics; `sorted` is not empty.
double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto k = static_cast<std::size_t>(at);
  const double next = sorted[std::min(k + 1, sorted.size() - 1)];
  return sorted[k] + (at - static_cast<double>(k)) * (next - sorted[k]);
}

/// Two-sided 95 % quantile of Student's t.
double student95(std::size_t degrees) {
  static const double table[] = {0,     12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                 2.201, 2.179,  2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080,
                                 2.074, 2.069,  2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  return degrees < std::size(table) ? table[degrees] : 1.96 + 2.4 / static_cast<double>(degrees);
}

}  // namespace

Sample summarize(std::vector<double> values, double factor) {
  Sample s;
  s.taken = values.size();
  if (values.empty()) return s;
  std::sort(values.begin(), values.end());
  const double low = quantile(values, 0.25), high = quantile(values, 0.75), range = factor * (high - low);
  std::erase_if(values, [&](double v) { return v < low - range || v > high + range; });
  s.kept = values.size();
  s.median = quantile(values, 0.5);
  for (double v : values) s.mean += v / static_cast<double>(s.kept);
  if (s.kept > 1) {
    double squares = 0;
    for (double v : values) squares += (v - s.mean) * (v - s.mean);
    const double n = static_cast<double>(s.kept);
    s.ci95 = student95(s.kept - 1) * std::sqrt(squares / (n - 1) / n);
  }
  return s;
}

}  // namespace isohalo
