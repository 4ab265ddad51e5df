#pragma once
/// The Cartesian topology of ranks, as pure integer arithmetic: any number of dimensions, no communication.

#include <span>
#include <vector>

namespace isohalo {

/// A mesh or torus of ranks; row-major, dimension 0 slowest, as MPI_Cart_create numbers them without reordering.
class Mesh {
 public:
  static constexpr int no_rank = -1;  ///< off the mesh; the MPI layers turn it into MPI_PROC_NULL

  Mesh() = default;
  /// Throws UsageError unless every extent is at least 1 and the lengths agree.
  Mesh(std::vector<int> extents, std::vector<bool> periodic);

  int dimensions() const { return static_cast<int>(extents_.size()); }
  int size() const { return size_; }
  int extent(int j) const { return extents_[static_cast<std::size_t>(j)]; }
  bool periodic(int j) const { return periodic_[static_cast<std::size_t>(j)]; }

  /// Coordinates of a rank into `coords` (one per dimension).
  void coordinates(int rank, std::span<int> coords) const;
  int rank_at(std::span<const int> coords) const;

  /// The rank at `from` + `relative`: wraps periodic dimensions any number of times, `no_rank` off the mesh.
  /// Paper: "Isomorphic, Sparse MPI-like Collective Communication Operations", section 6, Cart_relative_rank.
  int relative_rank(int from, std::span<const int> relative) const;
  /// The offset of smallest magnitude from `from` to `to`, the positive one on a tie. Ibid., Cart_relative_coord.
  void relative_coordinates(int from, int to, std::span<int> relative) const;

 private:
  std::vector<int> extents_;
  std::vector<bool> periodic_;
  int size_ = 1;
};

}  // namespace isohalo
