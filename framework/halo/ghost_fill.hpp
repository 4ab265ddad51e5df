#pragma once
/// Ghosts of arrays that hold a small grid several times over, because they wrap round it. Private to
/// framework/halo: use HaloPlan.

#include <vector>

#include "framework/halo/array_ref.hpp"
#include "framework/halo/cell_set.hpp"
#include "framework/halo/halo_schedule.hpp"

namespace isohalo::detail {

/// One block's ghosts: which cell of its array holds the value of each needed cell of the grid, and which ghosts
/// repeat it.
template <int D>
class GhostFill {
 public:
  GhostFill(const HaloGeometry<D>& geometry, const PerDim<int, D>& coords);

  /// The ghosts that are received, one message per rank: its needed cells in index order of the grid, so that the
  /// sender need not know which ghosts they become.
  std::vector<HaloMessage<D>> received(const Decomposition<D>& blocks, const PerDim<int, D>& coords) const;

  /// All other needed ghosts.
  std::int64_t cells() const { return cells_; }
  /// Fills them; what is received must be there. Local.
  void run(const ErasedArray<D>& array) const;
  /// Calls f(shifted box) for each of them.
  template <class F>
  void for_each_copy(F&& f) const {
    for_each_repeat([&](const Index<D>& ghost, std::int64_t cell) {
      ShiftedBox<D> to{Box<D>::of_cell(ghost), index_of_linear(frame_, sources_[static_cast<std::size_t>(cell)])};
      for (int j = 0; j < D; ++j) to.shift[j] = ghost[j] - to.shift[j];
      f(to);
    });
  }

 private:
  /// f(ghost, cell of the grid, as a number) for each ghost that is a copy, in index order.
  template <class F>
  void for_each_repeat(F&& f) const {
    for_each_row(frame_, [&](const Index<D>& row) {
      const std::int64_t n = global_.extent(D - 1);
      const Index<D> first = wrapped(global_, row);
      const std::int64_t base = linear_index(global_, first) - first[D - 1];
      for (Index<D> i = row; repeats_.next_in_row(i); ++i[D - 1]) f(i, base + ((i[D - 1] % n) + n) % n);
    });
  }

  Box<D> global_, frame_;
  CellSet<D> repeats_;
  std::vector<std::int64_t> sources_;  ///< by cell of the grid: place in the frame, -1 where it is not needed
  std::int64_t cells_ = 0;
};

/// What the block at `receiver` receives from the one at `sender`, in the sender's indices: see
/// GhostFill::received. No region when nothing.
template <int D>
HaloMessage<D> repeated_grid_message(const HaloGeometry<D>& geometry, const PerDim<int, D>& sender,
                                     const PerDim<int, D>& receiver);

}  // namespace isohalo::detail
