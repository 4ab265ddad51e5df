/// What a program that embeds the library may get wrong: arrays whose cells overlap, memory that is too small,
/// plans that differ between ranks.

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "framework/halo/halo_plan.hpp"
#include "framework/reduce/allreduce.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

TEST(Strides, ThatOverlapAreRefused) {
  const CartesianDomain<2> domain(MPI_COMM_SELF, {6, 7});
  HaloPlan<2> plan(domain, StencilShape<2>::moore(1), 1);
  std::vector<double> memory(4000);
  const auto with = [&](Index<2> stride) {
    ArrayRef<double, 2> a = adopt(memory.data(), domain.owned(), 1);
    a.data = memory.data() + 2000;
    a.stride = stride;
    return a;
  };
  for (const Index<2> stride : {Index<2>{0, 1}, {9, 0}, {1, 1}, {8, 1}, {1, 7}, {-8, 1}, {8, -1}, {0, 0}})
    test::expect_refusal("the strides " + to_string<2>(stride) + " of array 0 let cells overlap",
                         [&] { plan.exchange(with(stride)); });
  constexpr std::int64_t whole = std::int64_t{1} << 61;  // 2^64 bytes
  for (const Index<2> stride : {Index<2>{whole, 1}, {1, whole}, {-whole, 1}, {whole + 9, 1}, {whole / 4, 1}})
    test::expect_refusal("go beyond all addresses in dimension " + std::to_string(stride[0] == 1),
                         [&] { plan.exchange(with(stride)); });
  ArrayRef<double, 2> deep = with({9, 1});
  deep.ghost_low[0] = std::numeric_limits<std::int64_t>::max() - 2;
  test::expect_refusal("go beyond all addresses in dimension 0", [&] { plan.exchange(deep); });
  for (const Index<2> stride : {Index<2>{9, 1}, {1, 8}, {-9, 1}, {9, -1}, {100, 3}, {3, 24}})
    EXPECT_NO_THROW(plan.exchange(with(stride))) << to_string<2>(stride);
  // Refused also when lists of such sizes are known, and of elements that are larger than what strides count in.
  test::expect_refusal("overlap", [&] { plan.exchange(with({0, 1})); });
  ErasedArray<2> narrow = erase(with({9, 1}));
  narrow.pitch = 4;
  test::expect_refusal("are 4 bytes apart, the cells have 8",
                       [&] { plan.exchange(std::span<const ErasedArray<2>>(&narrow, 1)); });
  const CartesianDomain<2> thin(MPI_COMM_SELF, {1, 7});  // a stride that is never taken may be anything
  HaloPlan<2> along(thin, StencilShape<2>::of({{0, 1}}), 1);
  ArrayRef<double, 2> row{memory.data() + 10, thin.owned(), {0, 1}, {0, 1}, {0, 1}};
  EXPECT_NO_THROW(along.exchange(row));
}

TEST(Adopt, SpansAreChecked) {
  const Box<2> owned{{0, 0}, {4, 5}};
  std::vector<float> memory(static_cast<std::size_t>(adopted_size(owned, 2)));
  const auto a = adopt(std::span(memory), owned, 2);
  EXPECT_EQ(a.data, adopt(memory.data(), owned, 2).data);
  test::expect_refusal(
      "the memory has 71 elements, a block of 4 x 5 cells with 2 ghost layers on every side needs 72",
      [&] { adopt(std::span(memory).first(71), owned, 2); });
  test::expect_refusal("needs 93", [&] { adopt(std::span(memory), owned, 2, 3); });  // nothing after the last row
  for (const std::int64_t huge : {std::int64_t{1} << 61, std::int64_t{1} << 62, (std::int64_t{1} << 32) - 6}) {
    test::expect_refusal("needs", [&] { adopt(std::span(memory), owned, huge); });
    test::expect_refusal("needs", [&] { adopt(std::span(memory), owned, 1, huge); });
  }
  test::expect_refusal("row padding -1 is negative", [&] { adopt(std::span(memory), owned, 2, -1); });
  test::expect_refusal("row padding -1 is negative", [&] { adopt(memory.data(), owned, 2, -1); });
  test::expect_refusal("ghost width -1 is negative", [&] { adopt(std::span(memory), owned, -1); });
}

/// One rank's mistake, whatever its array was described by.
TEST(Adopt, NullIsRefused) {
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {24, 30});
  const Box<2>& owned = domain.owned();
  std::vector<double> memory(static_cast<std::size_t>(adopted_size(owned, 2)));
  double* const first = test::rank() == test::ranks() - 1 ? nullptr : memory.data();
  HaloPlan<2> halo(domain, StencilShape<2>::star(1), 2);
  test::expect_refusal("halo exchange: array 0 is NULL", [&] { halo.exchange(adopt(first, owned, 2)); });
  EXPECT_NO_THROW(halo.exchange(adopt(memory.data(), owned, 2)));
}

/// Afterwards all ranks are in step.
TEST(HaloPlan, WhereARankMakesSomethingElse) {
  if (test::ranks() == 1) return;
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {24, 30});
  const auto star = StencilShape<2>::star(1);
  for (const int other : {0, test::ranks() - 1})
    test::expect_refusal("ranks make different things: rank 0 ", [&] {
      if (test::rank() == other)
        ScheduledAllreduce(MPI_COMM_WORLD, 1, MPI_DOUBLE, MPI_SUM);
      else
        HaloPlan<2>(domain, star, 1);
    });
  std::vector<double> values(static_cast<std::size_t>(adopted_size(domain.owned(), 1)), 0.0);
  const auto u = adopt(std::span(values), domain.owned(), 1);
  HaloPlan<2> plan(domain, star, 1);
  for (int k = 0; k < 3; ++k) plan.exchange(u);
  ScheduledAllreduce sum(MPI_COMM_WORLD, 1, MPI_INT, MPI_SUM);
  int one = 1;
  sum.reduce(&one);
  EXPECT_EQ(one, test::ranks());
}

TEST(HaloPlan, ArgumentsThatDifferBetweenRanksAreNamedOnAllOfThem) {
  if (test::ranks() == 1) return;
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {16, 24});
  const auto star = StencilShape<2>::star(1), moore = StencilShape<2>::moore(1);
  for (const int who : {0, test::ranks() - 1}) {
    const bool odd = test::rank() == who;
    const auto refused = [&](const std::string& what, const std::vector<HaloNeed<2>>& needs,
                             HaloOptions<2> options) {
      test::expect_refusal("HaloPlan: argument \"" + what, [&] { HaloPlan<2>(domain, needs, options); });
      EXPECT_EQ(domain.comm().sum(1), static_cast<std::uint64_t>(test::ranks()));  // still usable
    };
    refused("depth\" differs between ranks", {{star, odd ? 2 : 3}}, {});
    refused("shape\" differs between ranks: rank 0 has \"" + std::string(who == 0 ? "moore" : "star") +
                " of radius 1\"",
            {{odd ? moore : star, 1}}, {});
    refused("shape of array 1\" differs", {{star, 1}, {odd ? StencilShape<2>::of({{0, 2}}) : star, 1}}, {});
    refused("number of needs\" differs", std::vector<HaloNeed<2>>(odd ? 2 : 1, {star, 1}), {});
    HaloOptions<2> options;
    options.mirror_high[1] = odd;
    refused("mirror_high\" differs", {{star, 1}}, options);
    options = {};
    options.exchange = odd ? Exchange::slabs : Exchange::direct;
    refused("exchange\" differs", {{star, 1}}, options);
    const CartesianDomain<2> one_of_two(MPI_COMM_WORLD, {16, 24}), other(MPI_COMM_WORLD, {16, 25});
    test::expect_refusal("HaloPlan: argument \"domain\" differs",
                         [&] { HaloPlan<2>(odd ? other : one_of_two, star, 1); });
    const auto list =
        StencilShape<2>::of(odd ? Offsets<2>{{0, 2}, {1, 0}} : Offsets<2>{{1, 0}, {0, 0}, {0, 2}, {1, 0}});
    EXPECT_NO_THROW(HaloPlan<2>(domain, list, 1));  // other lists that read the same cells
    test::expect_refusal("halo depth -1 is negative", [&] { HaloPlan<2>(domain, star, odd ? -1 : 1); });
    std::vector<double> values(static_cast<std::size_t>(adopted_size(domain.owned(), 1)));
    EXPECT_NO_THROW(HaloPlan<2>(domain, star, 1).exchange(adopt(std::span(values), domain.owned(), 1)));
  }
}

}  // namespace
}  // namespace isohalo
