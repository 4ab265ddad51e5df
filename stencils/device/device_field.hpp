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

/// One block with ghosts in the memory of Space, zeroed. Moves; local.
template <class T, int D, class Space>
class DeviceField {
 public:
  using View = BlockView<T, D, typename Space::memory_space>;

  DeviceField(const std::string& name, const Box<D>& owned, const Index<D>& ghost_low, const Index<D>& ghost_high);

  /// Its cells lie in the memory of Space: the host must not read them.
  const ArrayRef<T, D>& ref() const { return ref_; }
  const ErasedArray<D>& erased() const { return erased_; }
  const View& view() const { return view_; }

 private:
  View view_;
  ErasedArray<D> erased_;
  ArrayRef<T, D> ref_;
};

// Compiled once, in device_stepper.cpp, as are the transports of its exchanges that come with it.
template <class T, int D, class Space>
DeviceField<T, D, Space>::DeviceField(const std::string& name, const Box<D>& owned, const Index<D>& ghost_low,
                                      const Index<D>& ghost_high)
    : view_(block_view<D, View>(name, owned.grown(ghost_low, ghost_high).extents())),
      // Kernels pack even where the host could, so that there is one way to test.
      erased_(view_ref(view_, owned, ghost_low, ghost_high, ViewCopies::kernels)),
      ref_{reinterpret_cast<T*>(erased_.data), owned, ghost_low, ghost_high, erased_.stride} {}

#define ISOHALO_DECLARE(D)                                   \
  extern template class DeviceField<double, D, DeviceSpace>; \
  extern template class DeviceField<float, D, DeviceSpace>;
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_DECLARE)
#undef ISOHALO_DECLARE

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

/// A list in the memory of Space. Fences.
template <class Space, class T>
Kokkos::View<T*, typename Space::memory_space> in_space(const std::string& name, const std::vector<T>& list) {
  Kokkos::View<T*, typename Space::memory_space> view(Kokkos::view_alloc(name, Kokkos::WithoutInitializing),
                                                      list.size());
  Kokkos::deep_copy(view, Kokkos::View<const T*, Kokkos::HostSpace>(list.data(), list.size()));
  return view;
}

namespace detail {

/// Cells of one thread that follow each other in dimension 0, where `f` forms values before it stores them: what
/// neighboring cells read in common is then loaded once, and the loads of all of them are on their way together.
inline constexpr int kTogether = 4;

/// Calls f(k) for the cells of a box, x being the coordinate of the fastest dimension: k elements behind the first
/// owned cell. Where f.values(k) gives what f.store(k, values) stores, for `together` layers of dimension 0 at
/// once, whose indices are then multiples of that.
template <int D, class F>
struct BoxKernel {
  F f;
  std::int64_t first;
  std::int64_t stride[D];  ///< the fastest dimension's first
  std::int64_t layers;     ///< of dimension 0
  int together;            ///< 1 or kTogether

  static constexpr bool kStores = D > 1 && requires(const F& g) { g.store(std::int64_t{}, g.values(std::int64_t{})); };

  template <class... More>
  KOKKOS_FUNCTION void operator()(const std::int64_t x, const More... more) const {
    std::int64_t k = first + x, last = 0;
    int j = 0;
    ((k += static_cast<std::int64_t>(more) * stride[++j], last = more), ...);
    if constexpr (kStores) {
      const std::int64_t layer = stride[D - 1];
      k += last * (together - 1) * layer;
      const std::int64_t left = layers - last * together, n = left < together ? left : together;
      if (n == kTogether) {
        typename F::Values values[kTogether];
        for (int e = 0; e < kTogether; ++e) values[e] = f.values(k + e * layer);
        for (int e = 0; e < kTogether; ++e) f.store(k + e * layer, values[e]);
      } else {
        for (std::int64_t e = 0; e < n; ++e) f.store(k + e * layer, f.values(k + e * layer));
      }
    } else {
      f(k);
    }
  }
};

/// Threads of a device that run together: rows of cells, a few side by side, so that what they read in common stays
/// in the first-level cache.
template <int D>
constexpr auto device_tile() {
  std::array<std::int64_t, D> tile;
  tile.fill(1);
  tile[0] = 64;
  if (D > 1) tile[1] = 4;
  return tile;
}

}  // namespace detail

/// f(k) for the cells of a box of an array like `like`, k elements behind its first owned cell, or f.store(k,
/// f.values(k)); f is copied to where Space computes. Does not fence.
template <class Space, class T, int D, class F>
void for_each_cell_in(const char* label, const Box<D>& box, const ArrayRef<T, D>& like, const F& f) {
  if (box.empty()) return;
  using Kernel = detail::BoxKernel<D, F>;
  Kernel kernel{f, offset_of<D>(box.low, like.owned.low, like.stride), {}, box.extent(0), 1};
  for (int j = 0; j < D; ++j) kernel.stride[j] = like.stride[D - 1 - j];
  using Count = Kokkos::IndexType<std::int64_t>;
  if constexpr (D == 1) {
    Kokkos::parallel_for(label, Kokkos::RangePolicy<Space, Count>(0, box.extent(0)), kernel);
  } else {
    // Threads that run together differ in the first index: neighbors in memory.
    constexpr auto first = Kokkos::Iterate::Left;
    using Policy = Kokkos::MDRangePolicy<Space, Kokkos::Rank<D, first, first>, Count>;
    typename Policy::point_type low{}, high{};
    for (int j = 0; j < D; ++j) high[j] = box.extent(D - 1 - j);
    constexpr std::int64_t enough = 1 << 18;  // threads, to keep a device busy
    if (Kernel::kStores && box.cells() >= enough * detail::kTogether) {
      kernel.together = detail::kTogether;
      high[D - 1] = (high[D - 1] + kernel.together - 1) / kernel.together;
    }
    if constexpr (Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename Space::memory_space>::accessible) {
      Kokkos::parallel_for(label, Policy(low, high), kernel);
    } else {
      typename Policy::tile_type tile{};
      for (int j = 0; j < D; ++j) tile[j] = detail::device_tile<D>()[static_cast<std::size_t>(j)];
      Kokkos::parallel_for(label, Policy(low, high, tile), kernel);
    }
  }
}

}  // namespace isohalo
