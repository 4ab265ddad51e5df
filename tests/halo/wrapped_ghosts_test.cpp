/// Ghosts that wrap round a small torus many times.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <fstream>

#include "framework/halo/halo_plan.hpp"
#include "framework/halo/probe_field.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

std::int64_t peak_kib() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6));
  return 0;
}

TEST(WrappedGhosts, Try) {
  const int n = std::getenv("OFFS") ? atoi(std::getenv("OFFS")) : 8;
  test::Random random(7);
  Offsets<4> list;
  const Index<4> e{3, 4, 4, 19};
  for (int k = 0; k < n; ++k) {
    Index<4> o;
    for (int j = 0; j < 4; ++j) o[j] = random.in(-(e[j] - 1), e[j] - 1);
    list.push_back(o);
  }
  const auto shape = StencilShape<4>::of(list);
  DomainOptions<4> d;
  d.periodic.fill(true);
  const CartesianDomain<4> domain(MPI_COMM_WORLD, e, d);
  HaloOptions<4> o;
  o.exchange = exchange_of_name(std::getenv("WAY") ? std::getenv("WAY") : "shared");
  HaloPlan<4> plan(domain, shape, 5, o);
  const auto before = peak_kib();
  detail::ProbeField<double, 4> field(domain, plan, 0, detail::ProbeLayout::plain);
  const auto with = peak_kib();
  const auto start = std::chrono::steady_clock::now();
  plan.exchange(field.ref());
  const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("rank %d: %s %.3f s, peak before %ld with field %ld after %ld KiB; sent %ld received %ld copied %ld, field %ld\n", test::rank(), plan.choice().text().c_str(), s,
              before, with, peak_kib(), plan.cost().cells_sent, plan.cost().cells_received, plan.cost().cells_copied, field.ref().allocated().cells());
}

}  // namespace
}  // namespace isohalo
