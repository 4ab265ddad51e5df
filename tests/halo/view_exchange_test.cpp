/// The exchange of Kokkos views: values by global index, a sentinel in every ghost, both layouts, staged and in
/// place.

#include "framework/halo/view_exchange.hpp"

#include <gtest/gtest.h>

#include "tests/halo/halo_cases.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

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

/// The number of wrong cells of this rank after two exchanges by the same plan.
template <class T, int D, class Layout>
std::int64_t wrong_cells(const CartesianDomain<D>& domain, const StencilShape<D>& shape, int depth, bool staged,
                         HaloPattern pattern) {
  using View = typename ViewOf<T, D, Layout>::type;
  const Surroundings<D> around{domain.global(), domain.periodic(), {}, {}};
  auto [low, high] = shape.ghost_widths(depth, around);
  high[0] += 2;  // wider than needed
  KokkosViewExchange<View> plan(domain, shape, depth, low, high, staged, pattern);
  const Box<D> all = domain.owned().grown(low, high);
  Index<D> extents;
  for (int j = 0; j < D; ++j) extents[j] = all.extent(j);
  const View view = make_view<View, D>(extents);
  const auto host = Kokkos::create_mirror_view(view);
  const auto needed = test::needed_by_definition(domain.owned(), shape.offsets(), depth, around);
  std::int64_t wrong = 0;
  for (int round = 1; round <= 2; ++round) {
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
    plan.exchange(view);
    Kokkos::deep_copy(host, view);
    for_each_cell(all, [&](const Index<D>& i) {
      wrong += cell(i) != (domain.owned().contains(i) || needed.contains(i) ? right(i) : T(-7));
    });
  }
  return wrong;
}

template <int D>
void check(const Index<D>& extents, int deepest) {
  for (int sides = 0; sides < (1 << D); ++sides) {
    DomainOptions<D> o;
    for (int j = 0; j < D; ++j) o.periodic[j] = sides >> j & 1;
    const CartesianDomain<D> domain(MPI_COMM_WORLD, extents, o);
    for (const auto& [name, shape] : test::few_shapes<D>())
      for (int depth = 0; depth <= deepest; ++depth) {
        const std::string what =
            name + " depth " + std::to_string(depth) + " sides " + std::to_string(sides) + " pattern ";
        for (const auto pattern : {HaloPattern::coalesced, HaloPattern::direct, HaloPattern::slabs}) {
          if (pattern == HaloPattern::slabs && !slabs_possible(shape)) continue;
          const int p = static_cast<int>(pattern);
          EXPECT_EQ((wrong_cells<double, D, Kokkos::LayoutRight>(domain, shape, depth, false, pattern)), 0)
              << what << p;
          EXPECT_EQ((wrong_cells<float, D, Kokkos::LayoutLeft>(domain, shape, depth, true, pattern)), 0)
              << what << p;
        }
      }
  }
}

TEST(ViewExchange, AllCasesIn1D) {
  check<1>({13}, 4);
}
TEST(ViewExchange, AllCasesIn2D) {
  check<2>({9, 14}, 3);
}
TEST(ViewExchange, AllCasesIn3D) {
  check<3>({7, 6, 5}, 2);
}
TEST(ViewExchange, AllCasesIn4D) {
  check<4>({6, 4, 3, 5}, 1);
}

TEST(ViewExchange, RefusesViewsThatDoNotFit) {
  using View = Kokkos::View<double**>;
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {8 * test::ranks(), 8});
  const auto shape = StencilShape<2>::moore(1);
  EXPECT_THROW((KokkosViewExchange<View>(domain, shape, 2, {2, 2}, {2, 1})), UsageError);
  EXPECT_THROW((KokkosViewExchange<View>(domain, shape, -1, {2, 2}, {2, 2})), UsageError);
  const auto unnamed = StencilShape<2>::of({{0, 0}, {1, 0}});
  EXPECT_THROW((KokkosViewExchange<View>(domain, unnamed, 1, {2, 2}, {2, 2}, false, HaloPattern::slabs)),
               UsageError);
  KokkosViewExchange<View> plan(domain, shape, 2, {2, 2}, {2, 2});
  EXPECT_THROW(plan.start(View("narrow", 12, 11)), UsageError);
  EXPECT_THROW(plan.finish(), UsageError);
  const View fits("fits", 12, 12);
  plan.start(fits);
  EXPECT_THROW(plan.start(fits), UsageError);
  plan.finish();
}

}  // namespace
}  // namespace isohalo
