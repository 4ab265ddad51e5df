/// Input files: any text.

#include "tests/fuzz/harness.hpp"
#include "tests/fuzz/plan_input.hpp"

namespace isohalo::fuzz {

void fuzz_one(std::string_view input) {
  const int ranks = 1 + static_cast<int>(input.size() % 12);
  accepted([&] { plan_input(std::string(input), {}, ranks); });
}

}  // namespace isohalo::fuzz
