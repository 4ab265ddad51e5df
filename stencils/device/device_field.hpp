#pragma once
/// Fields in the memory of a Kokkos execution space, and kernels over boxes of their cells.

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework/halo/view_ref.hpp"

namespace isohalo {

/// Where "device" fields lie and are computed: Kokkos' default execution space, the host's where Kokkos was built
/// without a device.
using DeviceSpace = Kokkos::DefaultExecutionSpace;

namespace detail {

template <class T, int D>
struct PointerOf {
  using Type = typename PointerOf<T, D - 1>::Type*;
};
template <class T>
struct PointerOf<T, 0> {
  using Type = T;
};

}  // namespace detail

/// A dense C-order view of rank D.
template <class T, int D, class Memory>
using BlockView = Kokkos::View<typename detail::PointerOf<T, D>::Type, Kokkos::LayoutRight, Memory>;

template <int D, class View>
View block_view(const std::string& name, const Index<D>& extents) {
  return [&]<std::size_t... J>(std::index_sequence<J...>) {
    return View(name, static_cast<std::size_t>(extents[J])...);
  }
  (std::make_index_sequence<static_cast<std::size_t>(D)>());
}

/// One block with ghosts in the memory of Space, zeroed. Long rows begin with owned cells at multiples of 128
/// bytes, what a device reads at a time; what comes before and behind counts as ghosts. Moves; local.
template <class T, int D, class Space>
class DeviceField {
 public:
  using View = BlockView<T, D, typename Space::memory_space>;

  DeviceField(const std::string& name, const Box<D>& owned, const Index<D>& ghost_low, const Index<D>& ghost_high);
  /// One that owns other cells, with the lowest indices and the strides of `like`: all that it does not own there
  /// counts as ghosts.
  DeviceField(const std::string& name, const Box<D>& owned, const DeviceField& like);

  /// Its cells lie in the memory of Space: the host must not read them.
  const ArrayRef<T, D>& ref() const { return ref_; }
  const ErasedArray<D>& erased() const { return erased_; }
  const View& view() const { return view_; }

 private:
  static constexpr std::int64_t kLine = 128 / static_cast<std::int64_t>(sizeof(T)), kLongRow = 8 * kLine;
  static Index<D> padded_low(const Box<D>& owned, Index<D> ghosts) {
    if (owned.extent(D - 1) >= kLongRow) ghosts[D - 1] = (ghosts[D - 1] + kLine - 1) / kLine * kLine;
    return ghosts;
  }
  static Index<D> padded_high(const Box<D>& owned, Index<D> ghosts) {
    const std::int64_t row = owned.extent(D - 1) + ghosts[D - 1];
    if (owned.extent(D - 1) >= kLongRow) ghosts[D - 1] += (row + kLine - 1) / kLine * kLine - row;
    return ghosts;
  }
  struct Padded {};
  /// Of ghosts that are padded.
  DeviceField(Padded, const std::string& name, const Box<D>& owned, const Index<D>& ghost_low,
              const Index<D>& ghost_high);

  View view_;
  ErasedArray<D> erased_;
  ArrayRef<T, D> ref_;
};

// Compiled once, in device_stepper.cpp, as are the transports of its exchanges that come with it.
template <class T, int D, class Space>
DeviceField<T, D, Space>::DeviceField(const std::string& name, const Box<D>& owned, const Index<D>& ghost_low,
                                      const Index<D>& ghost_high)
    : DeviceField(Padded{}, name, owned, padded_low(owned, ghost_low), padded_high(owned, ghost_high)) {}

template <class T, int D, class Space>
DeviceField<T, D, Space>::DeviceField(const std::string& name, const Box<D>& owned, const DeviceField& like)
    : DeviceField(Padded{}, name, owned, like.ref_.ghost_low, [&] {
        Index<D> high = like.ref_.ghost_high;
        for (int j = 0; j < D; ++j) high[j] += like.ref_.owned.high[j] - owned.high[j];
        return high;
      }()) {}

template <class T, int D, class Space>
DeviceField<T, D, Space>::DeviceField(Padded, const std::string& name, const Box<D>& owned,
                                      const Index<D>& ghost_low, const Index<D>& ghost_high)
    : view_(block_view<D, View>(name, owned.grown(ghost_low, ghost_high).extents())),
      // Kernels pack even where the host could, so that there is one way to test.
      erased_(view_ref(view_, owned, ghost_low, ghost_high, ViewCopies::kernels)),
      ref_{reinterpret_cast<T*>(erased_.data), owned, ghost_low, ghost_high, erased_.stride} {}

#define ISOHALO_DECLARE(D)                                   \
  extern template class DeviceField<double, D, DeviceSpace>; \
  extern template class DeviceField<float, D, DeviceSpace>;
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_DECLARE)
#undef ISOHALO_DECLARE
extern template class DeviceField<std::uint8_t, 2, DeviceSpace>;

/// The same block in the host's memory.
template <class T, int D>
class HostCopy {
 public:
  template <class Space>
  explicit HostCopy(const DeviceField<T, D, Space>& of)
      : view_(block_view<D, View>("isohalo::host_copy", of.ref().allocated().extents())), ref_(of.ref()) {
    ref_.data = view_.data() + offset_of<D>(ref_.owned.low, ref_.allocated().low, ref_.stride);
  }
  const ArrayRef<T, D>& ref() const { return ref_; }

  /// Ghosts and all. Both fence.
  template <class Space>
  void bring_from(const DeviceField<T, D, Space>& u) const {
    Kokkos::deep_copy(view_, u.view());
  }
  template <class Space>
  void take_to(const DeviceField<T, D, Space>& u) const {
    Kokkos::deep_copy(u.view(), view_);
  }

 private:
  using View = BlockView<T, D, Kokkos::HostSpace>;
  View view_;
  ArrayRef<T, D> ref_;
};

/// Makes `view` a list in the memory of Space; it takes memory only for another number of elements. Fences.
template <class Space, class T>
void copy_to_space(const char* name, const std::vector<T>& list,
                   Kokkos::View<T*, typename Space::memory_space>& view) {
  using View = Kokkos::View<T*, typename Space::memory_space>;
  if (view.extent(0) != list.size())
    view = View(Kokkos::view_alloc(std::string(name), Kokkos::WithoutInitializing), list.size());
  Kokkos::deep_copy(view, Kokkos::View<const T*, Kokkos::HostSpace>(list.data(), list.size()));
}
template <class Space, class T>
Kokkos::View<T*, typename Space::memory_space> in_space(const char* name, const std::vector<T>& list) {
  Kokkos::View<T*, typename Space::memory_space> view;
  copy_to_space<Space>(name, list, view);
  return view;
}

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

/// to[e] = f.values(k + e * step), or all of them by f.several(k, step, to) if it has that.
template <int N, class F, class Values>
KOKKOS_FUNCTION void form_values(const F& f, std::int64_t k, std::int64_t step, Values (&to)[N]) {
  if constexpr (N > 1 && requires { f.several(k, step, to); })
    f.several(k, step, to);
  else
    for (int e = 0; e < N; ++e) to[e] = f.values(k + e * step);
}

/// Blocks of 128 threads at a time on a device's processor, at least: so that each thread has 64 registers, and
/// while some wait for memory others compute. (H200, of a copy's speed, with 1 and with 8: 7 points 0.82 and 0.81,
/// a wave 0.68 and 0.80, a list of 27 points 0.24 and 0.41.)
inline constexpr unsigned kBlocks = 8;

/// kernel(n), n = 0 .. n-1. Kernels of many numbers, too, get these as arguments: by way of constant memory they
/// would wait for each other. Does not fence.
template <class Space, class Kernel>
void for_each_number_in(const char* label, std::int64_t n, const Kernel& kernel) {
  using Policy = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>, Kokkos::LaunchBounds<128, kBlocks>>;
  if (n > 0)
    Kokkos::parallel_for(
        label, Kokkos::Experimental::require(Policy(0, n), Kokkos::Experimental::WorkItemProperty::HintLightWeight),
        kernel);
}

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

  static constexpr std::uint32_t kWidth = D > 1 ? 32 : 128, kHeight = 128 / kWidth;
  static constexpr bool kStores = requires(const F& g) { g.store(std::int64_t{}, g.values(std::int64_t{})); };
  static constexpr bool kSeveral = kStores && D > 1;

  KOKKOS_FUNCTION void operator()(const std::int64_t n) const {
    auto left = static_cast<std::uint32_t>(n);
    std::uint32_t i[D];
    i[0] = left % kWidth;
    left /= kWidth;
    if (D > 1) {
      i[D > 1] = left % kHeight;
      left /= kHeight;
    }
    for (int j = 0; j < D; ++j) {
      std::uint32_t tile = left;
      if (j + 1 < D) left = tiles[j].take_from(tile);
      i[j] = j == 0 ? i[0] + tile * kWidth : j == 1 ? i[j] + tile * kHeight : tile;
    }
    if (i[0] >= extent[0] || i[D > 1] >= extent[D > 1]) return;
    std::int64_t k = first;
    for (int j = 0; j + 1 < D; ++j) k += i[j] * stride[j];
    const std::int64_t layer = stride[D - 1], at = std::int64_t{i[D - 1]} * together;
    k += at * layer;
    if constexpr (kSeveral) {
      if (together == kTogether && at + kTogether <= layers) {
        typename F::Values values[kTogether];
        form_values(f, k, layer, values);
        for (int e = 0; e < kTogether; ++e) f.store(k + e * layer, values[e]);
      } else {
        for (std::int64_t e = at; e < at + together && e < layers; ++e, k += layer) f.store(k, f.values(k));
      }
    } else if constexpr (kStores) {
      f.store(k, f.values(k));
    } else {
      f(k);
    }
  }
};

}  // namespace detail

/// f(k) for the cells of a box of an array like `like`, k elements behind its first owned cell, or f.store(k,
/// f.values(k)); f is copied to where Space computes. Does not fence.
template <class Space, class T, int D, class F>
void for_each_cell_in(const char* label, const Box<D>& box, const ArrayRef<T, D>& like, const F& f) {
  if (box.empty()) return;
  using Kernel = detail::BoxKernel<D, F>;
  constexpr std::int64_t enough = 1 << 18;  // threads, to keep a device busy
  Kernel kernel{f, offset_of<D>(box.low, like.owned.low, like.stride), {}, {}, {}, box.extent(0), 1};
  if (Kernel::kSeveral && box.cells() >= enough * detail::kTogether) kernel.together = detail::kTogether;
  std::array<std::int64_t, static_cast<std::size_t>(D)> extent;
  double threads = Kernel::kWidth * Kernel::kHeight;  // those without a cell included
  const auto tiles = [&](int j) {
    const std::int64_t tile = j == 0 ? Kernel::kWidth : j == 1 ? Kernel::kHeight : 1;
    return (extent[static_cast<std::size_t>(j)] + tile - 1) / tile;
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
    for_each_cell_in<Space>(label, lower, like, f);
    return for_each_cell_in<Space>(label, upper, like, f);
  }
  for (int j = 0; j < D; ++j) {
    kernel.stride[j] = like.stride[D - 1 - j];
    kernel.extent[j] = static_cast<std::uint32_t>(extent[static_cast<std::size_t>(j)]);
    kernel.tiles[j] = detail::Divisor(tiles(j));
  }
  detail::for_each_number_in<Space>(label, static_cast<std::int64_t>(threads), kernel);
}

}  // namespace isohalo
