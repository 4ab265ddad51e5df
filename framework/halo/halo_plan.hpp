#pragma once
/// Halo exchange: the ghost cells that k steps of a stencil need, brought in one go.

#include <functional>
#include <memory>
#include <vector>

#include "datatypes/datatype.hpp"
#include "framework/domain/cartesian_domain.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/halo/halo_pieces.hpp"

namespace isohalo {

template <int D>
struct HaloOptions {
  /// Sides on which outside cells mirror inside ones; only custom stencils need extra cells for it.
  PerDim<bool, D> mirror_low{}, mirror_high{};
  /// Allow ghosts from beyond the adjacent block. They are brought by direct messages all the same.
  bool beyond_neighbors = false;
  /// Test only: changes the pieces of each block before the plan is made, to prove that the tests would notice.
  std::function<void(std::vector<HaloPiece<D>>&)> mutation{};
};

/// What one exchange costs this rank.
struct HaloCost {
  std::int64_t messages = 0;    ///< sent to other ranks
  std::int64_t cells_sent = 0;  ///< to other ranks
  std::int64_t cells_received = 0;
  std::int64_t cells_copied = 0;  ///< from this rank's own block (periodic dimensions of one rank)
};

/// Brings exactly the needed ghost cells: block + k (S with 0) without the block, "+" the Minkowski sum of cell
/// sets.
///
/// Transport: direct - one message per neighboring rank and field, MPI derived datatypes on both sides, no
/// intermediate copy; cells of the same rank are copied in place. Works on host memory of any strided layout,
/// without Kokkos.
template <int D>
class HaloPlan {
 public:
  /// Plans for `depth` steps of `shape` on `domain`. Collective in order (no communication). Throws UsageError, the
  /// same on all ranks, when depth < 0, or when ghosts lie beyond what an adjacent rank owns and the options do not
  /// allow it.
  HaloPlan(const CartesianDomain<D>& domain, const StencilShape<D>& shape, int depth,
           const HaloOptions<D>& options = {});
  HaloPlan(HaloPlan&&) noexcept;
  HaloPlan& operator=(HaloPlan&&) noexcept;
  ~HaloPlan();

  /// Starts one exchange of these arrays (any types, up to 16 in one exchange). Their ghost layers must be at least
  /// as wide as `ghost_low()`, `ghost_high()`. Until `finish()` the ghosts must not be touched and the owned cells
  /// not be written. Throws UsageError when an exchange of this plan is in flight or an array does not fit. Local.
  template <class... T>
  void start(const ArrayRef<T, D>&... arrays) {
    begin(sizeof...(arrays));
    (post(erase(arrays)), ...);
  }
  /// Completes the exchange: every needed ghost is in place. Waits with back-off. Local once the neighbors have
  /// started.
  void finish();

  template <class... T>
  void exchange(const ArrayRef<T, D>&... arrays) {
    start(arrays...);
    finish();
  }

  int depth() const;
  /// Ghost layers that arrays need for this plan.
  const Index<D>& ghost_low() const;
  const Index<D>& ghost_high() const;
  HaloCost cost() const;

 private:
  /// An array with its type forgotten: strides in elements of `bytes` bytes.
  struct Erased {
    std::byte* data;
    std::int64_t bytes;
    Datatype (*element)();
    Box<D> owned;
    Index<D> ghost_low, ghost_high, stride;
  };
  template <class T>
  static Erased erase(const ArrayRef<T, D>& a) {
    return {reinterpret_cast<std::byte*>(a.data),
            static_cast<std::int64_t>(sizeof(T)),
            &value_type<T>,
            a.owned,
            a.ghost_low,
            a.ghost_high,
            a.stride};
  }
  void begin(std::size_t arrays);
  void post(const Erased& array);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace isohalo
