/// Offset lists, and relative ranks against MPI's own Cartesian communicator.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>

#include "datatypes/error.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/neighborhood/iso_comm.hpp"
#include "framework/neighborhood/isomorphic.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

TEST(Offsets, CountsOfTheGenerators) {
  EXPECT_EQ((moore<3>(1, Self::leave_out).size()), 26u);
  EXPECT_EQ((moore<2>(3, Self::include).size()), 49u);
  EXPECT_EQ((von_neumann<2>(2, Self::leave_out).size()), 12u);
  EXPECT_EQ((von_neumann<3>(1, Self::include).size()), 7u);
  EXPECT_EQ((star<4>(2, Self::leave_out).size()), 16u);
  EXPECT_EQ((moore<2>(0, Self::leave_out).size()), 0u);
  EXPECT_THROW((moore<2>(-1, Self::include)), UsageError);
}

/// Every cell around is in the list exactly when the definition says so.
TEST(Offsets, AreThoseOfTheDefinitions) {
  for (int r = 0; r <= 3; ++r)
    for (const Self self : {Self::include, Self::leave_out}) {
      const auto wide = moore<3>(r, self), diamond = von_neumann<3>(r, self), arms = star<3>(r, self);
      const auto has = [](const Offsets<3>& list, const Index<3>& o) {
        return std::count(list.begin(), list.end(), o);
      };
      for_each_cell(Box<3>{{-4, -4, -4}, {5, 5, 5}}, [&](const Index<3>& o) {
        const std::int64_t a = std::abs(o[0]), b = std::abs(o[1]), c = std::abs(o[2]);
        const bool zero = a + b + c == 0, in = !zero || self == Self::include;
        const bool on_axis = (a > 0) + (b > 0) + (c > 0) <= 1;
        EXPECT_EQ(has(wide, o), in && std::max({a, b, c}) <= r);
        EXPECT_EQ(has(diamond, o), in && a + b + c <= r);
        EXPECT_EQ(has(arms, o), in && on_axis && a + b + c <= r);
      });
    }
}

TEST(Offsets, Orders) {
  EXPECT_EQ((von_neumann<2>(1, Self::include)), (Offsets<2>{{-1, 0}, {0, -1}, {0, 0}, {0, 1}, {1, 0}}));
  const auto list = moore<2>(2, Self::include);
  EXPECT_TRUE(std::is_sorted(list.begin(), list.end()));
}

TEST(IsomorphicNeighborhood, AgreesWithMpiCart) {
  for (int p0 = 1; p0 <= test::ranks(); ++p0) {
    if (test::ranks() % p0) continue;
    for (int periodic = 0; periodic < 4; ++periodic) {
      const int dims[2] = {p0, test::ranks() / p0}, wrap[2] = {periodic & 1, periodic >> 1};
      MPI_Comm cart = MPI_COMM_NULL;
      MPI_Cart_create(MPI_COMM_WORLD, 2, dims, wrap, 0, &cart);
      const Mesh mesh({dims[0], dims[1]}, {wrap[0] != 0, wrap[1] != 0});
      int coords[2], out = 0, in = 0;
      MPI_Cart_coords(cart, test::rank(), 2, coords);
      const std::vector<int> list = flat<2>(moore<2>(2, Self::include));
      const IsomorphicNeighborhood n(mesh, test::rank(), list);
      for (int i = 0; i < n.count(); ++i) {
        for (int sign : {1, -1}) {
          int at[2], expected = Mesh::no_rank;
          bool inside = true;
          for (std::size_t j = 0; j < 2; ++j) {
            at[j] = coords[j] + sign * list[static_cast<std::size_t>(i) * 2 + j];
            inside = inside && (wrap[j] || (at[j] >= 0 && at[j] < dims[j]));
          }
          if (inside) MPI_Cart_rank(cart, at, &expected);
          EXPECT_EQ((sign > 0 ? n.targets() : n.sources())[static_cast<std::size_t>(i)], expected);
        }
        out += n.targets()[static_cast<std::size_t>(i)] != Mesh::no_rank;
        in += n.sources()[static_cast<std::size_t>(i)] != Mesh::no_rank;
      }
      EXPECT_EQ(n.outdegree(), out);
      EXPECT_EQ(n.indegree(), in);
      EXPECT_EQ(static_cast<int>(n.present_targets().size()), out);
      MPI_Comm_free(&cart);
    }
  }
}

/// The rank `sign` times the offset away, straight from the definition.
int rank_by_definition(const Mesh& mesh, int rank, std::span<const int> offset, int sign) {
  std::vector<int> coords(offset.size());
  mesh.coordinates(rank, coords);
  std::int64_t at = 0;
  for (std::size_t k = 0; k < offset.size(); ++k) {
    const int j = static_cast<int>(k);
    const std::int64_t n = mesh.extent(j), x = coords[k] + std::int64_t{sign} * offset[k];
    if (!mesh.periodic(j) && (x < 0 || x >= n)) return Mesh::no_rank;
    at = at * n + ((x % n) + n) % n;
  }
  return static_cast<int>(at);
}

/// Short lists and long ones, of offsets near and as far as they can be.
TEST(IsomorphicNeighborhood, ListsOfEveryKind) {
  test::Random random(11);
  for (int trial = 0; trial < 1500; ++trial) {
    const auto d = static_cast<std::size_t>(random.in(1, 4));
    std::vector<int> extents(d);
    std::vector<bool> periodic(d);
    for (std::size_t j = 0; j < d; ++j) {
      extents[j] = static_cast<int>(random.in(1, trial % 7 ? 5 : 90));
      periodic[j] = random.in(0, 1) == 1;
    }
    const Mesh mesh(extents, periodic);
    const int rank = static_cast<int>(random.in(0, mesh.size() - 1));
    const std::int64_t low =
        std::array<std::int64_t, 5>{-1, 0, -40, -100, -2147483647}[static_cast<std::size_t>(trial % 5)];
    const std::int64_t high =
        std::array<std::int64_t, 4>{1, 23, 24, 2147483647}[static_cast<std::size_t>(trial % 4)];
    std::vector<int> list(d * static_cast<std::size_t>(random.in(0, 200)));
    for (int& c : list) c = static_cast<int>(random.in(low, high));
    const IsomorphicNeighborhood n(mesh, rank, list);
    int out = 0, in = 0;
    for (std::size_t i = 0; i < list.size() / d; ++i) {
      const auto offset = std::span(list).subspan(i * d, d);
      const int target = rank_by_definition(mesh, rank, offset, 1),
                source = rank_by_definition(mesh, rank, offset, -1);
      ASSERT_EQ(n.targets()[i], target) << "trial " << trial;
      ASSERT_EQ(n.sources()[i], source) << "trial " << trial;
      out += target != Mesh::no_rank, in += source != Mesh::no_rank;
    }
    ASSERT_EQ(n.outdegree(), out);
    ASSERT_EQ(n.indegree(), in);
  }
  EXPECT_THROW(IsomorphicNeighborhood(Mesh({2}, {true}), 0, std::vector<int>{1, std::numeric_limits<int>::min()}),
               UsageError);
}

TEST(IsomorphicNeighborhood, NamesListsThatDifferBetweenRanks) {
  const Communicator comm = Communicator::of(MPI_COMM_WORLD);
  const Mesh mesh({test::ranks()}, {true});
  const std::vector<int> mine{1, test::rank() == 0 ? 2 : 3};
  IsoComm n(comm, IsomorphicNeighborhood(mesh, test::rank(), mine)),
      same(comm, IsomorphicNeighborhood(mesh, test::rank(), std::vector<int>{1, -1})),
      longer(comm, IsomorphicNeighborhood(mesh, test::rank(),
                                          std::vector<int>(test::rank() + 1 == test::ranks() ? 3 : 2)));
  EXPECT_NO_THROW(same.check());
  if (test::ranks() > 1) {
    const std::string last = std::to_string(test::ranks() - 1);
    test::expect_refusal("\"offsets\" differs between ranks: rank 0 has \"1 2\", rank 1 has \"1 3\"",
                         [&] { n.check(); });
    test::expect_refusal("rank 0 has \"0 0\", rank " + last + " has \"0 0 0\"", [&] { longer.check(); });
    same.set_algorithm(test::rank() == 0 ? Algorithm::direct : Algorithm::combining);
    test::expect_refusal("\"algorithm\" differs between ranks: rank 0 has \"direct\", rank 1 has \"combining\"",
                         [&] { same.check(); });
  }
  EXPECT_THROW(IsomorphicNeighborhood(Mesh({1, 1}, {true, true}), 0, std::vector<int>{1, 2, 3}), UsageError);
}

TEST(Agreement, TheLowestFailingRankSpeaksForAll) {
  const Communicator comm = Communicator::of(MPI_COMM_WORLD);
  for (int culprit = 0; culprit < test::ranks(); ++culprit) {
    try {
      agreed(comm, [&] {
        if (test::rank() >= culprit) throw RunError("trouble on " + std::to_string(test::rank()));
      });
      ADD_FAILURE() << "nobody threw";
    } catch (const Error& e) {
      const std::string prefix = culprit ? "rank " + std::to_string(culprit) + ": " : "";
      EXPECT_EQ(std::string(e.what()), prefix + "trouble on " + std::to_string(culprit));
      EXPECT_EQ(e.code(), ExitCode::failure);
    }
  }
  EXPECT_NO_THROW(agreed(comm, [] {}));
}

}  // namespace
}  // namespace isohalo
