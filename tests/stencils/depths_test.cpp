/// Steps per exchange that are tried out in the first steps: the bits of one step per exchange, all the way.

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "apps/bench/input_solver.hpp"
#include "tests/mpi_main.hpp"
#include "tests/stencils/every_solver.hpp"

namespace isohalo {
namespace {

template <int D>
std::int64_t differences(std::vector<FieldHandle<D>> a, std::vector<FieldHandle<D>> b) {
  std::int64_t wrong = 0;
  for (std::size_t f = 0; f < a.size(); ++f)
    std::visit(
        [&](const auto& x) {
          using Array = std::remove_cvref_t<decltype(x)>;
          const auto& y = std::get<Array>(b[f].array);
          for_each_cell(x.owned,
                        [&](const Index<D>& i) { wrong += std::memcmp(&x.at(i), &y.at(i), sizeof(x.at(i))) != 0; });
        },
        a[f].array);
  return wrong;
}

/// Steps in pieces of any length, some with a change sum, until a depth is kept and for some time after.
template <int D>
void same_as_single_steps(const std::string& text, std::uint64_t seed, std::set<int>& seen) {
  const auto of = [&](const std::string& depth) {
    return InputSolver<D>(MPI_COMM_WORLD,
                          text + "parallel.halo_depth = " + depth + "\nrun = {steps = 1, residual_every = 7}\n");
  };
  auto single = of("1"), tried = of("\"auto\"");
  test::Random random(seed);
  for (std::int64_t made = 0; made < 2000;) {
    const std::int64_t steps = random.in(1, 40);
    const bool change = random.in(0, 2) == 0;
    const double a = single->advance(steps, change), b = tried->advance(steps, change);
    ASSERT_EQ(std::memcmp(&a, &b, sizeof a), 0) << "change sum: " << a << " against " << b;
    seen.insert(tried->depth());
    made += steps;
  }
  ASSERT_EQ(differences<D>(single->fields(), tried->fields()), 0);
  const Communicator& comm = tried.domain().comm();
  EXPECT_EQ(comm.min(tried->depth()), comm.max(tried->depth()));
}

TEST(Depths, ThatAreTriedOutHaveTheBitsOfSingleSteps) {
  std::uint64_t seed = 1;
  std::set<int> seen;
  for (const SolverText& s : all_solvers()) {
    SCOPED_TRACE(s.text);
    same_as_single_steps<2>("domain.shape = [32, 49]\n" + s.text, seed++, seen);
    ASSERT_TRUE(test::all_ranks_ok(!testing::Test::HasFatalFailure()));
  }
  EXPECT_EQ(seen, (std::set{1, 2, 4}));
}

TEST(Depths, ThatAreTriedOutHaveTheBitsOfSingleStepsInSpace) {
  std::set<int> seen;
  same_as_single_steps<3>("domain.shape = [54, 60, 66]\n" + kRandom + "solver.kind = \"heat\"\n", 1, seen);
  EXPECT_EQ(seen, (std::set{1, 2, 4}));
  // Stencils that read nothing along some dimensions.
  for (const std::string offsets : {"[[0, 0, -1], [0, 0, 0], [0, 0, 1]]", "[[-1, 0, 0], [0, 0, 0], [1, 0, 1]]"})
    same_as_single_steps<3>("domain.shape = [8, 9, 10]\n" + kRandom + "solver = {kind = \"stencil\", offsets = " +
                                offsets + ", weights = [0.25, 0.5, 0.25]}\n",
                            2, seen);
}

/// Tests of the state between steps bring ghosts, for as many steps as then follow.
TEST(Depths, AreTriedOutBetweenTestsOfTheStateToo) {
  InputSolver<2> tried(MPI_COMM_WORLD,
                       "domain = {shape = [32, 49], boundary = {low = [{dirichlet = 0.2}, \"neumann\"], "
                       "high = [\"neumann\", \"neumann\"]}}\n" +
                           kRandom + "solver.kind = \"poisson\"\nparallel.halo_depth = \"auto\"\nrun.steps = 1\n");
  int ended = 0;  // stretches of as many steps as there are between two tests
  for (int round = 0; round < 400; ++round) {
    const int depth = tried->depth();
    tried->stop_test(1e-30, tried->advance(4, true));
    ended += depth == 4 && tried->depth() != 4 ? 1 : 0;
  }
  EXPECT_GE(ended, 3);
}

/// Up to 60 steps by this way through memory, and in tiles of these extents, some of them cut.
template <int D>
void same_by_force(const std::string& text, const std::string& tile, const std::string& way, std::uint64_t seed,
                   std::int64_t steps_in_all = 60) {
  const auto of = [&](const std::string& keys) {
    return InputSolver<D>(MPI_COMM_WORLD,
                          text + "parallel = {" + keys + "}\nrun = {steps = 1, residual_every = 7}\n");
  };
  auto plain = of("halo_depth = 1, sweeps = \"plain\"");
  InputSolver<D> others[] = {of("halo_depth = 1, sweeps = \"" + way + "\""), of("halo_depth = 4, tile = " + tile)};
  test::Random random(seed);
  for (std::int64_t made = 0; made < steps_in_all;) {
    const std::int64_t steps = random.in(1, 12);
    const bool change = random.in(0, 1) == 0;
    const double a = plain->advance(steps, change);
    for (auto& other : others) {
      const double b = other->advance(steps, change);
      ASSERT_EQ(std::memcmp(&a, &b, sizeof a), 0) << "change sum: " << a << " against " << b;
    }
    made += steps;
  }
  for (auto& other : others) ASSERT_EQ(differences<D>(plain->fields(), other->fields()), 0);
}

TEST(Depths, AnySolverHasTheSameBitsInAnyTilesAndByAnyWayThroughMemory) {
  const char* const ways[] = {"fetched", "streamed", "streamed_far", "plain_rows"};
  const char* const tiles[] = {"[3, 8]", "[7, 5]"};
  std::uint64_t seed = 0;
  for (const SolverText& s : all_solvers()) {
    SCOPED_TRACE(s.text);
    same_by_force<2>("domain.shape = [32, 49]\n" + s.text, tiles[seed % 2], ways[seed % 4], seed);
    ASSERT_TRUE(test::all_ranks_ok(!testing::Test::HasFatalFailure()));
    ++seed;
  }
  for (const char* way : ways)
    same_by_force<3>("domain.shape = [14, 10, 66]\n" + kRandom + "solver.kind = \"heat\"\n", "[2, 3, 16]", way,
                     seed++);
}

TEST(Depths, OfFieldsOnFacesHaveTheSameBitsInAnyTiles) {
  std::uint64_t seed = 1;
  const auto check = [&]<int D>(std::integral_constant<int, D>, const std::string& shape, const std::string& low,
                                const std::string& high, const std::string& tile) {
    std::string text = "domain = {shape = " + shape + ", boundary = {low = [" + low + "], high = [" + high +
                       "]}}\n" + "solver.kind = \"acoustics\"\ninitial.p.kind = \"random\"\n";
    for (int j = 0; j < D; ++j) text += "initial.v" + std::to_string(j) + ".kind = \"random\"\n";
    SCOPED_TRACE(text);
    same_by_force<D>(text, tile, "fetched", seed++);
    ASSERT_TRUE(test::all_ranks_ok(!testing::Test::HasFatalFailure()));
  };
  const std::string given = "{dirichlet = \"sin(3*x0)*exp(-t)\"}", round = "\"periodic\"", free = "\"neumann\"";
  for (const char* tile : {"[1]", "[7]"}) {
    check(std::integral_constant<int, 1>(), "[61]", given, free, tile);
    check(std::integral_constant<int, 1>(), "[61]", round, round, tile);
  }
  for (const char* tile : {"[1, 1, 1]", "[2, 3, 16]", "[14, 3, 29]"}) {
    check(std::integral_constant<int, 3>(), "[14, 10, 29]", given + "," + free + "," + round,
          free + "," + given + "," + round, tile);
    check(std::integral_constant<int, 3>(), "[14, 10, 29]", round + "," + round + "," + given,
          round + "," + round + "," + given, tile);
  }
  check(std::integral_constant<int, 4>(), "[8, 9, 6, 13]", given + "," + round + "," + free + "," + given,
        free + "," + round + "," + given + "," + free, "[3, 2, 6, 8]");
}

// Rows and planes ahead of the sum that reads them, from several bands in the fastest dimension or the slowest,
// with every rule that p's outside cells may obey then, and with one that they may not.
TEST(Depths, ConjugateGradientsHaveTheSameBitsWherePIsTurnedAhead) {
  const std::string cg =
      "initial.kind = \"random\"\nsource.kind = \"random\"\nsolver = {kind = \"poisson\", method = \"cg\"}\n";
  const auto sides = [](const std::string& low, const std::string& high) {
    return "domain.boundary = {low = [" + low + "], high = [" + high + "]}\n";
  };
  const std::string robin = "{robin = {a = 1.0, b = 0.5, value = 0.3}}";
  std::uint64_t seed = 1;
  const auto check = [&]<int D>(std::integral_constant<int, D>, const std::string& text, const std::string& tile) {
    SCOPED_TRACE(text);
    same_by_force<D>(text + cg, tile, "fetched", seed++, 12);
    ASSERT_TRUE(test::all_ranks_ok(!testing::Test::HasFatalFailure()));
  };
  for (const std::string type : {"float32", "float64"}) {
    const auto shape = [&](const std::string& n) {
      return "domain.shape = " + n + "\ndomain.type = \"" + type + "\"\n";
    };
    check(std::integral_constant<int, 1>(), shape("[9001]") + sides("{dirichlet = 0.2}", "\"neumann\""), "[8]");
    check(std::integral_constant<int, 2>(),
          shape("[37, 4501]") + sides("{dirichlet = 0.2}, \"periodic\"", "{neumann = 0.1}, \"periodic\""),
          "[4, 8]");
    check(std::integral_constant<int, 2>(),
          shape("[23, 70]") + sides("{dirichlet = 0.2}, " + robin, "{neumann = 0.1}, {fixed = 0.5}"), "[4, 8]");
    for (const char* whole : {"[31, 40]", "[17, 8]", "[9, 4176]"})  // cache lines, nothing left over
      check(std::integral_constant<int, 2>(),
            shape(whole) + sides("\"periodic\", {dirichlet = 0.2}", "\"periodic\", \"neumann\""), "[4, 8]");
    check(std::integral_constant<int, 3>(),
          shape("[150, 13, 35]") + sides("{fixed = 0.2}, \"neumann\", {dirichlet = \"sin(y)\"}",
                                         "{dirichlet = 0.1}, {dirichlet = -1.0}, {neumann = 0.5}"),
          "[4, 4, 8]");
    check(std::integral_constant<int, 3>(),
          shape("[12, 141, 18]") +
              sides("\"periodic\", {dirichlet = 0.1}, \"periodic\"", "\"periodic\", {fixed = 0.0}, \"periodic\""),
          "[4, 4, 8]");
    check(std::integral_constant<int, 4>(),
          shape("[9, 7, 10, 19]") + sides("{fixed = 0.2}, \"neumann\", \"periodic\", {dirichlet = 0.3}",
                                          "{dirichlet = 0.1}, {dirichlet = -1.0}, \"periodic\", {fixed = 0.5}"),
          "[4, 4, 4, 8]");
  }
}

TEST(Depths, ResidualsThatAreShownChangeNoBit) {
  for (const SolverText& s : all_solvers()) {
    SCOPED_TRACE(s.text);
    const auto make = [&] {
      return InputSolver<2>(MPI_COMM_WORLD, "domain.shape = [32, 49]\n" + s.text + "run.steps = 1\n");
    };
    auto shown = make(), not_shown = make();
    for (int k = 0; k < 10; ++k) shown->advance(1, true);
    not_shown->advance(10, false);
    ASSERT_EQ(differences<2>(shown->fields(), not_shown->fields()), 0);
    ASSERT_TRUE(test::all_ranks_ok(!testing::Test::HasFatalFailure()));
  }
}

// A residual in the last step of each block of the deepest, too.
TEST(Depths, AreChosenWithResidualsInBetween) {
  InputSolver<2> solver(MPI_COMM_WORLD, "domain.shape = [48, 35]\n" + kPeriodic + kRandom +
                                            "solver.kind = \"heat\"\nparallel.halo_depth = \"auto\"\nrun.steps = "
                                            "1\nrun.residual_every = 4\n");
  std::vector<int> taken{solver->depth()};
  for (int k = 0; k < 400; ++k) {
    solver->advance(4, true);
    if (solver->depth() != taken.back()) taken.push_back(solver->depth());
  }
  ASSERT_GE(taken.size(), 12u);
  EXPECT_LE(taken.size(), 13u) << "the trial has no end";
  for (std::size_t k = 0; k < 12; ++k) EXPECT_EQ(taken[k], 1 << k % 3) << "the " << k << "th";
}

}  // namespace
}  // namespace isohalo
