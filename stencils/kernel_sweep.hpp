#pragma once
/// Sweeps of row kernels: what a stepper does with its fields.

#include <span>
#include <vector>

#include "framework/halo/array_ref.hpp"
#include "framework/halo/row_update.hpp"
#include "stencils/change_sum.hpp"
#include "stencils/row_kernels.hpp"
#include "stencils/sweep.hpp"

namespace isohalo {

/// Updates the region, or one of so many parts of it. Fences. Local.
template <class T, int D>
void sweep(const SweepRegion<D>& region, const RowUpdate<T, D>& update, const Fetch& how, std::int64_t part = 0,
           std::int64_t parts = 1);

/// Updates one box that is in cache. `next`: see Fetch. `kept`: if it is not null, where the values go that an
/// array that is updated in place has before, to the same places behind it. Fences. Local.
template <class T, int D>
void sweep_box(const Box<D>& box, const RowUpdate<T, D>& update, std::int64_t next, T* kept);

/// Updates the owned cells, and forms the tile values of ((new - old) as double)^2 on the way, of several arrays
/// the sum in their order; old: in `before`, which may be among those read. `sum.combine()` then gives the change
/// sum. Arrays that are written may be read where the kernel reads no neighbors of theirs; none is in `before`.
/// Fences. Local.
template <class T, int D>
void sweep_with_change(ChangeSum<T, D>& sum, std::vector<double>& scratch, const RowUpdate<T, D>& update,
                       std::span<T* const> before, const Fetch& how);

/// Updates the owned cells in place, by a ChangingKernel, and forms the tile values of its terms; with `second`, a
/// sum by the same tiles, those of the last array as well. Fences. Local.
template <class T, int D>
void sweep_with_terms(CellSum<D>& sum, CellSum<D>* second, std::vector<double>& scratch,
                      const RowUpdate<T, D>& update, const Fetch& how);

/// The same as sweep_with_change of one array of floating-point cells that is updated in place, by a
/// ChangingKernel, over the planes low .. high-1 of dimension 0 that this rank owns: to be called for all of them
/// in order, with the same `lanes`. Of one dimension all owned cells, whatever the planes.
template <class T, int D>
void sweep_planes_with_change(CellSum<D>& sum, std::vector<double>& lanes, std::int64_t low, std::int64_t high,
                              const RowUpdate<T, D>& update, const Fetch& how);

/// Forms these tile values alone in one box of owned cells, which is in cache and begins and ends where reduction
/// tiles do or the block does. Fences. Local.
template <class T, int D>
void change_in_box(ChangeSum<T, D>& sum, std::vector<double>& scratch, const Box<D>& box,
                   const ArrayRef<T, D>& like, std::span<T* const> after, std::span<T* const> before);

}  // namespace isohalo
