#pragma once
/// Isomorphic neighborhoods: all ranks of a mesh hold the same list of relative offsets.
///
/// Source: "Isomorphic, Sparse MPI-like Collective Communication Operations for Parallel Stencil Computations"
/// (Träff, Lübbe, Rougier, Hunold 2015), sections 4 and 6. The collectives on them are not part of this file.

#include <memory>
#include <span>
#include <vector>

#include "framework/domain/cartesian_domain.hpp"
#include "framework/domain/mesh.hpp"
#include "framework/neighborhood/offsets.hpp"

namespace isohalo {

/// The neighbors of one rank: block i goes to targets[i] and comes from sources[i]; Mesh::no_rank where the mesh
/// ends. Created locally in O(s d), without communication.
class IsomorphicNeighborhood {
 public:
  /// `relative` is flat, s x mesh.dimensions(), dimension 0 first; offsets may repeat, be zero or longer than the
  /// mesh. Throws UsageError when its length is no multiple of the dimensions, or a coordinate is -2147483648.
  IsomorphicNeighborhood(const Mesh& mesh, int rank, std::span<const int> relative);
  IsomorphicNeighborhood(std::shared_ptr<const Mesh> mesh, int rank, std::span<const int> relative);

  template <int D>
  IsomorphicNeighborhood(const CartesianDomain<D>& domain, const Offsets<D>& offsets)
      : IsomorphicNeighborhood(domain.mesh(), domain.rank(), flat<D>(offsets)) {}

  int count() const { return static_cast<int>(targets_.size()); }
  int indegree() const { return indegree_; }    ///< sources that exist
  int outdegree() const { return outdegree_; }  ///< targets that exist
  std::span<const int> sources() const { return sources_; }
  std::span<const int> targets() const { return targets_; }
  /// Without absent neighbors: what MPI_Dist_graph_create_adjacent takes.
  std::vector<int> present_sources() const { return present(sources_); }
  std::vector<int> present_targets() const { return present(targets_); }
  std::span<const int> relative() const { return relative_; }
  const Mesh& mesh() const { return *mesh_; }
  int rank() const { return rank_; }

 private:
  static std::vector<int> present(std::span<const int> ranks);

  std::shared_ptr<const Mesh> mesh_;
  int rank_ = 0;
  std::vector<int> relative_, sources_, targets_;
  int indegree_ = 0, outdegree_ = 0;
};

}  // namespace isohalo
