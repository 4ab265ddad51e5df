#include "stencils/time_step.hpp"

#include <fmt/format.h>

namespace isohalo {

double read_time_step(Config& config, double limit, const std::string& help_limit, const std::string& limit_text) {
  double dt = 0;
  config.node("solver.dt", {"solver.dt", "number", "above 0, up to 1e+300", "solver.cfl * limit", "time",
                            "length of a step, at most the stability limit " + help_limit});
  const NumericKey<double> part{.fallback = 0.9,
                                .min = 0,
                                .max = 1e300,
                                .above_min = true,
                                .help = "step as a part of the stability limit, at most 1; instead of solver.dt"};
  if (config.has("solver.dt")) {
    dt = config.number("solver.dt", {{}, 0, 1e300, true, "time", ""});
    if (config.has("solver.cfl"))
      config.error("solver.cfl", "solver.dt and solver.cfl are both given: give one of them");
    config.number("solver.cfl", part);
    config.drop_effective("solver.cfl");
  } else {
    dt = config.number("solver.cfl", part) * limit;
  }
  if (!(dt <= limit) && !config.has_errors())
    config.error(config.has("solver.dt") ? "solver.dt" : "solver.cfl",
                 fmt::format("dt = {:.6g} is above the stability limit {:.17g} = {}: use a smaller dt, or cfl <= 1",
                             dt, limit, limit_text));
  return dt;
}

double read_time_step(Config& config) {
  return config.number("solver.dt", {{}, 0, 1e300, true, "time", "length of a step"});
}

}  // namespace isohalo
