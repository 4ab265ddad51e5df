#pragma once
/// Kokkos views as arrays of a halo exchange. Header only; needs Kokkos, and is not part of isohalo::halo.

#include <string>
#include <type_traits>

#include "datatypes/error.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/halo/kernel_transport.hpp"

namespace isohalo {

/// Who copies the cells of a view to and from messages.
enum class ViewCopies {
  automatic,  ///< the host where it can reach the view's memory, by every transport; otherwise kernels
  kernels,    ///< kernels of the view's execution space
};

/// Describes a view of rank 1 to 4, of any layout and in any memory space, that holds `owned` and these ghost
/// layers; index 0 of the view is the lowest ghost. Local, no copy; the view must outlive its exchanges. Throws
/// UsageError when it has other extents.
///
/// Kernels pack all arrays of an exchange into one message per peer, so of the ways to exchange there are the
/// packed ones, and others mean these; work that has been given to the view's execution space before a start is
/// done first, and `finish` fences.
template <class View>
ErasedArray<static_cast<int>(View::rank)> view_ref(const View& view, const Box<static_cast<int>(View::rank)>& owned,
                                                   const Index<static_cast<int>(View::rank)>& ghost_low,
                                                   const Index<static_cast<int>(View::rank)>& ghost_high,
                                                   ViewCopies copies = ViewCopies::automatic) {
  using Element = typename View::non_const_value_type;
  using Space = typename View::execution_space;
  constexpr int D = static_cast<int>(View::rank);
  static_assert(std::is_trivially_copyable_v<Element>, ISOHALO_TRIVIALLY_COPYABLE);
  constexpr bool host_reaches =
      Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename View::memory_space>::accessible;
  const Box<D> all = owned.grown(ghost_low, ghost_high);
  ErasedArray<D> a;
  a.bytes = a.pitch = static_cast<std::int64_t>(sizeof(Element));
  a.element = &value_type<Element>;
  a.owned = owned;
  a.ghost_low = ghost_low;
  a.ghost_high = ghost_high;
  std::int64_t first = 0;
  for (int j = 0; j < D; ++j) {
    const auto extent = static_cast<std::int64_t>(view.extent(static_cast<std::size_t>(j)));
    if (extent != all.extent(j))
      throw UsageError("view_ref: the view has " + std::to_string(extent) + " cells in dimension " +
                       std::to_string(j) + ", block and ghosts have " + std::to_string(all.extent(j)));
    a.stride[j] = static_cast<std::int64_t>(view.stride(static_cast<std::size_t>(j)));
    first += ghost_low[j] * a.stride[j];
  }
  if (view.data()) a.data = reinterpret_cast<std::byte*>(view.data() + first);
  if (copies == ViewCopies::kernels || !host_reaches) a.kernels = &detail::kKernelCopies<D, Space>;
  return a;
}

}  // namespace isohalo
