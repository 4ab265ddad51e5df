#pragma once
/// A field: one block of cells with ghosts, in memory of its own.

#include <Kokkos_Core.hpp>
#include <string>

#include "framework/halo/array_ref.hpp"
#include "framework/halo/exchange.hpp"
#include "framework/halo/huge_pages.hpp"
#include "framework/mpi/communicator.hpp"
#include "framework/shm/shared_memory.hpp"

namespace isohalo {

enum class FieldMemory {
  own,     ///< this process's
  shared,  ///< other ranks of the node may map it: the exchange `shared` then copies rows once instead of twice
};

/// What suits fields that `exchange` serves: shared memory when somebody is there to use it, and when the system
/// backs it with large pages as it does private memory. Sweeps need these: with small ones a step of a 7-point
/// stencil on 256^3 cells took 1.2 times as long, far more than an exchange saves.
inline FieldMemory field_memory(Exchange exchange, const Communicator& comm) {
  const bool may = exchange == Exchange::automatic || exchange == Exchange::shared;
  return may && comm.ranks_on_node() > 1 && shared_memory_has_huge_pages() ? FieldMemory::shared : FieldMemory::own;
}

/// Owns host memory for `owned` and its ghost layers in a Kokkos view (Kokkos must be initialised), zeroed.
/// Move-only, local. Rows lie back to back: rows padded to whole cache lines, all aligned alike, made sweeps 5 to
/// 15 % slower. For memory of your own see `adopt`, which needs no Field and no Kokkos.
template <class T, int D>
class Field {
 public:
  Field(const std::string& name, const Box<D>& owned, const Index<D>& ghost_low, const Index<D>& ghost_high,
        FieldMemory memory = FieldMemory::own) {
    ref_.owned = owned;
    ref_.ghost_low = ghost_low;
    ref_.ghost_high = ghost_high;
    std::int64_t stride = ghost_low[D - 1] + owned.extent(D - 1) + ghost_high[D - 1];
    if (D > 1 && stride * static_cast<std::int64_t>(sizeof(T)) % 4096 == 0)
      stride += 8;  // keep rows off one cache set
    ref_.stride[D - 1] = 1;
    std::int64_t origin = ghost_low[D - 1];
    for (int j = D - 2; j >= 0; --j) {
      ref_.stride[j] = stride;
      origin += ghost_low[j] * stride;
      stride *= owned.extent(j) + ghost_low[j] + ghost_high[j];
    }
    elements_ = stride;
    const auto n = static_cast<std::size_t>(elements_);
    if (memory == FieldMemory::shared) {
      shared_ = SharedMemory(n * sizeof(T));
      memory_ = Kokkos::View<T*, Kokkos::HostSpace>(reinterpret_cast<T*>(shared_.data()), n);
    } else {
      memory_ = Kokkos::View<T*, Kokkos::HostSpace>(Kokkos::view_alloc(name, Kokkos::WithoutInitializing), n);
    }
    prefer_huge_pages(memory_.data(), memory_.size() * sizeof(T));  // before the first touch
    Kokkos::deep_copy(memory_, T{});
    ref_.data = memory_.data() + origin;
  }
  Field(Field&&) noexcept = default;
  Field& operator=(Field&&) noexcept = default;
  Field(const Field&) = delete;
  Field& operator=(const Field&) = delete;

  const ArrayRef<T, D>& ref() const { return ref_; }
  T& at(const Index<D>& i) const { return ref_.at(i); }
  const Box<D>& owned() const { return ref_.owned; }

  /// Bytes that a field of these extents would take, without making it.
  static double bytes_needed(const Index<D>& extents, const Index<D>& ghost_low, const Index<D>& ghost_high) {
    double n = sizeof(T);
    for (int j = 0; j < D; ++j) n *= static_cast<double>(extents[j] + ghost_low[j] + ghost_high[j]);
    return n;
  }

  friend void swap(Field& a, Field& b) noexcept {
    std::swap(a.shared_, b.shared_);
    std::swap(a.memory_, b.memory_);
    std::swap(a.ref_, b.ref_);
    std::swap(a.elements_, b.elements_);
  }

 private:
  SharedMemory shared_;                         ///< where `memory_` lies, unless Kokkos owns it
  Kokkos::View<T*, Kokkos::HostSpace> memory_;  ///< owned cells and ghosts
  ArrayRef<T, D> ref_;
  std::int64_t elements_ = 0;
};

}  // namespace isohalo
