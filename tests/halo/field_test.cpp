/// Fields in memory of their own.

#include "framework/halo/field.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

TEST(Field, SharedMemoryIsZeroedAndMovesWithTheField) {
  const Box<2> box{{0, 0}, {5, 7}};
  Field<float, 2> a("a", box, {1, 1}, {1, 1}, FieldMemory::shared), b("b", box, {1, 1}, {1, 1});
  for_each_cell(a.ref().allocated(), [&](const Index<2>& i) { EXPECT_EQ(a.at(i), 0); });
  SharedAddress address;
  EXPECT_TRUE(SharedMemory::find(a.ref().data, address));
  EXPECT_FALSE(SharedMemory::find(b.ref().data, address));
  a.at({2, 3}) = 4;
  swap(a, b);
  EXPECT_EQ(b.at({2, 3}), 4);
  a = std::move(b);
  EXPECT_EQ(a.at({2, 3}), 4);
  EXPECT_TRUE(SharedMemory::find(a.ref().data, address));
}

TEST(Field, RowsAvoidMultiplesOfThePageSize) {
  const Field<double, 2> f("f", Box<2>{{0, 0}, {3, 510}}, {1, 1}, {1, 1});
  EXPECT_EQ(f.ref().stride[0], 528);
  const Field<double, 2> next_sets("g", Box<2>{{0, 0}, {3, 4096}}, {1, 1}, {1, 1});
  EXPECT_EQ(next_sets.ref().stride[0], 4112);  // not 4104, 64 bytes more than eight pages
  f.at({-1, -1}) = 1;
  f.at({3, 510}) = 2;
  EXPECT_EQ(f.at({0, 0}), 0);
}

/// Steps that go into the ghosts may write what else is in these lines.
template <class T>
void check_lines(const Index<3>& low, const Index<3>& high) {
  const Field<T, 3> f("f", Box<3>{{0, 0, 0}, {3, 4, 37}}, low, high);
  const auto line = [&](const Index<3>& i) { return reinterpret_cast<std::uintptr_t>(&f.at(i)) / 64; };
  std::set<std::uintptr_t> lines;
  Box<3> rows = f.ref().allocated();
  rows.high[2] = rows.low[2] + 1;
  for_each_cell(rows, [&](const Index<3>& i) {
    const Index<3> last{i[0], i[1], 36 + high[2]};
    for (std::uintptr_t k = line(i); k <= line(last); ++k)
      EXPECT_TRUE(lines.insert(k).second) << "a line of two rows";
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&f.at({i[0], i[1], 0})) % 64, 0u);
  });
}

TEST(Field, RowsWithSeveralGhostsHaveCacheLinesOfTheirOwn) {
  for (const std::int64_t k : {2, 3, 8, 9}) {
    check_lines<double>({k, k, k}, {k, k, k});
    check_lines<float>({1, 1, k}, {1, 1, 0});
    check_lines<std::uint8_t>({0, 0, 1}, {0, 0, k});
  }
}

TEST(Field, NeighborsBeginAtDifferentPlacesOfAPage) {
  const Box<2> box{{0, 0}, {200, 200}};
  const auto place = [](const Field<double, 2>& f) {
    return reinterpret_cast<std::uintptr_t>(&f.at({0, 0})) % 4096;
  };
  const Field<double, 2> a("a", box, {1, 1}, {1, 1}, FieldMemory::shared);
  const Field<double, 2> b("b", box, {1, 1}, {1, 1}, FieldMemory::shared);
  EXPECT_EQ((place(b) + 4096 - place(a)) % 4096, 640U);
  EXPECT_EQ(place(a) % 64, 0U);
}

}  // namespace
}  // namespace isohalo
