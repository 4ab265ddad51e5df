/// Arrays on faces, exchanged with arrays in cells: every element of every array against its global index, and what
/// is needed from distances alone.

#include "framework/halo/faces.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "tests/halo/halo_fields.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

using test::FaceField;

template <int D>
struct Shape {
  StencilShape<D> shape;
  bool (*needed)(const Index<D>& away, int depth);
};

template <int D>
std::int64_t sum_of(const Index<D>& away, int granule) {
  std::int64_t sum = 0;
  for (const std::int64_t a : away) sum += (a + granule - 1) / granule;
  return sum;
}

template <int D>
std::vector<Shape<D>> shapes() {
  return {{StencilShape<D>::moore(1),
           [](const Index<D>& a, int k) { return *std::max_element(a.begin(), a.end()) <= k; }},
          {StencilShape<D>::von_neumann(1), [](const Index<D>& a, int k) { return sum_of<D>(a, 1) <= k; }},
          {StencilShape<D>::star(2), [](const Index<D>& a, int k) { return sum_of<D>(a, 2) <= k; }}};
}

/// Every periodicity, depth and shape; the ways to travel in turn.
template <int D>
void check(const Index<D>& extents, int every) {
  std::size_t turn = 0;
  int number = 0;
  for (const auto& periodic : test::periodicities<D>()) {
    DomainOptions<D> options;
    options.periodic = periodic;
    if (number++ % every) continue;
    const CartesianDomain<D> domain(MPI_COMM_WORLD, extents, options);
    for (int depth = 1; depth <= 3; ++depth)
      for (const auto& [shape, needed] : shapes<D>()) {
        if (D == 4 && shape.radius() * depth > 3) continue;
        const auto ways = test::exchanges(shape);
        HaloOptions<D> by;
        by.exchange = ways[turn++ % ways.size()];
        HaloPlan<D> plan(domain, shape, depth, by);
        std::vector<std::unique_ptr<FaceField<D>>> fields;
        std::vector<ErasedArray<D>> arrays;
        for (int face = D - 1; face >= -1; --face) {
          const auto& f =
              *fields.emplace_back(std::make_unique<FaceField<D>>(domain, face, shape.radius() * depth));
          if (face >= 0) {
            EXPECT_EQ(owned_faces(domain, face), f.mine);
            EXPECT_EQ(field_domain(domain, face).global(), f.all);
          }
          arrays.push_back(face >= 0 ? on_faces(f.u, face) : erase(f.u));
        }
        plan.exchange(arrays);
        for (const auto& f : fields)
          EXPECT_EQ(f->wrong([&, needed = needed](const Index<D>& a) { return needed(a, depth); }), 0)
              << exchange_name(by.exchange) << ", depth " << depth << ", faces of " << f->number - 2;
      }
  }
}

TEST(Faces, EveryElement1D) {
  check<1>({13}, 1);
  check<1>({6}, 1);  // blocks thinner than the halo
}
TEST(Faces, EveryElement2D) {
  check<2>({9, 8}, 1);
}
TEST(Faces, EveryElement3D) {
  check<3>({5, 6, 4}, 1);
}
TEST(Faces, EveryElement4D) {
  check<4>({3, 4, 3, 4}, 5);
}

/// Lists without a name need the images of reads beyond a side: face -i mirrors i, N + i mirrors N - i.
TEST(Faces, MirrorsLieOnTheOutermostOnes) {
  if (test::ranks() < 2) return;
  DomainOptions<1> options;
  options.cuts = {{std::vector<std::int64_t>{0, 1}}};
  for (int r = 1; r < test::ranks(); ++r) (*options.cuts)[0].push_back(1 + 4 * r);
  const std::int64_t n = (*options.cuts)[0].back();
  const CartesianDomain<1> domain(MPI_COMM_WORLD, {n}, options);
  HaloOptions<1> by;
  by.mirror_low = {true};
  HaloPlan<1> plan(domain, StencilShape<1>::of({{-3}, {1}}), 1, by);
  const FaceField<1> faces(domain, 0, 3), cells(domain, -1, 3);
  plan.exchange(on_faces(faces.u, 0), cells.u);
  if (test::rank() > 0) return;
  const auto came = [](const FaceField<1>& f, std::int64_t i) { return f.u.at({i}) == f.value({i}); };
  EXPECT_TRUE(came(faces, 1) && came(cells, 1));                              // offset 1
  EXPECT_TRUE(came(faces, 3) && faces.u.at({2}) == FaceField<1>::kSentinel);  // -3 of face 0
  EXPECT_TRUE(came(cells, 2) && cells.u.at({3}) == FaceField<1>::kSentinel);  // -3 of cell 0
}

TEST(Faces, WhatDoesNotFitIsRefused) {
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {9, 8}, {.periodic = {false, true}});
  HaloPlan<2> plan(domain, StencilShape<2>::moore(1), 1);
  const FaceField<2> cells(domain, -1, 1), rows(domain, 0, 1);
  const bool odd = test::rank() == test::ranks() - 1;
  test::expect_refusal("array 1 holds another box than this rank owns",
                       [&] { plan.exchange(cells.u, on_faces(cells.u, 0)); });
  test::expect_refusal("faces of dimension 2; there are dimensions 0 to 1",
                       [&] { plan.exchange(on_faces(rows.u, odd ? 2 : 0)); });
  test::expect_refusal("faces of dimension -2", [&] { plan.exchange(on_faces(rows.u, odd ? -2 : 0)); });
  test::expect_refusal("faces of dimension 2: there are dimensions 0 to 1", [&] { owned_faces(domain, 2); });
  if (test::ranks() > 1)
    test::expect_refusal("list of faces", [&] { plan.exchange(on_faces(cells.u, odd ? -1 : 1)); });
  EXPECT_NO_THROW(plan.exchange(cells.u, on_faces(rows.u, 0)));
}

}  // namespace
}  // namespace isohalo
