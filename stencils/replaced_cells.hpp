#pragma once
/// The values that two half steps in place replace, while a time tile makes both.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "framework/halo/row_update.hpp"
#include "stencils/boxes.hpp"
#include "stencils/sweep.hpp"

namespace isohalo {

/// The first half step of a tile copies them to where `keep` says; where its second one wants them, `values` says.
/// That is memory which all tiles use again and again, so it stays in cache; what parts of other tiles need comes
/// to and from an array `aside`, of the same strides.
template <class T, int D>
class ReplacedCells {
 public:
  /// Where those of the cells of `part` go, as if it were `aside`: the address of the first owned cell. Those of
  /// the owned ones then are kept; the next call of `values` asks for cells at most `skew` lower. Fences. Local.
  T* keep(const ArrayRef<T, D>& aside, const Box<D>& part, const Index<D>& skew) {
    put_aside(aside, part_);
    place_from(aside, part, skew);
    part_ = part.intersect(aside.owned);
    return first_;
  }
  /// Where those of the cells of `part`, owned ones, lie. Good until the next call. Fences. Local.
  T* values(const ArrayRef<T, D>& aside, const Box<D>& part) {
    if (part_.empty()) place_from(aside, part, {});
    detail::for_each_box_without(part, part_, [&](const Box<D>& b) { copy(aside, aside.data, b, first_); });
    detail::for_each_box_without(part_, part, [&](const Box<D>& b) { put_aside(aside, b); });
    part_ = {};
    return first_;
  }

 private:
  /// From the cells `skew` below those of `part` on.
  void place_from(const ArrayRef<T, D>& like, const Box<D>& part, const Index<D>& skew) {
    constexpr auto line = static_cast<std::int64_t>(64 / sizeof(T));
    Index<D> low = part.low, last = part.high;
    for (int j = 0; j < D; ++j) low[j] -= skew[j], --last[j];
    const std::int64_t begin = detail::place_of(like, low), end = detail::place_of(like, last) + 1;
    const std::int64_t lead = (begin % line + line) % line;  // lines begin as those of `like`
    if (const auto n = static_cast<std::size_t>(end - begin + 2 * line); memory_.size() < n) memory_.resize(n);
    first_ = memory_.data() + detail::to_next_line(memory_.data()) + lead - begin;
  }
  void put_aside(const ArrayRef<T, D>& aside, const Box<D>& b) const {
    if (!b.empty()) copy(aside, first_, b, aside.data);
  }
  static void copy(const ArrayRef<T, D>& like, const T* from, const Box<D>& box, T* to) {
    for_each_row_of("isohalo::keep", box, [&](const Index<D>& i, std::int64_t n) {
      const std::int64_t at = detail::place_of(like, i);
      std::copy_n(from + at, n, to + at);
    });
  }

  std::vector<T> memory_;
  T* first_ = nullptr;  ///< where the first owned cell would lie
  Box<D> part_;         ///< kept, and not yet given
};

}  // namespace isohalo
