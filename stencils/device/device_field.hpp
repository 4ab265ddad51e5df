#pragma once
/// Fields in the memory of a Kokkos execution space.

#include <Kokkos_Core.hpp>
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

/// `place`: the name of memory to be taken, or where there is some.
template <int D, class View, class Place>
View block_view(const Place& place, const Index<D>& extents) {
  return [&]<std::size_t... J>(std::index_sequence<J...>) {
    return View(place, static_cast<std::size_t>(extents[J])...);
  }
  (std::make_index_sequence<static_cast<std::size_t>(D)>());
}

/// One block with ghosts in the memory of Space, zeroed. Long rows begin with owned cells at multiples of 128
/// bytes, what a device reads at a time, and hold as many ghosts as whole sectors of 32 bytes have; what comes
/// before and behind counts as ghosts. Moves; local.
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

  /// Cells that are written together.
  static constexpr std::int64_t kSector = 32 / static_cast<std::int64_t>(sizeof(T));

 private:
  static constexpr std::int64_t kLine = 128 / static_cast<std::int64_t>(sizeof(T)), kLongRow = 8 * kLine;
  static std::int64_t rounded_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }
  struct Ghosts {
    Index<D> low, high;
    std::int64_t behind = 0;  ///< elements from a multiple of 128 bytes to the first one
  };
  static Ghosts padded(const Box<D>& owned, const Index<D>& low, const Index<D>& high) {
    Ghosts g{low, high};
    const std::int64_t row = owned.extent(D - 1);
    if (row < kLongRow) return g;
    g.behind = rounded_up(high[D - 1], kSector);
    g.low[D - 1] = rounded_up(low[D - 1] + g.behind, kLine) - g.behind;
    g.high[D - 1] = g.behind + rounded_up(row, kLine) - row;
    return g;
  }
  DeviceField(const std::string& name, const Box<D>& owned, const Ghosts& ghosts);

  Kokkos::View<T*, typename Space::memory_space> memory_;
  std::int64_t behind_;
  View view_;
  ErasedArray<D> erased_;
  ArrayRef<T, D> ref_;
};

// Compiled once, in device_stepper.cpp, as are the transports of its exchanges that come with it.
template <class T, int D, class Space>
DeviceField<T, D, Space>::DeviceField(const std::string& name, const Box<D>& owned, const Index<D>& ghost_low,
                                      const Index<D>& ghost_high)
    : DeviceField(name, owned, padded(owned, ghost_low, ghost_high)) {}

template <class T, int D, class Space>
DeviceField<T, D, Space>::DeviceField(const std::string& name, const Box<D>& owned, const DeviceField& like)
    : DeviceField(name, owned, [&] {
        Ghosts g{like.ref_.ghost_low, like.ref_.ghost_high, like.behind_};
        for (int j = 0; j < D; ++j) g.high[j] += like.ref_.owned.high[j] - owned.high[j];
        return g;
      }()) {}

template <class T, int D, class Space>
DeviceField<T, D, Space>::DeviceField(const std::string& name, const Box<D>& owned, const Ghosts& ghosts)
    : memory_(name, static_cast<std::size_t>(owned.grown(ghosts.low, ghosts.high).cells() + ghosts.behind)),
      behind_(ghosts.behind),
      view_(block_view<D, View>(memory_.data() + behind_, owned.grown(ghosts.low, ghosts.high).extents())),
      // Kernels pack even where the host could, so that there is one way to test.
      erased_(view_ref(view_, owned, ghosts.low, ghosts.high, ViewCopies::kernels)),
      ref_{reinterpret_cast<T*>(erased_.data), owned, ghosts.low, ghosts.high, erased_.stride} {}

#define ISOHALO_DECLARE(T, D) extern template class DeviceField<T, D, DeviceSpace>;
ISOHALO_FOR_EACH_FIELD(ISOHALO_DECLARE)
#undef ISOHALO_DECLARE

/// The same block in the host's memory.
template <class T, int D>
class HostCopy {
 public:
  template <class Space>
  explicit HostCopy(const DeviceField<T, D, Space>& of)
      : view_(block_view<D, View>(std::string("isohalo::host_copy"), of.ref().allocated().extents())),
        ref_(of.ref()) {
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
  /// What `values`, a CoefficientInTime, are at this time in these cells, here and in `to`. Fences.
  template <class Values, class Space>
  void give(const Values& values, const std::vector<Box<D>>& cells, double time,
            const DeviceField<T, D, Space>& to) const {
    for (const Box<D>& box : cells) values.give(ref_, box, time);
    take_to(to);
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

}  // namespace isohalo
