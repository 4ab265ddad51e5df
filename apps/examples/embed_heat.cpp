/// Isohalo inside a user's own MPI program: their communicator, their std::vector, a halo two cells deep (two steps
/// per exchange) and a residual with the same bits on any number of ranks. No HDF5, no input file, no Kokkos to
/// initialise.
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <isohalo/halo.hpp>
#include <isohalo/reduce.hpp>
#include <span>
#include <vector>

using namespace isohalo;

void simulate(MPI_Comm comm) {
  // A 200 x 300 torus, cut over the ranks of `comm`; this rank owns the box `mine` of it.
  const CartesianDomain<2> domain(comm, {200, 300}, {.periodic = {true, true}});
  const Box<2> mine = domain.owned();

  // The program's own arrays: C order, two ghost layers on every side.
  std::vector<double> now(adopted_size(mine, 2)), next(now.size());
  ArrayRef<double, 2> u = adopt(std::span(now), mine, 2), v = adopt(std::span(next), mine, 2);
  for_each_cell(mine, [&](const Index<2>& i) { u.at(i) = std::sin(0.1 * double(i[0])) * double(i[1] % 7); });

  // The ghosts that two steps of a 5-point stencil read.
  HaloPlan<2> halo(domain, StencilShape<2>::von_neumann(1), 2);
  TreeReducer<double, 2, Sum> sum(domain);

  double residual = 0;
  for (int step = 0; step < 100; ++step) {
    if (step % 2 == 0) halo.exchange(u);
    for (const Box<2>& part : halo.region(step % 2 + 1))  // the first of two steps also updates some ghosts
      for_each_cell(part, [&](const Index<2>& i) {
        const auto [y, x] = i;
        v.at(i) = u.at(i) + 0.2 * (((u.at({y - 1, x}) + u.at({y + 1, x})) + (u.at({y, x - 1}) + u.at({y, x + 1}))) -
                                   4 * u.at(i));
      });
    if (step % 10 == 9)
      residual =
          std::sqrt(sum.reduce([&](const Index<2>& i) { return (v.at(i) - u.at(i)) * (v.at(i) - u.at(i)); }));
    std::swap(u, v);
  }
  if (domain.rank() == 0) std::printf("residual = %.17g\n", residual);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  simulate(MPI_COMM_WORLD);
  MPI_Finalize();
}
