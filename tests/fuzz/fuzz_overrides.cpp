/// Overrides on the command line: one a line, on top of a small input file.

#include <sstream>

#include "tests/fuzz/decks.hpp"
#include "tests/fuzz/harness.hpp"

namespace isohalo::fuzz {

namespace {

const char* const kDeck = R"([domain]
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
  accepted([&] { plan_deck(kDeck, overrides, 1 + static_cast<int>(input.size() % 12)); });
}

}  // namespace isohalo::fuzz
