#pragma once
/// A loop of one's own over the rows of a block, as fast as the sweeps of our solvers.

#include <array>
#include <cstddef>
#include <vector>

#include "framework/halo/row_update.hpp"
#include "framework/halo/stencil_shape.hpp"
#include "framework/schedule/fastest_way.hpp"
#include "framework/schedule/stopwatch.hpp"

namespace isohalo {

/// Sweeps a region with a function of a row, and does about memory what our solvers do (docs/performance.md): it
/// fetches lines ahead of the loop, and writes past the caches, if the first calls show that this is faster on this
/// machine and these arrays. The bits are those of the plain loop.
///
///   RowSweep<double, 2> sweep(StencilShape<2>::star(1));
///   sweep(halo.region(1), u, v, [s = u.stride[0]](const double* u, double* v, std::int64_t n) {
///     for (std::int64_t x = 0; x < n; ++x) v[x] = u[x] + 0.2 * (u[x - s] + u[x + s] + ..);
///   });
///
/// The function is called for pieces of rows, each cell once but in no particular order, with the addresses of the
/// piece's first cell; as row(in, out, n, i) it gets the index of that cell, too. It must write all n cells of each
/// array that it writes, and read none of those by their addresses: what it writes may lie in a small buffer first.
/// It may be copied, so what it changes besides lies behind a pointer or a reference.
/// One object for each kind of loop, since it keeps what it has found out; T of at most 64 bytes.
template <class T, int D>
class RowSweep {
  static_assert(sizeof(T) <= 64, "RowSweep: an element is at most a cache line");

 public:
  /// What the loop reads around a cell. Local.
  explicit RowSweep(const StencilShape<D>& shape) : low_(shape.reach_low()), high_(shape.reach_high()) {}

  /// One step on these boxes (HaloPlan::region gives them). Local; no threads. Throws UsageError where an array has
  /// not the cells, or cells of it overlap.
  template <class Row>
  void operator()(const std::vector<Box<D>>& region, const ArrayRef<T, D>& in, const ArrayRef<T, D>& out,
                  const Row& row) {
    (*this)(region, std::array{in}, std::array{out}, row);
  }

  /// The same with several arrays of the same owned box and strides: row(std::array<const T*, In>,
  /// std::array<T*, Out>, n), or as above where there is one of each. The loop may read around a cell in each of
  /// those that it reads.
  template <std::size_t In, std::size_t Out, class Row>
  void operator()(const std::vector<Box<D>>& region, const std::array<ArrayRef<T, D>, In>& in,
                  const std::array<ArrayRef<T, D>, Out>& out, const Row& row) {
    static_assert(In > 0 && Out > 0);
    std::array<T*, In> from;
    std::array<T*, Out> to;
    const ArrayRef<T, D>& like = out[0];
    for (std::size_t k = 0; k < In; ++k) {
      from[k] = in[k].data;
      if (from[k]) detail::check_strides(erase(in[k]), "RowSweep, reading", k);
    }
    for (std::size_t k = 0; k < Out; ++k) {
      to[k] = out[k].data;
      if (to[k]) detail::check_strides(erase(out[k]), "RowSweep, writing", k);
    }
    std::int64_t cells = 0;
    for (const Box<D>& box : region) {
      if (box.empty()) continue;
      cells += box.cells();
      for (const auto& a : in) detail::check_swept(box.grown(low_, high_), erase(a), erase(like), "reads");
      for (const auto& a : out) detail::check_swept(box, erase(a), erase(like), "writes");
    }
    const detail::FunctionKernel<T, D, In, Out, const Row&> kernel(row);
    const std::int64_t lead = D > 1 ? high_[0] * like.stride[0] : 0;
    const detail::Stopwatch watch(!ways_.decided());
    const detail::UpdatedRows<T, D> rows({kernel, like, from, to}, Fetch::by_way(ways_.way(), lead));
    const std::int64_t planes = 1 + low_[0] + high_[0], bytes = static_cast<std::int64_t>(In * sizeof(T));
    for (const Box<D>& box : region)
      detail::for_each_block(box, detail::rows_of_block<D>(box.extents(), planes, bytes),
                             [&](const Box<D>& block) { rows.run(block, block); });
    detail::streaming_fence();
    if (cells > 0 && !ways_.decided())  // by cell, since regions of several steps differ in size
      ways_.took(watch.seconds() / static_cast<double>(cells));
  }

 private:
  Index<D> low_, high_;
  FastestWay ways_ = FastestWay::of(Fetch::kWays);
};

}  // namespace isohalo
