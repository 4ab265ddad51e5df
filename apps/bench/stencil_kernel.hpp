#pragma once
/// The stencil kernels of "Isomorphic, Sparse MPI-like Collective Communication Operations", section 7.3.

#include <mpi.h>

#include <vector>

#include "apps/bench/experiment.hpp"

namespace isohalo {

/// Adds Figs. 8 and 9: the exchange of a 5-point stencil with a halo of depth 10 around `order` squared bytes per
/// rank (10^4 in the paper), and of a 9-point stencil with depth 2 around 100 squared, on meshes (not periodic) of
/// the first 1, 2, 3, .. ranks. Collective.
void add_stencil_kernels(MPI_Comm user, int order, std::vector<Experiment>& experiments);

}  // namespace isohalo
