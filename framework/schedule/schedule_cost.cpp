#include "framework/schedule/schedule_cost.hpp"

namespace isohalo {

double model_ns(const Schedule& schedule, const MessageCosts& costs, double bytes) {
  double sum = 0;
  for (int s = 0; s < schedule.size(); ++s)
    sum += costs.stage_ns(static_cast<double>(schedule.most_sends(s)), bytes);
  return sum;
}

}  // namespace isohalo
