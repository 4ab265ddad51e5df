/// acoustics: steps that go slab by slab through a grid larger than the cache have the bits of steps that update
/// one field after the other, as those with a change sum do.

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "apps/bench/input_solver.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

template <int D>
std::string input_text(const Index<D>& shape, const std::string& low, const std::string& high, int depth) {
  std::string lows, highs, text = "domain.shape = " + list_text<D>(shape) + "\ninitial.p.kind = \"random\"\n";
  for (int j = 0; j < D; ++j) {
    lows += (j ? ", " : "") + low, highs += (j ? ", " : "") + high;
    text += "initial.v" + std::to_string(j) + " = {kind = \"random\", seed = " + std::to_string(j + 1) + "}\n";
  }
  return text + "domain.boundary = {low = [" + lows + "], high = [" + highs +
         "]}\nparallel.halo_depth = " + std::to_string(depth) + "\nrun.steps = 1\n";
}

template <int D>
void expect_same(Solver<D>& a, Solver<D>& b, const std::string& where) {
  std::int64_t cells = 0, wrong = 0;
  const auto left = a.fields(), right = b.fields();
  ASSERT_EQ(left.size(), static_cast<std::size_t>(D + 1));
  for (std::size_t f = 0; f < left.size(); ++f) {
    const auto u = std::get<ArrayRef<double, D>>(left[f].array), v = std::get<ArrayRef<double, D>>(right[f].array);
    for_each_cell(u.owned, [&](const Index<D>& i) {
      ++cells;
      wrong += std::memcmp(&u.at(i), &v.at(i), sizeof(double)) != 0;
    });
  }
  EXPECT_GT(cells, 0) << where;
  EXPECT_EQ(wrong, 0) << where << ", of " << cells << " cells and faces";
}

template <int D>
void compare(const Index<D>& shape) {
  const std::string numbers = "solver = {kind = \"acoustics\", density = 1.25, bulk_modulus = 0.75}\n",
                    fields =
                        "solver = {kind = \"acoustics\", dt = 1e-6, bulk_modulus = 0.75, "
                        "density = {kind = \"random\", low = 1.0, high = 2.0}}\n";
  for (const int depth : {1, 3})
    for (const auto& [low, high] :
         {std::pair("\"periodic\"", "\"periodic\""), std::pair("\"neumann\"", "{dirichlet = 0.25}")}) {
      const bool periodic = std::string(low) == high;
      const std::string text = input_text<D>(shape, low, high, depth) + (periodic ? numbers : fields);
      InputSolver<D> slabs(MPI_COMM_WORLD, text), whole(MPI_COMM_WORLD, text);
      slabs->advance(5, false);
      for (int k = 0; k < 5; ++k) EXPECT_GT(whole->advance(1, true), 0);
      expect_same<D>(*slabs, *whole, text);
    }
}

TEST(Acoustics, SlabsOfRows) {
  compare<2>({41, 9001});
}
TEST(Acoustics, SlabsOfPlanes) {
  compare<3>({9, 61, 700});
}
TEST(Acoustics, SlabsOfALine) {
  compare<1>({150001});
}

}  // namespace
}  // namespace isohalo
