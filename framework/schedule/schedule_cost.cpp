#include "framework/schedule/schedule_cost.hpp"

#include <cmath>
#include <numbers>

#include "datatypes/error.hpp"

namespace isohalo {

double model_ns(const Schedule& schedule, const MessageCosts& costs, double bytes) {
  double sum = 0;
  for (int s = 0; s < schedule.size(); ++s)
    sum += costs.stage_ns(static_cast<double>(schedule.most_sends(s)), bytes);
  return sum;
}

double lambert_w(double x) {
  constexpr double e = std::numbers::e;
  if (!(x * e >= -1 - 1e-15)) throw UsageError("lambert_w(" + std::to_string(x) + "): the least argument is -1/e");
  const double distance = std::max(0.0, 2 * (e * x + 1));
  // Near the branch point the series in sqrt(2 (e x + 1)); elsewhere a logarithm.
  double w = x < 0   ? -1 + std::sqrt(distance) - distance / 3
             : x < 3 ? x / (1 + x) + 0.1 * x
                     : std::log(x) - std::log(std::log(x));
  if (distance < 1e-14) return w;
  for (int i = 0; i < 50; ++i) {  // Halley
    const double power = std::exp(w), f = w * power - x;
    const double step = f / (power * (w + 1) - (w + 2) * f / (2 * w + 2));
    w -= step;
    if (std::abs(step) <= 1e-15 * (1 + std::abs(w))) break;
  }
  return w;
}

double best_fan_out(double latency_ns, double pipeline_ns) {
  if (!(latency_ns >= 0) || !(pipeline_ns > 0) || std::isinf(latency_ns) || std::isinf(pipeline_ns))
    throw UsageError("the best fan-out of latency " + std::to_string(latency_ns) + " ns and pipeline latency " +
                     std::to_string(pipeline_ns) + " ns: the first must be at least 0, the second above 0");
  return std::exp(lambert_w((latency_ns - pipeline_ns) / (std::numbers::e * pipeline_ns)) + 1) - 1;
}

}  // namespace isohalo
