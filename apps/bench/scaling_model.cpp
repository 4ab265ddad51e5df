#include "apps/bench/scaling_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>
#include <utility>

#include "datatypes/error.hpp"

namespace isohalo {

namespace {

using Matrix = std::vector<std::vector<double>>;

/// x >= 0 with the least |A x - 1|, one unknown after the other until none changes. `rows`: of A, whose columns
/// have numbers other than 0.
std::vector<double> nonnegative(const Matrix& rows, std::size_t terms) {
  Matrix square(terms, std::vector<double>(terms));
  std::vector<double> right(terms), x(terms);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < terms; ++i) {
      for (std::size_t j = 0; j < terms; ++j) square[i][j] += row[i] * row[j];
      right[i] += row[i];
    }
  double change = 1;
  for (int k = 0; k < 1000000 && change > 1e-15; ++k) {
    change = 0;
    for (std::size_t i = 0; i < terms; ++i) {
      const double product = std::inner_product(x.begin(), x.end(), square[i].begin(), 0.0);
      const double best = std::max(0.0, x[i] + (right[i] - product) / square[i][i]);
      change = std::max(change, std::abs(best - x[i]));
      x[i] = best;
    }
  }
  return x;
}

/// Of this level, as the system says: the processor itself tells virtual machines of all its caches together.
double cache_bytes(int level, double otherwise) {
  for (int k = 0; k < 8; ++k) {
    const std::string place = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", k);
    int its = 0;
    double size = 0;
    std::string unit;
    if (std::ifstream(place + "level") >> its && its == level && std::ifstream(place + "size") >> size >> unit)
      return size * (unit == "M" ? 1 << 20 : 1 << 10);
  }
  return otherwise;
}

}  // namespace

std::string memory_level(double bytes, int sharing) {
  static const double second = cache_bytes(2, 1 << 20), third = cache_bytes(3, 0);
  if (bytes <= second) return "second-level cache";
  return bytes < third / sharing ? "third-level cache" : "memory";
}

std::vector<Amount> amounts_of(const StepWork& w) {
  const std::string where = fmt::format(", {}, {} core{}", w.level, w.sharing, w.sharing == 1 ? "" : "s");
  std::vector<Amount> all{{"cell" + where, w.cells}, {"step", 1}};
  if (w.messages > 0) all.insert(all.end(), {{"message", w.messages}, {"byte", w.bytes}});
  if (w.residual > 0) {
    all.push_back({"residual of a cell" + where, w.cells * w.residual});
    all.push_back({"sum", w.residual});
    if (w.ranks > 1) all.push_back({"level of a sum", w.residual * std::log2(w.ranks)});
  }
  return all;
}

bool StepCosts::has(const std::string& term) const {
  return std::any_of(terms.begin(), terms.end(), [&](const Term& t) { return t.name == term; });
}

double StepCosts::of(const std::string& term) const {
  for (const Term& t : terms)
    if (t.name == term) return t.seconds;
  throw UsageError("bench scaling: what a \"" + term +
                   "\" costs was not measured: measure blocks of other sizes as well (--block, --grid)");
}

double StepCosts::seconds(const std::vector<Amount>& amounts) const {
  double sum = 0;
  for (const Amount& a : amounts) sum += a.amount * of(a.term);
  return sum;
}

StepCosts fit_costs(const std::vector<MeasuredStep>& points) {
  if (points.empty()) throw UsageError("bench scaling: nothing was measured on as many ranks as there are cores");
  std::map<std::string, std::size_t> column;
  for (const auto& p : points)
    for (const Amount& a : p.amounts) column.try_emplace(a.term, column.size());
  // Relative errors: rows over their times. Columns over their largest entry, since costs differ by powers of ten.
  Matrix rows(points.size(), std::vector<double>(column.size(), 0.0));
  std::vector<double> scale(column.size(), 0.0);
  for (std::size_t p = 0; p < points.size(); ++p)
    for (const Amount& a : points[p].amounts) rows[p][column.at(a.term)] += a.amount / points[p].seconds;
  for (const auto& row : rows)
    for (std::size_t k = 0; k < row.size(); ++k) scale[k] = std::max(scale[k], row[k]);
  for (auto& row : rows)
    for (std::size_t k = 0; k < row.size(); ++k) row[k] /= scale[k];
  const auto x = nonnegative(rows, column.size());

  StepCosts costs;
  for (const auto& [name, k] : column) costs.terms.push_back({name, x[k] / scale[k]});
  for (const auto& p : points) {
    const double error = std::abs(costs.seconds(p.amounts) / p.seconds - 1);
    costs.mean_error += error * error / static_cast<double>(points.size());
    costs.largest_error = std::max(costs.largest_error, error);
  }
  costs.mean_error = std::sqrt(costs.mean_error);
  return costs;
}

}  // namespace isohalo
