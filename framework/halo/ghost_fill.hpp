#pragma once
/// Ghosts of arrays that hold a small grid several times over, because they wrap round it. Private to
/// framework/halo: use HaloPlan.

#include <vector>

#include "framework/domain/decomposition.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/halo/cell_set.hpp"
#include "framework/halo/halo_schedule.hpp"

namespace isohalo::detail {

/// Is the array of a block, with the ghosts that `steps` steps need, larger than eight grids? Then most ghosts
/// repeat each other, and what is sent, or described one by one, should be bounded by the grid: each cell of
/// another rank comes once, and GhostFill copies it to its repeats. The same for all blocks. Local.
template <int D>
bool repeats_grid(const Decomposition<D>& blocks, const StencilShape<D>& shape, int steps,
                  const BoundaryTopology<D>& around);

/// One block's ghosts: which cell of its array holds the value of each needed cell of the grid, and which ghosts
/// repeat it.
template <int D>
class GhostFill {
 public:
  GhostFill(const Decomposition<D>& blocks, const PerDim<int, D>& coords, const StencilShape<D>& shape, int steps,
            const BoundaryTopology<D>& around);

  /// The ghosts that are received, one message per rank: its needed cells in index order of the grid, so that the
  /// sender need not know which ghosts they become.
  std::vector<HaloMessage<D>> received(const Decomposition<D>& blocks, const PerDim<int, D>& coords) const;

  /// All other needed ghosts.
  std::int64_t cells() const { return cells_; }
  /// Fills them; what is received must be there. Local.
  void run(const ErasedArray<D>& array) const;
  /// Calls f(box, shift) for rows of them: ghost = cell + shift.
  template <class F>
  void for_each_row_of_copies(F&& f) const {
    for_each_repeat([&](const Index<D>& ghost, std::int64_t cell) {
      const Index<D> source = index_of_linear(frame_, sources_[static_cast<std::size_t>(cell)]);
      Box<D> to{ghost, ghost};
      Index<D> shift;
      for (int j = 0; j < D; ++j) ++to.high[j], shift[j] = ghost[j] - source[j];
      f(to, shift);
    });
  }

 private:
  /// f(ghost, cell of the grid, as a number) for each ghost that is a copy, in index order.
  template <class F>
  void for_each_repeat(F&& f) const {
    for_each_row(frame_, [&](const Index<D>& row) {
      const std::int64_t base = linear_index(global_, wrapped(row)) - wrapped(row)[D - 1];
      const std::int64_t n = global_.extent(D - 1);
      Index<D> i = row;
      while (repeats_.next_in_row(i)) f(i, base + ((i[D - 1] % n) + n) % n), ++i[D - 1];
    });
  }
  Index<D> wrapped(Index<D> i) const {
    for (int j = 0; j < D; ++j) {
      const std::int64_t n = global_.extent(j);
      i[j] = ((i[j] % n) + n) % n;
    }
    return i;
  }

  Box<D> global_, frame_;
  CellSet<D> repeats_;
  std::vector<std::int64_t> sources_;  ///< by cell of the grid: place in the frame, -1 where it is not needed
  std::int64_t cells_ = 0;
};

/// What the block at `receiver` receives from the one at `sender`, in the sender's indices: see
/// GhostFill::received. No region when nothing.
template <int D>
HaloMessage<D> repeated_grid_message(const Decomposition<D>& blocks, const PerDim<int, D>& sender,
                                     const PerDim<int, D>& receiver, const StencilShape<D>& shape, int steps,
                                     const BoundaryTopology<D>& around);

}  // namespace isohalo::detail
