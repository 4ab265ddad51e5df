/// The exchange over MPI: a unique value per field and global cell, a signalling sentinel in every ghost. After the
/// exchange every needed ghost is right, every other ghost keeps the sentinel, every owned cell is untouched.

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <limits>

#include "datatypes/error.hpp"
#include "framework/halo/field.hpp"
#include "framework/halo/halo_plan.hpp"
#include "tests/halo/halo_cases.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

/// A user's struct, to exchange something that is no number.
struct Pair {
  std::int64_t a;
  double b;
  std::uint8_t c;
};

template <class T>
T value_of(int field, std::int64_t l) {
  if constexpr (std::is_same_v<T, Pair>)
    return Pair{l * 7 + field, static_cast<double>(l), static_cast<std::uint8_t>(l)};
  else
    return static_cast<T>(l * 7 + field + 1);
}

template <class T>
T sentinel() {
  T v;
  std::memset(static_cast<void*>(&v), 0, sizeof v);
  if constexpr (std::is_same_v<T, double>)
    v = std::bit_cast<double>(std::uint64_t{0x7ff4000000000123u});  // signalling
  if constexpr (std::is_same_v<T, float>) v = std::bit_cast<float>(std::uint32_t{0x7fa00123u});
  if constexpr (std::is_same_v<T, Pair>) v.a = -99;
  if constexpr (std::is_same_v<T, std::uint8_t>) v = 255;
  return v;
}

template <class T>
bool same(const T& x, const T& y) {
  if constexpr (std::is_same_v<T, Pair>)
    return x.a == y.a && x.b == y.b && x.c == y.c;
  else
    return std::memcmp(&x, &y, sizeof x) == 0;
}

enum class Memory { plain, padded, permuted };

/// A field in memory of its own, in one of several layouts.
template <class T, int D>
class TestField {
 public:
  TestField(const CartesianDomain<D>& domain, const HaloPlan<D>& plan, int number, Memory memory)
      : number_(number), global_(domain.global()) {
    ref_.owned = domain.owned();
    for (int j = 0; j < D; ++j) {
      ref_.ghost_low[j] = plan.ghost_low()[j] + (memory == Memory::padded ? 1 : 0);  // wider than the plan needs
      ref_.ghost_high[j] = plan.ghost_high()[j] + (memory == Memory::padded ? 2 : 0);
    }
    const Box<D> all = ref_.allocated();
    std::int64_t stride = 1, origin = 0;
    for (int k = D - 1; k >= 0; --k) {
      const int j = memory == Memory::permuted ? D - 1 - k : k;
      ref_.stride[j] = stride;
      origin += ref_.ghost_low[j] * stride;
      stride *= all.extent(j) + (memory == Memory::padded ? 3 : 0);
    }
    memory_.assign(static_cast<std::size_t>(stride), sentinel<T>());
    ref_.data = memory_.data() + origin;
    for_each_cell(ref_.owned, [&](const Index<D>& i) { ref_.at(i) = right(i); });
  }

  T right(Index<D> i) const {
    for (int j = 0; j < D; ++j) {
      const std::int64_t n = global_.extent(j);
      i[j] = ((i[j] % n) + n) % n;
    }
    return value_of<T>(number_, linear_index(global_, i));
  }
  const ArrayRef<T, D>& ref() const { return ref_; }

  /// Number of cells that are wrong.
  std::int64_t wrong(const std::set<Index<D>>& needed) const {
    std::int64_t n = 0;
    for_each_cell(ref_.allocated(), [&](const Index<D>& i) {
      const bool known = ref_.owned.contains(i) || needed.contains(i);
      n += !same(ref_.at(i), known ? right(i) : sentinel<T>());
    });
    return n;
  }

 private:
  int number_;
  Box<D> global_;
  std::vector<T> memory_;
  ArrayRef<T, D> ref_;
};

template <int D>
std::vector<PerDim<bool, D>> periodicities() {
  std::vector<PerDim<bool, D>> all;
  for (int m = 0; m < (1 << D); ++m) {
    PerDim<bool, D> p{};
    for (int j = 0; j < D; ++j) p[j] = m >> j & 1;
    all.push_back(p);
  }
  return all;
}

template <class T, int D>
std::int64_t exchange_once(const CartesianDomain<D>& domain, const StencilShape<D>& shape, int depth, Memory memory,
                           std::function<void(std::vector<HaloPiece<D>>&)> mutation = {}) {
  HaloOptions<D> options;
  options.beyond_neighbors = true;
  options.mutation = std::move(mutation);
  HaloPlan<D> plan(domain, shape, depth, options);
  const TestField<T, D> field(domain, plan, 0, memory);
  plan.exchange(field.ref());
  return field.wrong(test::needed_by_definition(domain.owned(), shape.offsets(), depth,
                                                Surroundings<D>{domain.global(), domain.periodic(), {}, {}}));
}

/// All periodicities x shapes x depths on one grid; the layout goes round.
template <int D>
void check_grid(const Index<D>& extents, const PerDim<int, D>& grid, int deepest,
                const std::vector<test::NamedShape<D>>& shapes) {
  int turn = 0;
  for (const auto& periodic : periodicities<D>()) {
    DomainOptions<D> o;
    o.periodic = periodic;
    o.process_grid = grid;
    o.alignment_tolerance = turn % 2 ? 0.3 : 0.0;
    const CartesianDomain<D> domain(MPI_COMM_WORLD, extents, o);
    for (const auto& [name, shape] : shapes)
      for (int depth = 0; depth <= deepest; ++depth) {
        const auto memory = static_cast<Memory>(turn++ % 3);
        const auto wrong = turn % 2 ? exchange_once<double, D>(domain, shape, depth, memory)
                                    : exchange_once<float, D>(domain, shape, depth, memory);
        EXPECT_EQ(wrong, 0) << name << " depth " << depth << " on " << shape_string<D>(extents) << ", layout "
                            << static_cast<int>(memory);
      }
  }
}

template <int D>
void check_all_grids(const Index<D>& extents, int deepest, const std::vector<test::NamedShape<D>>& shapes) {
  for (const auto& grid : all_process_grids<D>(extents, test::ranks()))
    check_grid<D>(extents, grid, deepest, shapes);
}

TEST(HaloExchange, AllCasesIn1D) {
  check_all_grids<1>({17}, 5, test::shapes<1>());
  if (test::ranks() <= 6) check_all_grids<1>({6}, 12, test::shapes<1>());  // one cell a block; depth 2 x extent
}
TEST(HaloExchange, AllCasesIn2D) {
  check_all_grids<2>({17, 20}, 5, test::shapes<2>());
  check_all_grids<2>({6, 6}, 3, test::shapes<2>());
}
TEST(HaloExchange, AllCasesIn3D) {
  check_all_grids<3>({7, 5, 11}, 2, test::few_shapes<3>());
  check_grid<3>({17, 20, 21}, choose_process_grid<3>({17, 20, 21}, test::ranks()), 3, test::few_shapes<3>());
}
TEST(HaloExchange, AllCasesIn4D) {
  check_grid<4>({5, 6, 4, 7}, choose_process_grid<4>({5, 6, 4, 7}, test::ranks()), 2, test::few_shapes<4>());
  check_grid<4>({6, 6, 6, 6}, all_process_grids<4>({6, 6, 6, 6}, test::ranks()).front(), 1, test::few_shapes<4>());
}

TEST(HaloExchange, UserCutsWithOneCellBlocks) {
  DomainOptions<2> o;
  o.periodic = {true, false};
  PerDim<std::vector<std::int64_t>, 2> cuts;
  for (int c = 0; c < test::ranks(); ++c) cuts[0].push_back(c);
  cuts[0].push_back(test::ranks() + 9);
  cuts[1] = {0, 5};
  o.cuts = cuts;
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {test::ranks() + 9, 5}, o);
  for (int depth = 0; depth <= 3; ++depth)
    EXPECT_EQ((exchange_once<double, 2>(domain, StencilShape<2>::moore(1), depth, Memory::plain)), 0);
}

TEST(HaloExchange, SeveralFieldsOfDifferentTypesAndTwoPlansInFlight) {
  DomainOptions<2> o;
  o.periodic = {true, true};
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {19, 23}, o);
  HaloOptions<2> far;
  far.beyond_neighbors = true;
  HaloPlan<2> one(domain, StencilShape<2>::moore(1), 1, far), two(domain, StencilShape<2>::star(2), 2, far);
  const TestField<double, 2> a(domain, one, 1, Memory::plain);
  const TestField<float, 2> b(domain, one, 2, Memory::permuted);
  const TestField<Pair, 2> c(domain, one, 3, Memory::padded);
  const TestField<double, 2> d(domain, two, 4, Memory::padded);
  one.start(a.ref(), b.ref(), c.ref());
  two.start(d.ref());
  EXPECT_THROW(one.start(a.ref()), UsageError);  // still in flight
  two.finish();
  one.finish();
  EXPECT_THROW(one.finish(), UsageError);
  const Surroundings<2> around{domain.global(), domain.periodic(), {}, {}};
  const auto needed = test::needed_by_definition(domain.owned(), StencilShape<2>::moore(1).offsets(), 1, around);
  EXPECT_EQ(a.wrong(needed), 0);
  EXPECT_EQ(b.wrong(needed), 0);
  EXPECT_EQ(c.wrong(needed), 0);
  EXPECT_EQ(d.wrong(test::needed_by_definition(domain.owned(), StencilShape<2>::star(2).offsets(), 2, around)), 0);
}

TEST(HaloExchange, SubCommunicatorAndReorderedCommunicator) {
  MPI_Comm reversed = MPI_COMM_NULL, odd = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -test::rank(), &reversed);
  MPI_Comm_split(MPI_COMM_WORLD, test::rank() % 2, test::rank(), &odd);
  for (MPI_Comm comm : {reversed, odd}) {
    DomainOptions<2> o;
    o.periodic = {true, false};
    const CartesianDomain<2> domain(comm, {14, 9}, o);
    EXPECT_EQ((exchange_once<double, 2>(domain, StencilShape<2>::moore(1), 1, Memory::plain)), 0);
  }
  MPI_Comm_free(&reversed);
  MPI_Comm_free(&odd);
}

TEST(HaloExchange, ManyRepetitionsWithRandomDelays) {
  DomainOptions<2> o;
  o.periodic = {true, true};
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {24, 18}, o);
  HaloPlan<2> plan(domain, StencilShape<2>::moore(1), 1);
  TestField<double, 2> field(domain, plan, 0, Memory::plain);
  const auto needed = test::needed_by_definition(domain.owned(), StencilShape<2>::moore(1).offsets(), 1,
                                                 Surroundings<2>{domain.global(), domain.periodic(), {}, {}});
  test::Random random(static_cast<std::uint64_t>(test::rank()) + 1);
  std::int64_t wrong = 0;
  for (int round = 0; round < 1000; ++round) {
    for (const auto& i : needed) field.ref().at(i) = -round;
    if (random.in(0, 9) == 0) usleep(static_cast<useconds_t>(random.in(0, 300)));
    plan.exchange(field.ref());
    for (const auto& i : needed) wrong += !same(field.ref().at(i), field.right(i));
  }
  EXPECT_EQ(wrong, 0);
}

/// A suite that could not fail would prove nothing: three broken plans must be caught.
TEST(HaloExchange, MutationsAreCaught) {
  DomainOptions<2> o;
  o.periodic = {true, true};
  o.process_grid = {{test::ranks(), 1}};
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {12 * test::ranks(), 16}, o);
  const auto broken = [&](std::function<void(std::vector<HaloPiece<2>>&)> mutation) {
    const auto wrong =
        exchange_once<double, 2>(domain, StencilShape<2>::moore(1), 2, Memory::plain, std::move(mutation));
    return test::all_ranks_ok(wrong > 0);
  };
  EXPECT_TRUE(broken([](auto& pieces) {  // swapped direction: each piece takes what the opposite one should get
    Box<2> all = pieces.front().region.box;
    for (const auto& p : pieces)
      for (int j = 0; j < 2; ++j) {
        all.low[j] = std::min(all.low[j], p.region.box.low[j]);
        all.high[j] = std::max(all.high[j], p.region.box.high[j]);
      }
    const auto right = pieces;
    for (auto& p : pieces)
      for (const auto& from : right) {
        Box<2> mirrored;
        for (int j = 0; j < 2; ++j) {
          mirrored.low[j] = all.low[j] + all.high[j] - from.region.box.high[j];
          mirrored.high[j] = all.low[j] + all.high[j] - from.region.box.low[j];
        }
        if (mirrored != p.region.box) continue;
        p.owner = from.owner;
        for (int j = 0; j < 2; ++j) p.shift[j] = p.region.box.low[j] - (from.region.box.low[j] - from.shift[j]);
      }
  }));
  EXPECT_TRUE(broken([](auto& pieces) {  // depth off by one
    for (auto& p : pieces)
      if (p.region.box.extent(1) == 2) ++p.region.box.low[1];
  }));
  EXPECT_TRUE(broken([](auto& pieces) { pieces.pop_back(); }));  // a corner left out
}

TEST(HaloPlan, RefusesWhatAdjacentRanksDoNotOwn) {
  DomainOptions<1> o;
  o.periodic = {true};
  const CartesianDomain<1> domain(MPI_COMM_WORLD, {4 * test::ranks()}, o);
  if (test::ranks() == 1) {
    EXPECT_NO_THROW((HaloPlan<1>(domain, StencilShape<1>::star(1), 11)));  // wraps onto itself
    return;
  }
  EXPECT_NO_THROW((HaloPlan<1>(domain, StencilShape<1>::star(1), 4)));
  try {
    HaloPlan<1>(domain, StencilShape<1>::star(1), 5);
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_NE(std::string(e.what()).find("use depth 4"), std::string::npos) << e.what();
  }
  EXPECT_THROW((HaloPlan<1>(domain, StencilShape<1>::star(1), -1)), UsageError);
}

TEST(HaloPlan, RefusesArraysThatDoNotFit) {
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {8 * test::ranks(), 8});
  HaloPlan<2> plan(domain, StencilShape<2>::moore(1), 2);
  std::vector<double> memory(static_cast<std::size_t>(adopted_size(domain.owned(), 1)));
  EXPECT_THROW(plan.start(adopt(memory.data(), domain.owned(), 1)), UsageError);
  auto shifted = adopt(memory.data(), domain.owned().shifted({0, 1}), 2);
  EXPECT_THROW(plan.start(shifted), UsageError);
  std::vector<double> wide(static_cast<std::size_t>(adopted_size(domain.owned(), 2)));
  EXPECT_NO_THROW(plan.exchange(adopt(wide.data(), domain.owned(), 2)));  // usable after refusals
}

TEST(Field, RowsAvoidMultiplesOfThePageSize) {
  const Field<double, 2> f("f", Box<2>{{0, 0}, {3, 510}}, {1, 1}, {1, 1});
  EXPECT_EQ(f.ref().stride[0], 520);
  f.at({-1, -1}) = 1;
  f.at({3, 510}) = 2;
  EXPECT_EQ(f.at({0, 0}), 0);
}

}  // namespace
}  // namespace isohalo
