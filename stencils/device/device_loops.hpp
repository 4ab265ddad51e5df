#pragma once
/// Kernels over numbers and over boxes of cells, and where they write cells a second time.

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <array>
#include <cstdint>

#include "framework/halo/array_ref.hpp"

namespace isohalo {

namespace detail {

/// Quotients of numbers below 2^31, where a device would take tens of instructions.
class Divisor {
 public:
  Divisor() : Divisor(1) {}
  /// Below 2^31; 0, where there is nothing to divide, counts as 1.
  explicit Divisor(std::int64_t d) : value_(static_cast<std::uint32_t>(std::max<std::int64_t>(d, 1))) {
    while ((std::int64_t{1} << bits_) < d) ++bits_;
    bits_ += 31;
    factor_ = static_cast<std::uint32_t>(((std::uint64_t{1} << bits_) + value_ - 1) / value_);
  }
  /// n becomes the rest.
  KOKKOS_FUNCTION std::uint32_t take_from(std::uint32_t& n) const {
    const auto quotient = static_cast<std::uint32_t>((std::uint64_t{n} * factor_) >> bits_);
    n -= quotient * value_;
    return quotient;
  }

 private:
  std::uint32_t value_, factor_, bits_ = 0;
};

/// Cells of one thread that follow each other in dimension 0, where `f` forms values before it stores them: what
/// neighboring cells read in common is then loaded once, and the loads of all of them are on their way together.
inline constexpr int kTogether = 4;
/// Tiles of such cells, neighbors in dimension D - 2, that a thread has one after the other. (H200, 7 points on
/// 512^3 in us: 601 with one, 588 with two, 594 with four; along other dimensions 590 and 601 with two.)
inline constexpr std::uint32_t kTilesEach = 2;

/// to[e] = f.values(k + e * step), cells that follow each other along a dimension; or all of them by
/// f.several<along>(k, step, to) if it has that.
template <int along, int N, class F, class Values>
KOKKOS_FUNCTION void form_values(const F& f, std::int64_t k, std::int64_t step, Values (&to)[N]) {
  if constexpr (N > 1 && requires { f.template several<along>(k, step, to); })
    f.template several<along>(k, step, to);
  else
    for (int e = 0; e < N; ++e) to[e] = f.values(k + e * step);
}

/// Blocks of 128 threads at a time on a device's processor, at least: so that each thread has 72 registers, and
/// while some wait for memory others compute. (H200, us on 512^3 with 8, 7, 6 and 4: 7 points with their change
/// 780, 708, 745 and 787. With 8, some kernels begin to compute before all is loaded that four cells of 7 points
/// read: 629 instead of 592.)
inline constexpr unsigned kBlocks = 7;

/// kernel(n), n = 0 .. n-1, which Number holds. Kernels of many numbers, too, get these as arguments: by way of
/// constant memory they would wait for each other. Does not fence.
template <class Space, class Number = std::int64_t, class Kernel>
void for_each_number_in(const char* label, std::int64_t n, const Kernel& kernel) {
  using Policy = Kokkos::RangePolicy<Space, Kokkos::IndexType<Number>, Kokkos::LaunchBounds<128, kBlocks>>;
  if (n > 0)
    Kokkos::parallel_for(label,
                         Kokkos::Experimental::require(Policy(0, static_cast<Number>(n)),
                                                       Kokkos::Experimental::WorkItemProperty::HintLightWeight),
                         kernel);
}

/// Elements from a cell to the next one of dimension j. By the number by which `f` finds neighbors, where it says
/// that: what cells read in common is then loaded once.
template <class F>
KOKKOS_FUNCTION std::int64_t step_of(const F& f, int j, std::int64_t stride) {
  if constexpr (requires { f.stride(j); })
    return f.stride(j);
  else
    return stride;
}

/// Where a kernel that writes all owned cells writes those near the sides a second time: in ghosts that are the
/// same rank's own cells, of periodic dimensions without other ranks. By default nowhere.
template <int D>
class Images {
 public:
  KOKKOS_FUNCTION Images() {
    for (int j = 0; j < D; ++j) low_[j] = 0, high_[j] = ~std::uint32_t{0}, away_[j] = 0;
  }
  /// The `low` lowest cells of dimension j have an image above the block, the `high` highest ones below it.
  void add(int j, std::int64_t extent, std::int64_t stride, std::int64_t low, std::int64_t high) {
    low_[j] = static_cast<std::uint32_t>(low), high_[j] = static_cast<std::uint32_t>(extent - high);
    away_[j] = extent * stride;
  }
  bool any() const {
    for (int j = 0; j < D; ++j)
      if (away_[j] != 0) return true;
    return false;
  }
  /// Those of the cells from the n-th of dimension j on, whose places count from there.
  Images beyond(int j, std::int64_t n) const {
    Images rest = *this;
    const auto cells = static_cast<std::uint32_t>(n);
    rest.low_[j] -= std::min(cells, low_[j]), rest.high_[j] -= std::min(cells, high_[j]);
    return rest;
  }

  /// Which of N cells have an image, in one number. The first has this place among the owned ones, the others
  /// follow it along dimension `along`.
  template <int along, int N>
  KOKKOS_FUNCTION std::uint32_t marks(const std::uint32_t (&place)[D]) const {
    std::uint32_t marks = 0;
    for (int j = 0; j < D; ++j)
      if (j != along) marks |= mark(place[j], j) << 2 * j;
    for (int e = 0; e < N; ++e) marks |= mark(place[along] + static_cast<std::uint32_t>(e), along) << 2 * (D + e);
    return marks;
  }
  /// f.store(.., values[e]) for all images of these cells; the first lies k elements behind the first owned one,
  /// the others `step` elements from each other.
  template <int along, int N, class F, class Values>
  KOKKOS_FUNCTION void store(const F& f, std::int64_t k, std::int64_t step, std::uint32_t marks,
                             const Values (&values)[N]) const {
    if (marks == 0) return;
    unsigned there = 0;  // the dimensions in which an image of all of them lies elsewhere
    for (int j = 0; j < D; ++j)
      if (j != along && (marks >> 2 * j & 3) != 0) there |= 1u << j;
    const bool of_single = marks >> 2 * D != 0;
#if defined(__CUDA_ARCH__)
#pragma unroll 1  // so that few instructions lie behind those that all cells take
#endif
    for (unsigned moves = there; moves != 0 || of_single; moves = (moves - 1) & there) {
      std::int64_t at = k;
      for (int j = 0; j < D; ++j)
        if (moves >> j & 1) at += moved(marks >> 2 * j, j);
      if (moves != 0)
        for (int e = 0; e < N; ++e) f.store(at + e * step, values[e]);
      if (of_single)
        for (int e = 0; e < N; ++e) {
          const std::int64_t further = moved(marks >> 2 * (D + e), along);
          if (further != 0) f.store(at + e * step + further, values[e]);
        }
      if (moves == 0) return;
    }
  }

 private:
  KOKKOS_FUNCTION std::uint32_t mark(std::uint32_t i, int j) const {
    return i < low_[j] ? 1 : i >= high_[j] ? 2 : 0;
  }
  KOKKOS_FUNCTION std::int64_t moved(std::uint32_t mark, int j) const {
    return (mark & 1) != 0 ? away_[j] : (mark & 2) != 0 ? -away_[j] : 0;
  }

  std::uint32_t low_[D], high_[D];
  std::int64_t away_[D];
};

/// Calls f(k) for the cells of a box, k elements behind the first owned cell; where f.values(k) gives what
/// f.store(k, values) stores, for several layers of dimension 0 at once. Threads that run together have neighboring
/// cells: 32 of a row in each of 4 rows, so that what these read in common stays in the first-level cache. (On an
/// H200 a heat step in 3-D takes 0.6 ms so where an MDRangePolicy of Kokkos 4.6 takes 1.2 to 1.7 ms.)
template <int D, class F>
struct BoxKernel {
  F f;
  std::int64_t first;
  std::int64_t stride[D];   ///< the fastest dimension's first, as all here
  std::uint32_t extent[D];  ///< of dimension 0: layers that are computed together
  Divisor tiles[D];         ///< of threads
  std::int64_t layers;      ///< of dimension 0
  int together;             ///< 1 or kTogether
  Images<D> images;

  static constexpr std::uint32_t kWidth = D > 1 ? 32 : 128, kHeight = 128 / kWidth, kThreads = kWidth * kHeight;
  static constexpr bool kStores = requires(const F& g) { g.store(std::int64_t{}, g.values(std::int64_t{})); };
  static constexpr bool kSeveral = kStores && D > 1;

  KOKKOS_FUNCTION void operator()(const std::uint32_t n) const {
    const std::uint32_t each = tiles_each(), first_tile = n / kThreads * each;
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (std::uint32_t t = 0; t < each; ++t) cells((first_tile + t) * kThreads + n % kThreads);
  }
  /// What a block of threads has along dimension D - 1 - j, in the units of `extent`.
  KOKKOS_FUNCTION std::uint32_t tile_of(int j) const {
    return j == 0 ? kWidth : j == 1 ? kHeight * tiles_each() : 1;
  }

 private:
  /// Tiles that a thread has one after the other.
  KOKKOS_FUNCTION std::uint32_t tiles_each() const {
    return together == 1 ? 1 : kTilesEach;
  }
  /// The first cell of thread n of all tiles, and its place in the box; false: it has none.
  KOKKOS_FUNCTION bool find(std::uint32_t n, std::int64_t& k, std::uint32_t (&place)[D]) const {
    std::uint32_t left = n / kWidth, i[D];
    i[0] = n % kWidth;
    if (D > 1) {
      i[D > 1] = left % kHeight;
      left /= kHeight;
      if (together > 1) {
        i[D > 1] += left % kTilesEach * kHeight;
        left /= kTilesEach;
      }
    }
    for (int j = 0; j < D; ++j) {
      std::uint32_t tile = left;
      if (j + 1 < D) left = tiles[j].take_from(tile);
      i[j] = j < 2 ? i[j] + tile * tile_of(j) : tile;
    }
    if (i[0] >= extent[0] || i[D > 1] >= extent[D > 1]) return false;
    k = first;
    for (int j = 0; j + 1 < D; ++j) k += i[j] * stride[j];
    const std::int64_t at = std::int64_t{i[D - 1]} * together;
    k += at * step_of(f, 0, stride[D - 1]);
    for (int j = 0; j < D; ++j) place[j] = j == 0 ? static_cast<std::uint32_t>(at) : i[D - 1 - j];
    return true;
  }
  KOKKOS_FUNCTION void cells(std::uint32_t n) const {
    std::int64_t k;
    std::uint32_t place[D];
    if (!find(n, k, place)) return;
    const std::int64_t layer = step_of(f, 0, stride[D - 1]);
    if constexpr (kSeveral) {
      if (together == kTogether && place[0] + kTogether <= layers) return write<kTogether>(k, layer, place);
      const std::uint32_t end = place[0] + static_cast<std::uint32_t>(together);
      for (; place[0] < end && place[0] < layers; ++place[0], k += layer) write<1>(k, layer, place);
    } else if constexpr (kStores) {
      write<1>(k, layer, place);
    } else {
      f(k);
    }
  }
  template <int N>
  KOKKOS_FUNCTION void write(std::int64_t k, std::int64_t layer, const std::uint32_t (&place)[D]) const {
    const std::uint32_t marks = images.template marks<0, N>(place);
    typename F::Values values[N];
    form_values<0>(f, k, layer, values);
    for (int e = 0; e < N; ++e) f.store(k + e * layer, values[e]);
    images.template store<0>(f, k, layer, marks, values);
  }
};

}  // namespace detail

/// f(k) for the cells of a box of an array like `like`, k elements behind its first owned cell, or f.store(k,
/// f.values(k)), with images where the box is that of all owned cells; f is copied to where Space computes. Does
/// not fence.
template <class Space, class T, int D, class F>
void for_each_cell_in(const char* label, const Box<D>& box, const ArrayRef<T, D>& like, const F& f,
                      const detail::Images<D>& images = {}) {
  if (box.empty()) return;
  using Kernel = detail::BoxKernel<D, F>;
  constexpr std::int64_t enough = 1 << 18;  // threads, to keep a device busy
  Kernel kernel{f, offset_of<D>(box.low, like.owned.low, like.stride), {}, {}, {}, box.extent(0), 1, images};
  if (Kernel::kSeveral && box.cells() >= enough * detail::kTogether) kernel.together = detail::kTogether;
  std::array<std::int64_t, static_cast<std::size_t>(D)> extent;
  double threads = Kernel::kThreads;  // those without a cell included
  const auto tiles = [&](int j) {
    return (extent[static_cast<std::size_t>(j)] + kernel.tile_of(j) - 1) / kernel.tile_of(j);
  };
  for (int j = 0; j < D; ++j) {
    const int of = D - 1 - j;
    extent[static_cast<std::size_t>(j)] =
        of > 0 ? box.extent(of) : (box.extent(0) + kernel.together - 1) / kernel.together;
    threads *= static_cast<double>(tiles(j));
  }
  if (threads >= 2147483648.0) {  // more than such an index counts
    int longest = 0;
    for (int j = 1; j < D; ++j)
      if (box.extent(j) > box.extent(longest)) longest = j;
    Box<D> lower = box, upper = box;
    lower.high[longest] = upper.low[longest] = box.low[longest] + box.extent(longest) / 2;
    for_each_cell_in<Space>(label, lower, like, f, images);
    return for_each_cell_in<Space>(label, upper, like, f, images.beyond(longest, lower.extent(longest)));
  }
  for (int j = 0; j < D; ++j) {
    kernel.stride[j] = like.stride[D - 1 - j];
    kernel.extent[j] = static_cast<std::uint32_t>(extent[static_cast<std::size_t>(j)]);
    kernel.tiles[j] = detail::Divisor(tiles(j));
  }
  detail::for_each_number_in<Space, std::uint32_t>(label, static_cast<std::int64_t>(threads), kernel);
}

}  // namespace isohalo
