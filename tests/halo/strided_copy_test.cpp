/// Copies of boxes against one cell after the other, and nothing else written.

#include "framework/halo/strided_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

/// A box within memory of its own: permuted, padded, some dimensions running backwards, at any address.
struct Side {
  Index<3> strides;
  std::int64_t origin = 0, bytes = 0;
};

Side random_side(const Index<3>& extents, std::int64_t cell, test::Random& random) {
  Side side;
  std::array<std::size_t, 3> order{0, 1, 2};
  for (std::size_t k = 2; k > 0; --k)
    std::swap(order[k], order[static_cast<std::size_t>(random.in(0, static_cast<std::int64_t>(k)))]);
  if (random.in(0, 2) > 0) order = {2, 1, 0};  // rows together, as they mostly are
  side.origin = random.in(0, 70);
  std::int64_t stride = cell;
  for (const std::size_t j : order) {
    const std::int64_t n = extents[static_cast<int>(j)];
    side.strides[static_cast<int>(j)] = stride;
    if (random.in(0, 3) == 0) {
      side.strides[static_cast<int>(j)] = -stride;
      side.origin += (n - 1) * stride;
    }
    stride = (n + (random.in(0, 1) ? 0 : random.in(0, 9))) * stride + (random.in(0, 2) ? 0 : random.in(0, 20));
  }
  side.bytes = stride + 140;
  return side;
}

/// One after the other, the last piece first.
void run_backwards(int n, void (*piece)(void*, int), void* context) {
  for (int k = n - 1; k >= 0; --k) piece(context, k);
}

TEST(StridedCopy, EveryCellAndNothingElse) {
  test::Random random(7);
  for (int trial = 0; trial < 3000; ++trial) {
    const std::int64_t cell =
        std::array<std::int64_t, 6>{1, 3, 4, 8, 16, 24}[static_cast<std::size_t>(random.in(0, 5))];
    const Index<3> extents{random.in(0, 5), random.in(1, 6), random.in(1, trial % 2 ? 12 : 700)};
    const Side from = random_side(extents, cell, random), to = random_side(extents, cell, random);
    std::vector<std::byte> source(static_cast<std::size_t>(from.bytes)), got(static_cast<std::size_t>(to.bytes));
    for (auto& b : source) b = static_cast<std::byte>(random.next());
    for (auto& b : got) b = static_cast<std::byte>(random.next());
    auto right = got;
    for_each_cell(Box<3>{{0, 0, 0}, extents}, [&](const Index<3>& i) {
      std::int64_t a = to.origin, b = from.origin;
      for (int j = 0; j < 3; ++j) a += i[j] * to.strides[j], b += i[j] * from.strides[j];
      std::memcpy(&right[static_cast<std::size_t>(a)], &source[static_cast<std::size_t>(b)],
                  static_cast<std::size_t>(cell));
    });
    const auto untouched = got;
    for (const Stores stores : {Stores::cached, Stores::streaming})
      for (const Workers& workers : {Workers{}, Workers{1 + trial % 7, run_backwards, 1 + trial % 100}}) {
        got = untouched;
        strided_copy<3>(got.data() + to.origin, to.strides, source.data() + from.origin, from.strides, extents,
                        cell, stores, workers);
        ASSERT_TRUE(got == right) << "trial " << trial << ", "
                                  << (stores == Stores::cached ? "cached" : "streaming") << ", " << workers.count
                                  << " workers";
      }
  }
}

/// Ghosts of periodic blocks, whose copies run side by side by some rows at a time: more than that, and not a
/// multiple.
template <int D>
void check_copier(const Index<D>& shape, std::int64_t width) {
  const Box<D> owned = box_of_shape<D>(shape);
  std::vector<double> values(static_cast<std::size_t>(adopted_size(owned, width)), -1);
  const ArrayRef<double, D> u = adopt(std::span(values), owned, width);
  for_each_cell(owned, [&](const Index<D>& i) { u.at(i) = static_cast<double>(linear_index(owned, i)); });
  std::vector<ShiftedBox<D>> copies;
  for_each_cell(box_of_shape<D>(index_of<D>(3)), [&](const Index<D>& side) {
    ShiftedBox<D> copy{owned, {}};
    for (int j = 0; j < D; ++j) {
      if (side[j] == 1) continue;
      copy.shift[j] = (side[j] - 1) * shape[j];
      (side[j] == 0 ? copy.box.high : copy.box.low)[j] = side[j] == 0 ? 0 : shape[j];
      (side[j] == 0 ? copy.box.low : copy.box.high)[j] += (side[j] - 1) * width;
    }
    if (side != index_of<D>(1)) copies.push_back(copy);
  });
  BoxCopier<D>(copies).run(erase(u));
  for_each_cell(u.allocated(), [&](const Index<D>& i) {
    Index<D> from = i;
    for (int j = 0; j < D; ++j) from[j] = (from[j] + shape[j]) % shape[j];
    ASSERT_EQ(u.at(i), static_cast<double>(linear_index(owned, from))) << shape_string<D>(i);
  });
}

TEST(BoxCopier, GhostsOfManyRows) {
  check_copier<2>({300, 5}, 2);
  check_copier<2>({128, 3}, 1);
  check_copier<3>({7, 30, 4}, 1);
  check_copier<3>({5, 200, 3}, 2);
}

TEST(Stores, LargeExchangesAreStreamed) {
  const Communicator comm = Communicator::of(MPI_COMM_WORLD);
  const auto is = [&](const ExchangeStores& stores, Stores packed, Stores in_place) {
    return stores.packed == packed && stores.in_place == in_place;
  };
  EXPECT_TRUE(is(detail::stores_for(0, 0, comm), Stores::cached, Stores::cached));
  if (!std::ifstream("/sys/devices/system/cpu/cpu0/cache/index0/size").good()) return;
  EXPECT_TRUE(is(detail::stores_for(std::int64_t{1} << 40, 0, comm), Stores::streaming, Stores::streaming));
  EXPECT_TRUE(is(detail::stores_for(0, std::int64_t{1} << 40, comm), Stores::streaming, Stores::streaming));
  std::int64_t bytes = 1;  // what is packed fills a cache twice as soon
  while (is(detail::stores_for(bytes, 0, comm), Stores::cached, Stores::cached)) bytes += 1 + bytes / 100;
  EXPECT_TRUE(is(detail::stores_for(bytes, 0, comm), Stores::streaming, Stores::cached));
  EXPECT_TRUE(is(detail::stores_for(bytes * 21 / 10, 0, comm), Stores::streaming, Stores::streaming));
}

TEST(Stores, ListsOfProcessors) {
  EXPECT_EQ(detail::processors_in("0"), 1);
  EXPECT_EQ(detail::processors_in("0-1"), 2);
  EXPECT_EQ(detail::processors_in("0-3,64-67"), 8);
  EXPECT_EQ(detail::processors_in("5,7,9-10"), 4);
  EXPECT_EQ(detail::processors_in(""), 1);
}

}  // namespace
}  // namespace isohalo
