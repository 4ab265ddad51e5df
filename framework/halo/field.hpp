#pragma once
/// A field: one block of cells with ghosts, in memory of its own.

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

#include "framework/halo/array_ref.hpp"
#include "framework/halo/exchange.hpp"
#include "framework/halo/grid_array.hpp"
#include "framework/halo/host_threads.hpp"
#include "framework/mpi/communicator.hpp"
#include "framework/shm/shared_memory.hpp"

namespace isohalo {

namespace detail {

/// Whether the same request is heard for anonymous files, such as SharedMemory: where it is not ("never", most
/// systems' default), large arrays in them are slower to sweep. Local.
inline bool shared_memory_has_huge_pages() {
  static const bool has = [] {
    std::ifstream in("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    std::string line;
    return std::getline(in, line) && line.find("[never]") == std::string::npos &&
           line.find("[deny]") == std::string::npos;
  }();
  return has;
}

}  // namespace detail

enum class FieldMemory {
  own,  ///< this process's
  /// Other ranks of the compute node may map it: the exchange `shared` then copies rows once instead of twice.
  shared,
};

/// What suits fields that `exchange` serves: shared memory when somebody is there to use it, and when the system
/// backs it with large pages as it does private memory. Sweeps need these: with small ones a step of a 7-point
/// stencil on 256^3 cells took 1.2 times as long, far more than an exchange saves.
inline FieldMemory field_memory(Exchange exchange, const Communicator& comm) {
  const bool may = exchange.fill == HaloFill::automatic || exchange.fill == HaloFill::shared;
  return may && comm.ranks_on_node() > 1 && detail::shared_memory_has_huge_pages() ? FieldMemory::shared
                                                                                   : FieldMemory::own;
}

/// Owns host memory for `owned` and its ghost layers in a Kokkos view (Kokkos must be initialised), zeroed by the
/// threads that sweep them: systems give each thread memory near it for what it writes first. The first owned cell
/// of each row begins a cache line, without which every vector straddles two (docs/performance.md). Move-only,
/// local. For memory of your own see `adopt`, which needs no Field and no Kokkos.
template <class T, int D>
class Field {
 public:
  Field(const std::string& name, const Box<D>& owned, const Index<D>& ghost_low, const Index<D>& ghost_high,
        FieldMemory memory = FieldMemory::own) {
    const auto layout = detail::RowLayout::of<T, D>(owned, ghost_low, ghost_high);
    const auto n = static_cast<std::size_t>(layout.elements);
    if (memory == FieldMemory::shared) {
      shared_ = SharedMemory(n * sizeof(T));
      memory_ = Kokkos::View<T*, Kokkos::HostSpace>(reinterpret_cast<T*>(shared_.data()), n);
    } else {
      memory_ = Kokkos::View<T*, Kokkos::HostSpace>(Kokkos::view_alloc(name, Kokkos::WithoutInitializing), n);
    }
    detail::prefer_huge_pages(memory_.data(), memory_.size() * sizeof(T));  // before the first touch
    zero();
    ref_ = detail::c_order(memory_.data() + layout.lead, owned, ghost_low, ghost_high, layout.padding);
  }
  Field(Field&&) noexcept = default;
  Field& operator=(Field&&) noexcept = default;
  Field(const Field&) = delete;
  Field& operator=(const Field&) = delete;

  const ArrayRef<T, D>& ref() const { return ref_; }
  ErasedArray<D> erased() const { return erase(ref_); }
  T& at(const Index<D>& i) const { return ref_.at(i); }
  const Box<D>& owned() const { return ref_.owned; }

  /// Bytes that a field of these extents would take, without making it.
  static double bytes_needed(const Index<D>& extents, const Index<D>& ghost_low, const Index<D>& ghost_high) {
    const std::int64_t pitch =
        detail::RowLayout::pitch_of<T, D>(extents[D - 1], ghost_low[D - 1], ghost_high[D - 1]);
    double n = static_cast<double>(sizeof(T)) * static_cast<double>(pitch);
    for (int j = 0; j < D - 1; ++j) n *= static_cast<double>(extents[j] + ghost_low[j] + ghost_high[j]);
    return n;
  }

  friend void swap(Field& a, Field& b) noexcept { std::swap(a, b); }

 private:
  /// In as many pieces as there are threads, in the order of memory, as sweeps cut a block.
  void zero() {
    T* const cells = memory_.data();
    const auto n = static_cast<std::int64_t>(memory_.size());
    const std::int64_t parts = host_threads();
    for_each_piece("isohalo::zero", parts,
                   [=](std::int64_t k) { std::fill(cells + n * k / parts, cells + n * (k + 1) / parts, T{}); });
  }

  SharedMemory shared_;                         ///< where `memory_` lies, unless Kokkos owns it
  Kokkos::View<T*, Kokkos::HostSpace> memory_;  ///< owned cells and ghosts
  ArrayRef<T, D> ref_;
};

}  // namespace isohalo
