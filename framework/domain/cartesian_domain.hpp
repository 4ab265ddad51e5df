#pragma once
/// A user's communicator with coordinates, periodicity and a decomposition of the global grid.

#include <mpi.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/domain/decomposition.hpp"
#include "framework/domain/mesh.hpp"
#include "framework/mpi/communicator.hpp"

namespace isohalo {

template <int D>
struct DomainOptions {
  PerDim<bool, D> periodic{};  ///< per dimension
  /// Ranks per dimension; the product must be the size of the communicator. Absent: chosen.
  std::optional<PerDim<int, D>> process_grid{};
  double alignment_tolerance = 0.02;  ///< 0 .. 0.5, see Decomposition
  /// The user's own cuts, dimension by dimension from 0 to the extent; they decide the process grid.
  std::optional<PerDim<std::vector<std::int64_t>, D>> cuts{};
};

/// The cuts that a domain over so many ranks has. Local. Throws UsageError when the options do not fit.
template <int D>
Decomposition<D> decompose(const Index<D>& shape, const DomainOptions<D>& options, int ranks);

/// Who owns what. A cheap handle: copies share one description; immutable.
template <int D>
class CartesianDomain {
 public:
  /// Cuts a grid of `shape` cells (slowest dimension first) over the ranks of `user`, which is duplicated once and
  /// left as it is. Collective over `user`, which compares the arguments: throws UsageError, the same on all ranks,
  /// also when they differ between ranks.
  CartesianDomain(MPI_Comm user, const Index<D>& shape, const DomainOptions<D>& options = {});
  /// The same ranks, at the same coordinates, over another grid. Local. Throws UsageError unless `blocks` has as
  /// many blocks in each dimension.
  CartesianDomain(const CartesianDomain& ranks, Decomposition<D> blocks);

  const Communicator& comm() const { return data_->comm; }
  const Decomposition<D>& decomposition() const { return data_->decomposition; }
  const Mesh& mesh() const { return data_->mesh; }
  int rank() const { return comm().rank(); }
  int size() const { return comm().size(); }
  const PerDim<int, D>& coordinates() const { return data_->coords; }
  bool periodic(int j) const { return data_->periodic[j]; }
  const PerDim<bool, D>& periodic() const { return data_->periodic; }
  /// All cells; indices start at 0.
  const Box<D>& global() const { return decomposition().global(); }
  /// The cells of this rank, never empty.
  const Box<D>& owned() const { return data_->owned; }
  /// Its cuts and periodic dimensions: what all ranks must have in common.
  std::string text() const;

 private:
  struct Data {
    Communicator comm;
    PerDim<bool, D> periodic;
    Decomposition<D> decomposition;
    Mesh mesh;
    PerDim<int, D> coords;
    Box<D> owned;
  };
  std::shared_ptr<const Data> data_;
};

}  // namespace isohalo
