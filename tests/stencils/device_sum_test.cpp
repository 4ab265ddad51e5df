/// Sums over fields in the memory of a Kokkos execution space have the bits of the host's: tiles by kernels, some
/// levels of the tree by kernels, what rank borders cut by the host.

#include "stencils/device/device_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

double value_at(const Index<1>& i) {
  return test::Random(static_cast<std::uint64_t>(i[0])).real(-1, 1);
}
template <int D>
double value_at(const CartesianDomain<D>& domain, const Index<D>& i) {
  return value_at(Index<1>{linear_index(domain.global(), i)});
}

struct ValueAt {
  const double* u;
  KOKKOS_FUNCTION double operator()(std::int64_t k) const { return u[k]; }
};
/// Doubles what it stores, in place.
struct DoublingAt {
  double* u;
  using Values = double;
  KOKKOS_FUNCTION double values(std::int64_t k) const { return 2 * u[k]; }
  KOKKOS_FUNCTION double term(std::int64_t k, double v) const { return v - u[k]; }
  KOKKOS_FUNCTION void store(std::int64_t k, double v) const { u[k] = v; }
};

/// How many combinations of this rank kernels do.
template <int D>
std::size_t compare(const Index<D>& shape, double tolerance, ReductionMethod method) {
  DomainOptions<D> o;
  o.alignment_tolerance = tolerance;
  const CartesianDomain<D> domain(MPI_COMM_WORLD, shape, o);
  CellSum<D> host(domain), here(domain);
  host.reduce_by({.method = method});
  here.reduce_by({.method = method});
  const std::size_t combinations = here.combinations().size();
  DeviceSum<D, DeviceSpace> sum(here);
  const DeviceField<double, D, DeviceSpace> u("u", domain.owned(), index_of<D>(1), index_of<D>(2));
  const HostCopy<double, D> copy(u);
  for_each_cell(domain.owned(), [&](const Index<D>& i) { copy.ref().at(i) = value_at<D>(domain, i); });
  copy.take_to(u);

  const double expected = host.reduce([&](const Index<D>& i) { return value_at<D>(domain, i); });
  for (int time = 0; time < 2; ++time) {  // the second time in what the first has left
    sum.form(ValueAt{u.ref().data}, u.ref());
    EXPECT_EQ(here.combine(), expected) << domain.text() << " tolerance " << tolerance;
  }
  sum.form(DoublingAt{u.ref().data}, u.ref());
  EXPECT_EQ(here.combine(), expected) << domain.text() << " tolerance " << tolerance;
  copy.bring_from(u);
  std::int64_t wrong = 0;
  for_each_cell(domain.owned(),
                [&](const Index<D>& i) { wrong += copy.ref().at(i) != 2 * value_at<D>(domain, i); });
  EXPECT_EQ(wrong, 0) << domain.text();
  return combinations - here.combinations().size();
}

template <int D>
void compare_all(const Index<D>& shape) {
  std::size_t by_kernels = 0;
  for (const double tolerance : {0.0, 0.02})
    for (const auto method :
         {ReductionMethod::tree, ReductionMethod::binary_tree, ReductionMethod::exact_over_tiles})
      by_kernels += compare<D>(shape, tolerance, method);
  if (test::ranks() <= 2) {  // of more ranks blocks may be too small
    EXPECT_GT(by_kernels, 0u);
  }
}

TEST(DeviceSum, HasTheBitsOfTheHost) {
  compare_all<1>({256 * 4200 + 17});
  compare_all<2>({1210, 1333});
  compare_all<3>({131, 79, 170});
  compare_all<4>({23, 18, 34, 70});
}
TEST(DeviceSum, HasThemOfSmallGrids) {
  compare<1>({9}, 0, ReductionMethod::tree);
  compare<2>({33, 17}, 0, ReductionMethod::tree);
  compare<3>({5, 9, 16}, 0, ReductionMethod::tree);
  compare<4>({3, 5, 7, 31}, 0, ReductionMethod::exact_over_tiles);
}

TEST(DeviceSum, DividesWithoutDivisions) {
  const std::uint32_t largest = (1u << 31) - 1;
  for (const std::uint32_t d :
       {1u, 2u, 3u, 5u, 7u, 127u, 128u, 129u, 641u, 65535u, 65537u, 1u << 30, largest - 1, largest})
    for (const std::uint32_t n :
         {0u, 1u, d - 1, d, d + 1, 2 * (d / 2) + 1, largest / d * d - 1, largest / d * d, largest}) {
      std::uint32_t rest = std::min(n, largest);
      const std::uint32_t of = rest;
      EXPECT_EQ(detail::Divisor(d).take_from(rest), of / d) << of << " / " << d;
      EXPECT_EQ(rest, of % d) << of << " % " << d;
    }
}

}  // namespace
}  // namespace isohalo
