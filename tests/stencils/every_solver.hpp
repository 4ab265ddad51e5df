#pragma once
/// Every kind of solver, as lines of an input file for a plane.

#include <string>
#include <vector>

namespace isohalo {

/// Lines of an input file.
struct SolverText {
  std::string kind, text;
};

inline const std::string kPeriodic =
    "domain.boundary = {low = [\"periodic\", \"periodic\"], high = [\"periodic\", "
    "\"periodic\"]}\n";
inline const std::string kFixed =
    "domain.boundary = {low = [{dirichlet = 0.5}, \"neumann\"], high = [{fixed = 1.0}, "
    "{dirichlet = 0.0}]}\n";
inline const std::string kExpression =
    "domain.boundary = {low = [{dirichlet = \"sin(pi*x)*exp(-t)\"}, \"neumann\"], high = "
    "[{fixed = 1.0}, {dirichlet = 0.0}]}\n";
inline const std::string kRandom = "initial.kind = \"random\"\n";

inline std::vector<SolverText> all_solvers() {
  const auto poisson = [](const std::string& method, const std::string& sides) {
    return SolverText{"poisson", sides + kRandom + "solver = {kind = \"poisson\", method = \"" + method + "\"}\n"};
  };
  const std::string everywhere =
      "initial = {p = {kind = \"random\"}, v0 = {kind = \"random\"}, v1 = {kind = \"random\"}}\nsolver.kind = "
      "\"acoustics\"\n";
  std::vector<SolverText> all{
      {"acoustics", kPeriodic + everywhere},
      {"acoustics", kFixed + everywhere},
      {"acoustics", kExpression + everywhere +
                        "solver.mask = {kind = \"checkerboard\", size = 5, rule = \"mirror\"}\n"
                        "source = {kind = \"expression\", expression = \"x*sin(t) + y\"}\n"},
      {"heat", kPeriodic + kRandom + "solver.kind = \"heat\"\n"},
      {"heat", kExpression + kRandom + "solver.kind = \"heat\"\n"},
      {"heat", kFixed + kRandom + "solver = {kind = \"heat\", kappa = {kind = \"random\"}}\n"},
      {"heat", kFixed + kRandom + "solver = {kind = \"heat\", mask = {kind = \"checkerboard\", size = 7}}\n"},
      {"heat", kFixed + kRandom +
                   "source = {kind = \"expression\", expression = \"x*sin(t) + y\"}\nsolver.kind = \"heat\"\n"},
      {"stencil",
       kFixed + kRandom +
           "solver = {kind = \"stencil\", offsets = [[0, 0], [1, 1], [-2, 0]], weights = [0.5, 0.2, 0.3]}\n"},
      {"life", kPeriodic + "domain.type = \"uint8\"\ninitial.kind = \"random\"\nsolver.kind = \"life\"\n"},
      {"wave", kFixed + kRandom + "solver.kind = \"wave\"\n"},
      {"wave", kFixed + kRandom + "solver = {kind = \"wave\", layer = 0.1, damping = 5.0}\n"},
      {"advection", kPeriodic + kRandom + "solver = {kind = \"advection\", method = \"upwind\", v0 = 1.0}\n"},
      {"advection", kPeriodic + kRandom + "solver = {kind = \"advection\", v0 = 1.0, v1 = -0.5}\n"},
      {"gray_scott",
       kFixed + "initial.u.kind = \"random\"\ninitial.v.kind = \"random\"\nsolver.kind = \"gray_scott\"\n"},
  };
  for (const char* method : {"jacobi", "red_black", "chebyshev", "cg"}) {
    all.push_back(poisson(method, kFixed));
    all.push_back(poisson(method, kPeriodic));  // known up to a constant: with a mean in each step
  }
  return all;
}

}  // namespace isohalo
