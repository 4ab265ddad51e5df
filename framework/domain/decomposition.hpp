#pragma once
/// Which box of the global grid each rank owns: a pure function of (global box, process grid, tolerance).

#include <array>
#include <cstdint>
#include <vector>

#include "datatypes/box.hpp"

namespace isohalo {

/// Product of the extents; throws UsageError for an extent < 1 or more than 2^53 cells (then indices and counts of
/// cells would no longer be exact in binary64).
template <int D>
std::int64_t checked_cells(const Index<D>& shape);

/// The process grid for `ranks` ranks. Weighs the largest block, the ghost surface, and prefers to leave the
/// fastest dimension uncut. Deterministic. Throws UsageError, with the next smaller rank count that fits, when
/// `ranks` ranks cannot each own a cell.
template <int D>
PerDim<int, D> choose_process_grid(const Index<D>& shape, int ranks);

/// By what it is chosen: the time of a step in units of one cell update, of the largest block plus its ghost
/// surface. Ghosts beside the fastest dimension are strided and cost several times as much as those in whole rows.
template <int D>
double step_cost(const Index<D>& shape, const PerDim<int, D>& grid);

/// Every process grid of `ranks` ranks in which each rank owns a cell, in lexicographic order.
template <int D>
std::vector<PerDim<int, D>> all_process_grids(const Index<D>& shape, int ranks);

/// Tensor product of cuts per dimension.
template <int D>
class Decomposition {
 public:
  Decomposition() = default;
  /// Snapped cuts: each cut lies at the multiple of the highest power of two within `tolerance` x block extent of
  /// the even cut (docs/reductions.md; Stelz 2022, Algorithm 3, two-sided, per dimension). Results never
  /// depend on the cuts, only the cost of a reduction does.
  Decomposition(const Index<D>& shape, const PerDim<int, D>& grid, double tolerance);
  /// Cuts given by the user: cuts[j] = 0 < .. < shape[j], strictly increasing. Throws UsageError otherwise.
  Decomposition(const Index<D>& shape, PerDim<std::vector<std::int64_t>, D> cuts);

  const Box<D>& global() const { return global_; }
  int blocks(int j) const { return static_cast<int>(cuts_[j].size()) - 1; }
  PerDim<int, D> grid() const;
  int ranks() const;
  std::int64_t cut(int j, int c) const { return cuts_[j][static_cast<std::size_t>(c)]; }
  Box<D> box(const PerDim<int, D>& coords) const;
  Box<D> box(int rank) const { return box(coordinates(rank)); }
  PerDim<int, D> coordinates(int rank) const;
  int rank_at(const PerDim<int, D>& coords) const;
  /// Coordinate of the block that owns index x (0 <= x < shape[j]).
  int owner(int j, std::int64_t x) const;
  /// The least and the largest extents that blocks have.
  Index<D> smallest() const;
  Index<D> largest() const;
  std::int64_t smallest_extent(int j) const { return smallest()[j]; }
  std::int64_t largest_extent(int j) const { return largest()[j]; }
  /// Cells of the largest block over cells of an even one: 1 is perfect.
  double imbalance() const;

  bool operator==(const Decomposition&) const = default;

 private:
  Box<D> global_;
  PerDim<std::vector<std::int64_t>, D> cuts_;
};

}  // namespace isohalo
