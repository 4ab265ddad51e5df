/// Overrides on the command line: one a line, on top of a small input file.

#include <sstream>

#include "tests/fuzz/harness.hpp"
#include "tests/fuzz/plan_input.hpp"

namespace isohalo::fuzz {

namespace {

const char* const kInput = R"([domain]
shape = [31, 29]
boundary.low = ["neumann", {dirichlet = 1.0}]
boundary.high = ["neumann", {fixed = 0.0}]
[solver]
kind = "heat"
[initial]
kind = "random"
[run]
steps = 12
)";

}  // namespace

void fuzz_one(std::string_view input) {
  std::vector<std::string> overrides;
  std::istringstream lines{std::string(input)};
  for (std::string line; std::getline(lines, line) && overrides.size() < 20;) overrides.push_back(line);
  accepted([&] { plan_input(kInput, overrides, 1 + static_cast<int>(input.size() % 12)); });
}

}  // namespace isohalo::fuzz
