/// The exchange of Kokkos views: values by global index, a sentinel in every ghost, all layouts, staged and in
/// place.

#include "framework/halo/view_exchange.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <type_traits>

#include "tests/halo/halo_cases.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

constexpr bool kHostReachesViews =
    Kokkos::SpaceAccessibility<Kokkos::HostSpace, Kokkos::DefaultExecutionSpace::memory_space>::accessible;

template <class T, int D, class Layout>
struct ViewOf;
template <class T, class L>
struct ViewOf<T, 1, L> {
  using type = Kokkos::View<T*, L, Kokkos::DefaultExecutionSpace>;
};
template <class T, class L>
struct ViewOf<T, 2, L> {
  using type = Kokkos::View<T**, L, Kokkos::DefaultExecutionSpace>;
};
template <class T, class L>
struct ViewOf<T, 3, L> {
  using type = Kokkos::View<T***, L, Kokkos::DefaultExecutionSpace>;
};
template <class T, class L>
struct ViewOf<T, 4, L> {
  using type = Kokkos::View<T****, L, Kokkos::DefaultExecutionSpace>;
};

template <class View, int D>
View make_view(const Index<D>& n) {
  const auto e = [&](int j) { return static_cast<std::size_t>(n[static_cast<std::size_t>(j)]); };
  if constexpr (D == 1)
    return View("view", e(0));
  else if constexpr (D == 2)
    return View("view", e(0), e(1));
  else if constexpr (D == 3)
    return View("view", e(0), e(1), e(2));
  else
    return View("view", e(0), e(1), e(2), e(3));
}

/// A view and the memory that it lies in.
template <class View, class Whole>
struct Made {
  View view;
  Whole whole;
};

/// A view of its own; or, of layout stride, every second cell in the middle of a larger one.
template <class T, int D, class Layout>
auto made_view(const Index<D>& n) {
  using View = typename ViewOf<T, D, Layout>::type;
  using Whole = typename ViewOf<T, D, Kokkos::LayoutRight>::type;
  if constexpr (!std::is_same_v<Layout, Kokkos::LayoutStride>) {
    return Made<View, View>{make_view<View, D>(n), {}};
  } else {
    Index<D> larger = n;
    for (int j = 0; j < D; ++j) larger[j] = n[j] + 1;
    larger[D - 1] = 2 * n[D - 1] + 3;
    const Whole whole = make_view<Whole, D>(larger);
    Layout layout;
    for (int j = 0; j < D; ++j) {
      const auto k = static_cast<std::size_t>(j);
      layout.dimension[k] = static_cast<std::size_t>(n[k]);
      layout.stride[k] = static_cast<std::size_t>(j == D - 1 ? 2 : whole.stride(j));
    }
    return Made<View, Whole>{View(whole.data() + 3, layout), whole};
  }
}

/// The number of wrong cells of this rank after some exchanges by the same plan, each with new values; `delay`
/// comes in between.
template <class T, int D, class Layout>
std::int64_t wrong_cells(
    const CartesianDomain<D>& domain, const StencilShape<D>& shape, int depth,
    const ViewExchangeOptions<D>& options, int rounds = 2, const std::function<void()>& delay = [] {}) {
  using View = typename ViewOf<T, D, Layout>::type;
  const Surroundings<D> around{domain.global(), domain.periodic(), {}, {}};
  auto [low, high] = shape.ghost_widths(depth, around);
  high[0] += 2;  // wider than needed
  KokkosViewExchange<View> plan(domain, shape, depth, low, high, options);
  const Box<D> all = domain.owned().grown(low, high);
  Index<D> extents;
  for (int j = 0; j < D; ++j) extents[j] = all.extent(j);
  const auto made = made_view<T, D, Layout>(extents);
  const View view = made.view;
  const auto host = Kokkos::create_mirror_view(view);
  const auto needed = test::needed_by_definition(domain.owned(), shape.offsets(), depth, around);
  std::int64_t wrong = 0;
  for (int round = 1; round <= rounds; ++round) {
    const auto right = [&](Index<D> i) {
      for (int j = 0; j < D; ++j) {
        const std::int64_t n = domain.global().extent(j);
        i[j] = ((i[j] % n) + n) % n;
      }
      return static_cast<T>(linear_index(domain.global(), i) * 3 + round);
    };
    const auto cell = [&](const Index<D>& i) -> T& {
      std::int64_t k[D];
      for (int j = 0; j < D; ++j) k[j] = i[static_cast<std::size_t>(j)] - all.low[static_cast<std::size_t>(j)];
      return detail::view_element(host, k);
    };
    for_each_cell(all, [&](const Index<D>& i) { cell(i) = domain.owned().contains(i) ? right(i) : T(-7); });
    Kokkos::deep_copy(view, host);
    delay();
    plan.start(view);
    delay();
    plan.finish();
    Kokkos::deep_copy(host, view);
    for_each_cell(all, [&](const Index<D>& i) {
      wrong += cell(i) != (domain.owned().contains(i) || needed.contains(i) ? right(i) : T(-7));
    });
  }
  return wrong;
}

constexpr HaloPattern kPatterns[] = {HaloPattern::coalesced, HaloPattern::direct, HaloPattern::slabs};

/// All process grids, sides, shapes, depths, patterns; layouts in turn, the last of them among host memory only.
template <int D>
void check(const Index<D>& extents, int deepest) {
  int turn = 0;
  for (const auto& grid : all_process_grids<D>(extents, test::ranks()))
    for (int sides = 0; sides < (1 << D); ++sides) {
      DomainOptions<D> o;
      o.process_grid = grid;
      for (int j = 0; j < D; ++j) o.periodic[j] = sides >> j & 1;
      const CartesianDomain<D> domain(MPI_COMM_WORLD, extents, o);
      for (const auto& [name, shape] : test::few_shapes<D>())
        for (int depth = 0; depth <= deepest; ++depth)
          for (const auto pattern : kPatterns) {
            if (pattern == HaloPattern::slabs && !slabs_possible(shape)) continue;
            const ViewExchangeOptions<D> direct{pattern, false, {}}, staged{pattern, true, {}};
            std::int64_t wrong = 0;
            ++turn;
            switch ((turn + turn / 3) % 3) {  // another one for the same pattern each time
              case 0:
                wrong = wrong_cells<double, D, Kokkos::LayoutRight>(domain, shape, depth, direct);
                break;
              case 1:
                wrong = wrong_cells<float, D, Kokkos::LayoutLeft>(domain, shape, depth, staged);
                break;
              default:
                if constexpr (kHostReachesViews)
                  wrong = wrong_cells<double, D, Kokkos::LayoutStride>(domain, shape, depth, direct);
            }
            EXPECT_EQ(wrong, 0) << name << " depth " << depth << " sides " << sides << " pattern "
                                << static_cast<int>(pattern) << " turn " << turn;
          }
    }
}

TEST(ViewExchange, AllCasesIn1D) {
  check<1>({13}, 5);
}
TEST(ViewExchange, AllCasesIn2D) {
  check<2>({9, 14}, 5);
}
TEST(ViewExchange, AllCasesIn3D) {
  check<3>({7, 6, 5}, 2);
}
TEST(ViewExchange, AllCasesIn4D) {
  check<4>({6, 4, 3, 5}, 1);
}

using View2 = Kokkos::View<double**>;

/// 8 x 10 cells for each rank, both dimensions periodic; two process columns where ranks suffice.
CartesianDomain<2> torus() {
  DomainOptions<2> o;
  o.periodic = {true, true};
  const int p = test::ranks(), columns = p >= 4 && p % 2 == 0 ? 2 : 1;
  o.process_grid = {{p / columns, columns}};
  return {MPI_COMM_WORLD, {8 * p / columns, 10 * columns}, o};
}

TEST(ViewExchange, ManyRepetitionsWithRandomDelays) {
  test::Random random(static_cast<std::uint64_t>(test::rank()) + 1);
  const auto delay = [&] {
    if (random.in(0, 9) == 0) usleep(static_cast<useconds_t>(random.in(0, 300)));
  };
  for (const auto pattern : kPatterns)
    EXPECT_EQ(
        (wrong_cells<double, 2, Kokkos::LayoutRight>(torus(), StencilShape<2>::moore(1), 2,
                                                     {pattern, pattern == HaloPattern::direct, {}}, 300, delay)),
        0);
}

TEST(ViewExchange, ChoosesThePatternByTiming) {
  const auto domain = torus();
  KokkosViewExchange<View2> plan(domain, StencilShape<2>::star(1), 2, {2, 2}, {2, 2});
  EXPECT_FALSE(plan.pattern());
  const View2 view("view", 12, 14);
  Kokkos::deep_copy(view, 1.0);
  plan.exchange(view);
  ASSERT_EQ(plan.seconds().size(), 3u);
  ASSERT_TRUE(plan.pattern());
  for (const auto& [pattern, seconds] : plan.seconds()) {
    EXPECT_GT(seconds, 0);
    if (pattern != *plan.pattern()) continue;
    for (const auto& other : plan.seconds()) EXPECT_LE(seconds, other.second);
  }
  const auto used = static_cast<std::int64_t>(*plan.pattern());
  EXPECT_EQ(domain.comm().min(used), domain.comm().max(used));
  EXPECT_EQ((wrong_cells<double, 2, Kokkos::LayoutRight>(domain, StencilShape<2>::moore(1), 3, {})), 0);
  EXPECT_EQ((wrong_cells<double, 2, Kokkos::LayoutRight>(domain, test::few_shapes<2>().back().shape, 2, {})), 0);
}

/// Some ranks finish the one first, some the other; of several stages, all need the others meanwhile.
TEST(ViewExchange, MayBeFinishedInAnyOrder) {
  const auto domain = torus();
  const auto shape = StencilShape<2>::moore(1);
  for (const auto first : kPatterns)
    for (const auto second : kPatterns) {
      KokkosViewExchange<View2> a(domain, shape, 2, {2, 2}, {2, 2}, {first, false, {}}),
          b(domain, shape, 1, {1, 1}, {1, 1}, {second, false, {}});
      const View2 u("u", 12, 14), v("v", 10, 12);
      for (int round = 0; round < 20; ++round) {
        Kokkos::deep_copy(u, -1.0);
        Kokkos::deep_copy(v, -1.0);
        const double right = round;
        Kokkos::deep_copy(Kokkos::subview(u, std::pair(2, 10), std::pair(2, 12)), right);
        Kokkos::deep_copy(Kokkos::subview(v, std::pair(1, 9), std::pair(1, 11)), right);
        a.start(u);
        b.start(v);
        a.progress();
        if (test::rank() % 2) {
          a.finish();
          b.finish();
        } else {
          b.finish();
          a.finish();
        }
        double least = right, most = right;
        const auto see = [&](const View2& view) {
          const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
          for (std::size_t i = 0; i < host.extent(0); ++i)
            for (std::size_t j = 0; j < host.extent(1); ++j)
              least = std::min(least, host(i, j)), most = std::max(most, host(i, j));
        };
        see(u);
        see(v);
        ASSERT_EQ(least, right);
        ASSERT_EQ(most, right);
      }
    }
}

TEST(ViewExchange, BrokenPlansAreCaught) {
  const auto caught = [](HaloPattern pattern, const HaloMutation<2>& mutation) {
    return wrong_cells<double, 2, Kokkos::LayoutRight>(torus(), StencilShape<2>::moore(1), 2,
                                                       {pattern, false, mutation}) > 0;
  };
  for (const auto pattern : kPatterns) {
    EXPECT_FALSE(caught(pattern, {}));
    EXPECT_TRUE(caught(pattern, [](auto& pieces) { pieces.pop_back(); }));
    EXPECT_TRUE(caught(pattern, [](auto& pieces) {
      for (auto& p : pieces)
        if (p.region.box.extent(1) == 2) ++p.region.box.low[1];
    }));
  }
}

TEST(ViewExchange, RefusesViewsThatDoNotFit) {
  const auto domain = torus();
  const auto shape = StencilShape<2>::moore(1);
  EXPECT_THROW((KokkosViewExchange<View2>(domain, shape, 2, {2, 2}, {2, 1})), UsageError);
  EXPECT_THROW((KokkosViewExchange<View2>(domain, shape, -1, {2, 2}, {2, 2})), UsageError);
  const auto unnamed = StencilShape<2>::of({{0, 0}, {1, 0}});
  EXPECT_THROW((KokkosViewExchange<View2>(domain, unnamed, 1, {2, 2}, {2, 2}, {HaloPattern::slabs, false, {}})),
               UsageError);
  KokkosViewExchange<View2> plan(domain, shape, 2, {2, 2}, {2, 2});
  const View2 fits("fits", 12, 14), narrow("narrow", 12, 13);
  const bool last = test::rank() == test::ranks() - 1;
  EXPECT_THROW(plan.start(last ? narrow : fits), UsageError);  // the first start: one rank's error is everybody's
  EXPECT_THROW(plan.finish(), UsageError);
  EXPECT_THROW(plan.progress(), UsageError);
  plan.start(fits);
  EXPECT_THROW(plan.start(fits), UsageError);
  plan.finish();
  EXPECT_THROW(plan.start(narrow), UsageError);
}

TEST(ViewExchange, RanksMustAgree) {
  if (test::ranks() == 1) return;
  const auto domain = torus();
  const bool last = test::rank() == test::ranks() - 1;
  const View2 view("view", 12, 14);
  const auto start = [&](int depth, const StencilShape<2>& shape, std::optional<HaloPattern> pattern) {
    KokkosViewExchange<View2> plan(domain, shape, depth, {2, 2}, {2, 2}, {pattern, false, {}});
    plan.exchange(view);
  };
  const auto moore = StencilShape<2>::moore(1), star = StencilShape<2>::star(1);
  EXPECT_THROW(start(last ? 1 : 2, moore, {}), UsageError);
  EXPECT_THROW(start(2, last ? moore : star, {}), UsageError);
  EXPECT_THROW(start(2, moore, last ? HaloPattern::slabs : HaloPattern::direct), UsageError);
  start(2, moore, {});
}

/// An exchange that nobody finishes: MPI may still write, nothing may crash.
TEST(ViewExchange, MayBeLeftUnfinished) {
  const auto domain = torus();
  KokkosViewExchange<View2> plan(domain, StencilShape<2>::moore(1), 1, {1, 1}, {1, 1},
                                 {HaloPattern::coalesced, false, {}});
  const View2 view("view", 10, 12);
  plan.start(view);
}

}  // namespace
}  // namespace isohalo
