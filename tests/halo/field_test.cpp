/// Fields in memory of their own.

#include "framework/halo/field.hpp"

#include <gtest/gtest.h>

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
