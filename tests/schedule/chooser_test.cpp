/// The choice by timing: a slow way is never taken, whatever disturbs the clock, and all ranks take the same one.

#include "framework/schedule/chooser.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

using detail::fastest;
using detail::least_seconds;

std::vector<double> negated(std::vector<double> v) {
  for (double& x : v) x = -x;
  return v;
}

/// Ways of known lengths, measured by a clock that is late by up to half of the length every time, ten times as
/// late every fourth time, and on the first run thirty times; each rank is late on its own.
class DisturbedWays {
 public:
  DisturbedWays(std::vector<double> lengths, std::uint64_t seed)
      : runs(lengths.size()),
        lengths_(std::move(lengths)),
        random_(seed * 1000 + static_cast<std::uint64_t>(test::rank())) {}

  double operator()(std::size_t k) {
    double t = lengths_[k] * (1 + random_.real(0, 0.5));
    if (random_.in(0, 3) == 0) t *= 10;
    if (runs[k]++ == 0) t *= 30;
    total += t;
    return t;
  }
  std::vector<int> runs;
  double total = 0;

 private:
  std::vector<double> lengths_;
  test::Random random_;
};

TEST(Chooser, ASlowWayIsNeverTaken) {
  const Communicator comm = Communicator::of(MPI_COMM_WORLD);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<double> lengths{3e-5, 2e-5, 9e-5, 1e-5, 1.2e-5, 6e-5, 2e-4};
    test::Random shuffle(seed);
    for (std::size_t n = lengths.size(); n > 1; --n)
      std::swap(lengths[n - 1], lengths[static_cast<std::size_t>(shuffle.in(0, static_cast<int>(n) - 1))]);
    DisturbedWays ways(lengths, seed);
    const auto seconds = least_seconds(
        comm, lengths.size(), [&](std::size_t k) { return ways(k); }, 0.1);
    const std::size_t taken = fastest(seconds);
    EXPECT_LT(lengths[taken], 1.5e-5) << seed;
    const auto same = static_cast<std::int64_t>(taken);
    EXPECT_EQ(comm.min(same), comm.max(same));
    for (std::size_t k = 0; k < lengths.size(); ++k) EXPECT_GE(seconds[k], lengths[k]);
    EXPECT_LT(ways.runs[fastest(negated(lengths))], ways.runs[taken]);  // the slowest drops out first
  }
}

TEST(Chooser, LongRunsAreFewAndShortOnesManyButNotEndless) {
  const Communicator comm = Communicator::of(MPI_COMM_WORLD);
  std::vector<int> runs(7);
  const auto count = [&](double each) {
    std::fill(runs.begin(), runs.end(), 0);
    const auto way = [&](std::size_t k) { return ++runs[k], each * static_cast<double>(k + 1); };
    EXPECT_EQ(fastest(least_seconds(comm, runs.size(), way, 0.02)), 0u);
  };
  count(0.1);
  EXPECT_EQ(runs, (std::vector<int>{13, 13, 10, 10, 7, 7, 7}));
  count(1e-7);
  EXPECT_EQ(runs, (std::vector<int>{154, 154, 104, 104, 54, 54, 54}));
}

TEST(Chooser, OneWayOrTwoNeedNoRounds) {
  const Communicator comm = Communicator::of(MPI_COMM_WORLD);
  EXPECT_EQ(least_seconds(
                comm, 1, [](std::size_t) { return 2.0; }, 0.02),
            (std::vector<double>{2}));
  EXPECT_EQ(least_seconds(
                comm, 2, [](std::size_t k) { return 2.0 - static_cast<double>(k); }, 0.02),
            (std::vector<double>{2, 1}));
}

/// A mover that dawdles, beside one that does not, by the real clock.
TEST(Chooser, AWayThatDawdlesOnOneRankIsSlowOnAll) {
  const Communicator comm = Communicator::of(MPI_COMM_WORLD);
  const auto way = [&](std::size_t k) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const auto until = start + std::chrono::microseconds(k == 1 && test::rank() == test::ranks() - 1 ? 400 : 40);
    while (Clock::now() < until) {
    }
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  for (int repeat = 0; repeat < 10; ++repeat) EXPECT_NE(fastest(least_seconds(comm, 3, way, 0.02)), 1u);
}

}  // namespace
}  // namespace isohalo
