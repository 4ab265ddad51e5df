#pragma once
/// The change sum of a step: by the tree, or counted where cells hold whole numbers.

#include <atomic>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "framework/domain/cartesian_domain.hpp"
#include "stencils/sweep.hpp"
#include "stencils/vectors.hpp"

namespace isohalo {

/// The change sum of a field of cells that hold 0 or 1: the number of those that change. Below 2^53 it is exact in
/// binary64 in whatever order it comes together, so it has the bits of the tree's sum without tile values. Used
/// like a CellSum.
template <int D>
class ChangeCount {
 public:
  /// Collective.
  explicit ChangeCount(const CartesianDomain<D>& domain)
      : owned_({domain.owned()}), ranks_(one_cell_per_rank(domain), {}, index_of<D>(1)) {}

  void reduce_by(const ReductionOptions& options) { ranks_.reduce_by(options); }
  /// That of the sum whose bits this one has.
  Index<D> tile() const { return default_tile<D>(); }
  /// The rows of the owned cells.
  const SweepRegion<D>& owned() const { return owned_; }

  /// So many cells of this rank changed. From any thread. Local.
  void add(std::int64_t cells) { count_.fetch_add(cells, std::memory_order_relaxed); }
  /// The sum over all ranks of what was added since the last time. Collective.
  double combine() {
    const auto mine = static_cast<double>(count_.exchange(0));
    return ranks_.reduce([mine](const Index<D>&) { return mine; });
  }

 private:
  static CartesianDomain<D> one_cell_per_rank(const CartesianDomain<D>& domain) {
    Index<D> shape;
    PerDim<int, D> ranks;
    for (int j = 0; j < D; ++j) shape[j] = ranks[j] = domain.decomposition().blocks(j);
    return {domain, Decomposition<D>(shape, ranks, 0)};
  }

  SweepRegion<D> owned_;
  CellSum<D> ranks_;
  std::atomic<std::int64_t> count_ = 0;
};

template <class T, int D>
using ChangeSum = std::conditional_t<std::is_same_v<T, std::uint8_t>, ChangeCount<D>, CellSum<D>>;

/// How many of n cells, which hold 0 or 1, differ. In vectors of bytes.
template <int Bytes = detail::kVectorBytes>
std::int64_t count_changes(const std::uint8_t* before, const std::uint8_t* after, std::int64_t n) {
  using Vector = detail::VectorOf<std::uint8_t, Bytes>;
  using Words = detail::VectorOf<std::uint64_t, Bytes>;
  std::int64_t count = 0, x = 0;
  while (n - x >= Bytes) {
    typename Vector::Type lanes{};
    const std::int64_t end = x + std::min<std::int64_t>((n - x) / Bytes, 255) * Bytes;  // as many as a byte counts
    for (; x < end; x += Bytes) lanes += Vector::load(before + x) ^ Vector::load(after + x);
    auto words = reinterpret_cast<typename Words::Type>(lanes);  // the same bits, whose parts of a word are added
    words = (words & 0x00ff00ff00ff00ffu) + (words >> 8 & 0x00ff00ff00ff00ffu);
    words = (words & 0x0000ffff0000ffffu) + (words >> 16 & 0x0000ffff0000ffffu);
    words = (words & 0x00000000ffffffffu) + (words >> 32);
    for (int l = 0; l < Words::kLanes; ++l) count += static_cast<std::int64_t>(words[l]);
  }
  for (; x < n; ++x) count += before[x] ^ after[x];
  return count;
}

}  // namespace isohalo
