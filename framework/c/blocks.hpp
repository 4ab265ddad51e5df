#pragma once
/// What creators of the C interface share: ranks that agree on their arguments, and the cuts of blocks that users
/// describe by their extents.

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "framework/c/handles.hpp"
#include "framework/domain/cartesian_domain.hpp"
#include "framework/mpi/agreement.hpp"

namespace isohalo::detail {

inline constexpr std::int64_t kMostCells = std::int64_t{1} << 53;

/// Runs `check`, which finds what this rank alone can see to be wrong and gives the arguments that must be equal on
/// all ranks; throws ArgumentError on all of them when a rank found something or arguments differ. Collective.
inline void agree_arguments(const Communicator& comm, const std::string& call,
                            const std::function<std::vector<Argument>()>& check) {
  std::unique_ptr<ArgumentError> mine;
  std::vector<Argument> arguments;
  try {
    arguments = check();
  } catch (const ArgumentError& e) {
    mine = std::make_unique<ArgumentError>(e);
  } catch (const MpiError& e) {  // MPI itself refused an argument
    mine = std::make_unique<ArgumentError>(e.mpi_code(), e.what());
  }
  try {
    agree_same(comm, call, arguments, mine.get());
  } catch (const UsageError& e) {  // on all ranks; where nobody has an error they differ
    const auto worst = static_cast<int>(comm.max(mine ? mine->mpi_class() : MPI_SUCCESS));
    throw ArgumentError(mine ? mine->mpi_class() : worst != MPI_SUCCESS ? worst : MPI_ERR_ARG, e.what());
  }
}

/// The cuts of every dimension, from all ranks' extents. Collective. Throws ArgumentError, the same on all ranks,
/// when the blocks do not tile a box; `what` begins its text.
template <int D>
PerDim<std::vector<std::int64_t>, D> cuts_of(const Communicator& comm, const Mesh& mesh, const long long owned[],
                                             const char* what) {
  // Largest extent, and minus the smallest, of the blocks at each coordinate: opposite when they tile.
  std::vector<std::array<std::int64_t, 2>> extremes;
  std::vector<int> coords(static_cast<std::size_t>(D));
  mesh.coordinates(comm.rank(), coords);
  for (int j = 0; j < D; ++j)
    for (int c = 0; c < mesh.extent(j); ++c) {
      const std::int64_t own = std::clamp<std::int64_t>(owned[j], -kMostCells, 2 * kMostCells);
      const std::int64_t nothing = std::numeric_limits<std::int64_t>::min();
      const bool mine = c == coords[static_cast<std::size_t>(j)];
      extremes.push_back({mine ? own : nothing, mine ? -own : nothing});
    }
  comm.allreduce(extremes.data(), static_cast<int>(2 * extremes.size()), MPI_INT64_T, MPI_MAX);
  PerDim<std::vector<std::int64_t>, D> cuts;
  auto at = extremes.begin();
  for (int j = 0; j < D; ++j) {
    cuts[j].push_back(0);
    for (int c = 0; c < mesh.extent(j); ++c, ++at) {
      const std::int64_t most = (*at)[0], least = -(*at)[1];
      // The sum of extents that are within the limit of a grid cannot overflow.
      if (most != least || least < 1 || most > kMostCells - cuts[j].back())
        throw ArgumentError(MPI_ERR_ARG, std::string(what) + ": the blocks at coordinate " + std::to_string(c) +
                                             " of dimension " + std::to_string(j) + " have " +
                                             std::to_string(least) +
                                             (most != least ? " to " + std::to_string(most) : std::string()) +
                                             " cells there: blocks must tile a box, own a cell each and be no more "
                                             "than 2^53 cells in a dimension");
      cuts[j].push_back(cuts[j].back() + most);
    }
  }
  return cuts;
}

/// The domain of such blocks on a Cartesian communicator. Collective.
template <int D>
CartesianDomain<D> domain_of_blocks(MPI_Comm cart, const Communicator& comm, const Mesh& mesh,
                                    const long long owned[], const char* what) {
  DomainOptions<D> options;
  options.cuts = cuts_of<D>(comm, mesh, owned, what);
  Index<D> shape;
  for (int j = 0; j < D; ++j) {
    shape[j] = (*options.cuts)[j].back();
    options.periodic[j] = mesh.periodic(j);
  }
  return CartesianDomain<D>(cart, shape, options);
}

}  // namespace isohalo::detail
