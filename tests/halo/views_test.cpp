/// The exchange of Kokkos views: values by global index, a sentinel in every ghost, all layouts, staged and in
/// place.

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <type_traits>

#include "framework/halo/faces.hpp"
#include "framework/halo/halo_plan.hpp"
#include "framework/halo/view_ref.hpp"
#include "stencils/device/device_field.hpp"
#include "tests/halo/halo_fields.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

constexpr bool kHostReachesViews =
    Kokkos::SpaceAccessibility<Kokkos::HostSpace, Kokkos::DefaultExecutionSpace::memory_space>::accessible;

template <class T, int D, class Layout>
using ViewOf = Kokkos::View<typename detail::PointerOf<T, D>::Type, Layout, Kokkos::DefaultExecutionSpace>;

/// A view of its own; or, of layout stride, every second cell in the middle of a larger one. And the memory.
template <class T, int D, class Layout>
auto made_view(const Index<D>& n) {
  using View = ViewOf<T, D, Layout>;
  using Whole = ViewOf<T, D, Kokkos::LayoutRight>;
  const std::string name = "view";
  if constexpr (!std::is_same_v<Layout, Kokkos::LayoutStride>) {
    return std::pair(block_view<D, View>(name, n), Whole());
  } else {
    Index<D> larger = n;
    for (int j = 0; j < D; ++j) larger[j] = n[j] + 1;
    larger[D - 1] = 2 * n[D - 1] + 3;
    const auto whole = block_view<D, Whole>(name, larger);
    Layout layout;
    for (int j = 0; j < D; ++j) {
      const auto k = static_cast<std::size_t>(j);
      layout.dimension[k] = static_cast<std::size_t>(n[k]);
      layout.stride[k] = static_cast<std::size_t>(j == D - 1 ? 2 : whole.stride(j));
    }
    return std::pair(View(whole.data() + 3, layout), whole);
  }
}

/// All elements, as they lie in memory; so Kokkos' copies are compiled once for all types.
template <class To, class From>
void copy_memory(const To& to, const From& from) {
  const std::size_t bytes = to.span() * sizeof(*to.data());
  using Unowned = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
  Kokkos::deep_copy(
      Kokkos::View<char*, typename To::memory_space, Unowned>(reinterpret_cast<char*>(to.data()), bytes),
      Kokkos::View<const char*, typename From::memory_space, Unowned>(reinterpret_cast<const char*>(from.data()),
                                                                      bytes));
}

/// How messages are made of the cells of a view: as ViewCopies says, or by kernels and through host memory.
enum class Copies { automatic, kernels, staged };

/// As long as it lives, transports that are made send messages through host memory, if they are staged.
class Messages {
 public:
  explicit Messages(Copies copies) { setenv("ISOHALO_HOST_MESSAGES", copies == Copies::staged ? "1" : "0", 1); }
  ~Messages() { unsetenv("ISOHALO_HOST_MESSAGES"); }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;
};

ViewCopies view_copies(Copies copies) {
  return copies == Copies::automatic ? ViewCopies::automatic : ViewCopies::kernels;
}

/// How views are exchanged in a test.
template <int D>
struct How {
  Exchange exchange = Exchange::automatic;
  Copies copies = Copies::kernels;
  HaloMutation<D> mutation{};
  bool runs_on = false;
  HaloOptions<D> options() const {
    HaloOptions<D> o;
    o.runs_on = runs_on;
    o.exchange = exchange;
    return o;
  }
};

template <int D>
auto& cell_of(const auto& host, const Index<D>& k) {
  return [&]<std::size_t... J>(std::index_sequence<J...>)->auto& {
    return host(static_cast<std::size_t>(k[J])...);
  }
  (std::make_index_sequence<static_cast<std::size_t>(D)>());
}

/// The number of wrong cells of this rank after some exchanges by the same plan, each with new values; `delay`
/// comes in between.
template <class T, int D, class Layout>
std::int64_t wrong_cells(
    const CartesianDomain<D>& domain, const StencilShape<D>& shape, int depth, const How<D>& how, int rounds = 2,
    const std::function<void()>& delay = [] {}) {
  const Messages messages(how.copies);
  const BoundaryTopology<D> around{domain.global(), domain.periodic(), {}, {}};
  auto [low, high] = shape.ghost_widths(depth, around);
  high[0] += 2;  // wider than needed
  HaloPlan<D> plan(domain, shape, depth, how.options());
  detail::HaloPlanAccess::change(plan, how.mutation);
  const Box<D> all = domain.owned().grown(low, high);
  const auto made = made_view<T, D, Layout>(all.extents());
  const auto view = made.first;
  const auto array = view_ref(view, domain.owned(), low, high, view_copies(how.copies));
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
      Index<D> k;
      for (int j = 0; j < D; ++j) k[j] = i[j] - all.low[j];
      return cell_of<D>(host, k);
    };
    for_each_cell(all, [&](const Index<D>& i) { cell(i) = domain.owned().contains(i) ? right(i) : T(-7); });
    copy_memory(view, host);
    delay();
    plan.start(array);
    delay();
    plan.finish();
    copy_memory(host, view);
    for_each_cell(all, [&](const Index<D>& i) {
      wrong += cell(i) != (domain.owned().contains(i) || needed.contains(i) ? right(i) : T(-7));
    });
  }
  return wrong;
}

constexpr Exchange kWays[] = {Exchange::coalesced_packed, Exchange::direct_packed, Exchange::slabs_packed};

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
          for (const auto way : kWays) {
            if (way == Exchange::slabs_packed && !slabs_possible(shape)) continue;
            const bool runs_on = ++turn % 2 == 0;
            const How<D> kernels{way, Copies::kernels, {}, runs_on}, host{way, Copies::automatic},
                staged{way, Copies::staged, {}, runs_on};
            std::int64_t wrong = 0;
            switch ((turn + turn / 4) % 4) {  // another one for the same way each time
              case 0:
                wrong = wrong_cells<double, D, Kokkos::LayoutRight>(domain, shape, depth, kernels);
                break;
              case 1:
                wrong = wrong_cells<float, D, Kokkos::LayoutLeft>(domain, shape, depth, staged);
                break;
              case 2:
                wrong = wrong_cells<std::uint8_t, D, Kokkos::LayoutLeft>(domain, shape, depth, host);
                break;
              default:
                if constexpr (kHostReachesViews)
                  wrong = wrong_cells<double, D, Kokkos::LayoutStride>(domain, shape, depth, kernels);
            }
            EXPECT_EQ(wrong, 0) << name << " depth " << depth << " sides " << sides << " by " << exchange_name(way)
                                << " turn " << turn;
          }
    }
}

TEST(Views, AllCasesIn1D) {
  check<1>({13}, 5);
}
TEST(Views, AllCasesIn2D) {
  check<2>({9, 14}, 5);
}
TEST(Views, AllCasesIn3D) {
  check<3>({7, 6, 5}, 2);
}
TEST(Views, AllCasesIn4D) {
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

ErasedArray<2> ref(const View2& view, const CartesianDomain<2>& domain, std::int64_t width,
                   ViewCopies copies = ViewCopies::kernels) {
  return view_ref(view, domain.owned(), {width, width}, {width, width}, copies);
}

TEST(Views, ManyRepetitionsWithRandomDelays) {
  test::Random random(static_cast<std::uint64_t>(test::rank()) + 1);
  const auto delay = [&] {
    if (random.in(0, 9) == 0) usleep(static_cast<useconds_t>(random.in(0, 300)));
  };
  for (const auto way : kWays) {
    const auto copies = way == Exchange::direct_packed ? Copies::staged : Copies::kernels;
    for (const bool runs_on : {false, true})
      EXPECT_EQ((wrong_cells<double, 2, Kokkos::LayoutRight>(torus(), StencilShape<2>::moore(1), 2,
                                                             {way, copies, {}, runs_on}, 150, delay)),
                0);
  }
}

TEST(Views, TheWayIsChosenByTiming) {
  const auto domain = torus();
  HaloPlan<2> plan(domain, StencilShape<2>::star(1), 2);
  const View2 view("view", 12, 14);
  Kokkos::deep_copy(view, 1.0);
  plan.exchange(ref(view, domain, 2));
  const ExchangeChoice& choice = plan.choice();
  ASSERT_EQ(choice.seconds.size(), domain.size() == 1 ? 2u : 3u);
  for (const auto& [way, seconds] : choice.seconds) {
    EXPECT_EQ(way.fill, HaloFill::packed);
    EXPECT_GT(seconds, 0);
    if (way != choice.used) continue;
    for (const auto& other : choice.seconds) EXPECT_LE(seconds, other.second);
  }
  const auto used = static_cast<std::int64_t>(choice.used.pattern);
  EXPECT_EQ(domain.comm().min(used), domain.comm().max(used));
  EXPECT_EQ((wrong_cells<double, 2, Kokkos::LayoutRight>(domain, StencilShape<2>::moore(1), 3, {})), 0);
  EXPECT_EQ((wrong_cells<double, 2, Kokkos::LayoutRight>(domain, test::few_shapes<2>().back().shape, 2, {})), 0);
}

/// Several views with elements of different sizes in one message, each with the ghosts that it needs.
TEST(Views, SeveralInOneExchange) {
  struct Three {
    float a, b, c;
  };
  const auto domain = torus();
  for (const auto way : kWays) {
    HaloOptions<2> options;
    options.exchange = way;
    HaloPlan<2> plan(
        domain, {{StencilShape<2>::moore(1), 2}, {StencilShape<2>::star(1), 1}, {StencilShape<2>::moore(1), 1}},
        options);
    const View2 u("u", 12, 14);
    const Kokkos::View<std::uint8_t**> v("v", 12, 14);
    const Kokkos::View<Three**> w("w", 12, 14);
    const auto number = [&](std::int64_t i, std::int64_t j) {
      const auto n = [&](int k) { return domain.global().extent(k); };
      return static_cast<float>(((i % n(0) + n(0)) % n(0)) * 16 + (j % n(1) + n(1)) % n(1));
    };
    const auto hu = Kokkos::create_mirror_view(u);
    const auto hv = Kokkos::create_mirror_view(v);
    const auto hw = Kokkos::create_mirror_view(w);
    const Box<2> all = domain.owned().grown({2, 2}, {2, 2});
    const auto at = [&](const Index<2>& i, int k) { return static_cast<std::size_t>(i[k] - all.low[k]); };
    for_each_cell(all, [&](const Index<2>& i) {
      const float x = domain.owned().contains(i) ? number(i[0], i[1]) : -1;
      hu(at(i, 0), at(i, 1)) = x;
      hv(at(i, 0), at(i, 1)) = static_cast<std::uint8_t>(x);
      hw(at(i, 0), at(i, 1)) = {x, x + 1, x + 2};
    });
    copy_memory(u, hu);
    copy_memory(v, hv);
    copy_memory(w, hw);
    const Index<2> two{2, 2};
    plan.exchange(ref(u, domain, 2), view_ref(v, domain.owned(), two, two, ViewCopies::kernels),
                  view_ref(w, domain.owned(), two, two, ViewCopies::kernels));
    copy_memory(hu, u);
    copy_memory(hv, v);
    copy_memory(hw, w);
    std::int64_t wrong = 0;
    const BoundaryTopology<2> around{domain.global(), domain.periodic(), {}, {}};
    const auto far = test::needed_by_definition(domain.owned(), StencilShape<2>::moore(1).offsets(), 2, around),
               star = test::needed_by_definition(domain.owned(), StencilShape<2>::star(1).offsets(), 1, around),
               near = test::needed_by_definition(domain.owned(), StencilShape<2>::moore(1).offsets(), 1, around);
    for_each_cell(all, [&](const Index<2>& i) {
      const auto right = [&](const auto& needed) {
        return domain.owned().contains(i) || needed.contains(i) ? number(i[0], i[1]) : -1.0f;
      };
      const Three three = hw(at(i, 0), at(i, 1));
      wrong += hu(at(i, 0), at(i, 1)) != right(far);
      wrong += hv(at(i, 0), at(i, 1)) != static_cast<std::uint8_t>(right(star));
      wrong += three.a != right(near) || three.c != right(near) + 2;
    });
    EXPECT_EQ(wrong, 0) << exchange_name(way);
  }
}

/// Apart, since nvcc takes no lambda of a kernel in what is private, as the body of a test is.
void number_owned(const ArrayRef<double, 2>& u) {
  const Index<2> low = u.owned.low;
  Kokkos::parallel_for(
      "owned", Kokkos::RangePolicy<>(0, 80), KOKKOS_LAMBDA(const std::int64_t n) {
        u.at({low[0] + n / 10, low[1] + n % 10}) = 1.5 * static_cast<double>(n);
      });
}

TEST(Views, ArrayRefsAreForKernelsToo) {
  const auto domain = torus();
  const View2 view("view", 12, 14);
  const ErasedArray<2> e = ref(view, domain, 2);
  number_owned({reinterpret_cast<double*>(e.data), e.owned, e.ghost_low, e.ghost_high, e.stride});
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
  for (std::size_t n = 0; n < 80; ++n) EXPECT_EQ(host(2 + n / 10, 2 + n % 10), 1.5 * static_cast<double>(n));
}

/// A field on faces or in cells in a view, with two layers of ghosts.
template <class T, class Layout>
class ViewOn {
 public:
  ViewOn(const CartesianDomain<2>& domain, int face)
      : field_(domain, face, 2),
        face_(face),
        view_(block_view<2, View>(std::string("view"), field_.u.allocated().extents())),
        host_(Kokkos::create_mirror_view(view_)) {
    for_each_cell(field_.u.allocated(), [&](const Index<2>& i) { at(i) = static_cast<T>(field_.u.at(i)); });
    copy_memory(view_, host_);
  }
  ErasedArray<2> ref(Copies copies) const {
    return on_faces(view_ref(view_, field_.mine, {2, 2}, {2, 2}, view_copies(copies)), face_);
  }
  int wrong(const auto& distance) {
    copy_memory(host_, view_);
    for_each_cell(field_.u.allocated(), [&](const Index<2>& i) { field_.u.at(i) = at(i); });
    return field_.wrong(distance);
  }

 private:
  using View = ViewOf<T, 2, Layout>;
  T& at(const Index<2>& i) {
    const Index<2> low = field_.u.allocated().low;
    return cell_of<2>(host_, {i[0] - low[0], i[1] - low[1]});
  }

  test::FaceField<2> field_;
  int face_;
  View view_;
  typename View::HostMirror host_;
};

TEST(Views, OnFacesBesideCells) {
  const bool can_mix = kHostReachesViews;
  for (const PerDim<bool, 2>& periodic : test::periodicities<2>())
    for (const auto way : kWays)
      for (const auto copies : {Copies::kernels, Copies::staged, Copies::automatic}) {
        if (copies == Copies::automatic && !can_mix) continue;
        const Messages messages(copies);
        DomainOptions<2> options;
        options.periodic = periodic;
        const CartesianDomain<2> domain(MPI_COMM_WORLD, {13, 12}, options);
        HaloOptions<2> by;
        by.exchange = way;
        for (const bool diamond : {false, true}) {
          const auto shape = diamond ? StencilShape<2>::von_neumann(1) : StencilShape<2>::moore(1);
          HaloPlan<2> plan(domain, shape, 2, by);
          ViewOn<double, Kokkos::LayoutRight> cells(domain, -1);
          ViewOn<float, Kokkos::LayoutLeft> rows(domain, 0);
          ViewOn<double, Kokkos::LayoutLeft> columns(domain, 1);
          plan.exchange(rows.ref(copies), cells.ref(copies), columns.ref(copies));
          const auto needed = [&](const Index<2>& a) {
            return (diamond ? a[0] + a[1] : std::max(a[0], a[1])) <= 2;
          };
          EXPECT_EQ(cells.wrong(needed), 0) << exchange_name(way);
          EXPECT_EQ(rows.wrong(needed), 0) << exchange_name(way);
          EXPECT_EQ(columns.wrong(needed), 0) << exchange_name(way);
        }
      }
}

/// Some ranks finish the one first, some the other; of several stages, all need the others meanwhile.
TEST(Views, MayBeFinishedInAnyOrder) {
  const auto domain = torus();
  const auto shape = StencilShape<2>::moore(1);
  for (const auto first : kWays)
    for (const auto second : kWays) {
      HaloOptions<2> o;
      o.exchange = first;
      HaloPlan<2> a(domain, shape, 2, o);
      o.exchange = second;
      HaloPlan<2> b(domain, shape, 1, o);
      const View2 u("u", 12, 14), v("v", 10, 12);
      for (int round = 0; round < 20; ++round) {
        Kokkos::deep_copy(u, -1.0);
        Kokkos::deep_copy(v, -1.0);
        const double right = round;
        Kokkos::deep_copy(Kokkos::subview(u, std::pair(2, 10), std::pair(2, 12)), right);
        Kokkos::deep_copy(Kokkos::subview(v, std::pair(1, 9), std::pair(1, 11)), right);
        a.start(ref(u, domain, 2));
        b.start(ref(v, domain, 1));
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

TEST(Views, BrokenPlansAreCaught) {
  const auto caught = [](Exchange way, const HaloMutation<2>& mutation) {
    return wrong_cells<double, 2, Kokkos::LayoutRight>(torus(), StencilShape<2>::moore(1), 2,
                                                       {way, Copies::kernels, mutation}) > 0;
  };
  for (const auto way : kWays) {
    EXPECT_FALSE(caught(way, {}));
    EXPECT_TRUE(caught(way, [](auto& pieces) { pieces.pop_back(); }));
    EXPECT_TRUE(caught(way, [](auto& pieces) {
      for (auto& p : pieces)
        if (p.region.box.extent(1) == 2) ++p.region.box.low[1];
    }));
  }
}

TEST(Views, ThoseThatDoNotFitAreRefused) {
  const auto domain = torus();
  const View2 fits("fits", 12, 14), narrow("narrow", 12, 13);
  EXPECT_THROW(ref(narrow, domain, 2), UsageError);
  HaloPlan<2> plan(domain, StencilShape<2>::moore(1), 2), mixed(domain, StencilShape<2>::moore(1), 2);
  EXPECT_THROW(plan.start(view_ref(narrow, domain.owned(), {2, 2}, {2, 1}, ViewCopies::kernels)), UsageError);
  EXPECT_THROW(mixed.start(ref(fits, domain, 2), ref(fits, domain, 2, ViewCopies::automatic)), UsageError);
  plan.exchange(ref(fits, domain, 2));
  plan.exchange(ref(fits, domain, 2, ViewCopies::automatic));  // another transport of the same plan
}

TEST(Views, OfSmallGridsThatRepeatInTheirGhosts) {
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {4, 5}, {.periodic = {true, true}});
  for (const auto& shape : {StencilShape<2>::of({{-2, 3}, {1, -4}}), StencilShape<2>::moore(3)})
    EXPECT_EQ((wrong_cells<double, 2, Kokkos::LayoutLeft>(domain, shape, 4, {})), 0);
}

}  // namespace
}  // namespace isohalo
