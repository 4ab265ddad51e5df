#pragma once
/// Halo exchange: the ghost cells that k steps of a stencil need, brought in one go.

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "framework/domain/cartesian_domain.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/halo/exchange.hpp"
#include "framework/halo/stencil_shape.hpp"
#include "framework/halo/workers.hpp"

namespace isohalo {

template <int D>
struct HaloOptions {
  /// Sides on which outside cells mirror inside ones; only custom stencils need extra cells for it.
  PerDim<bool, D> mirror_low{}, mirror_high{};
  /// How the cells travel. The bits do not depend on it.
  Exchange exchange = Exchange::automatic;
  /// Who helps with large copies of host memory: packing, unpacking, ghosts that are this rank's own cells. Nobody
  /// unless given; with Kokkos `host_workers()` of host_threads.hpp. MPI's own copies are MPI's.
  Workers workers{};
  /// Arrays by kernels: `finish` does not wait for its last ones. What follows must be kernels of the same
  /// execution space's default instance, which run behind them.
  bool runs_on = false;
};

namespace detail {
struct HaloPlanAccess;
}

/// Brings exactly the needed ghost cells: block + k (S with 0) without the block, "+" the Minkowski sum of cell
/// sets.
///
/// Works on host memory of any strided layout, without Kokkos, and on Kokkos views in any memory space (see
/// view_ref.hpp). A halo may reach beyond the adjacent ranks' blocks.
template <int D>
class HaloPlan {
 public:
  /// Plans for `depth` steps of `shape` on `domain`. Collective: the ranks compare the arguments. Throws
  /// UsageError, the same on all ranks, when these differ, when depth < 0, or when the options ask for slabs and
  /// the shape is a list without a name.
  HaloPlan(const CartesianDomain<D>& domain, const StencilShape<D>& shape, int depth,
           const HaloOptions<D>& options = {});
  /// Plans for as many arrays as there are needs, which may differ: array k of every exchange gets the ghosts of
  /// needs[k]. One need serves any number of arrays. Throws UsageError also when there are none.
  HaloPlan(const CartesianDomain<D>& domain, std::vector<HaloNeed<D>> needs, const HaloOptions<D>& options = {});
  HaloPlan(HaloPlan&&) noexcept;
  HaloPlan& operator=(HaloPlan&&) noexcept;
  /// Completes an exchange in flight, whose arrays must still be there.
  ~HaloPlan();

  /// Starts one exchange of these arrays (ArrayRef or ErasedArray; any types, and any number of them; the
  /// same element sizes in the same order on all ranks, all of them in host memory or all in one other space).
  /// Their ghost layers must be at least as wide as `ghost_low(k)`, `ghost_high(k)`. Until `finish()` the ghosts
  /// must not be touched and the owned cells not be written. Throws UsageError when an exchange of this plan is in
  /// flight or an array does not fit. Arrays by kernels: fences their packing.
  ///
  /// The first start with a list of element sizes is collective in order: the ranks agree that lists are the same;
  /// `exchange` automatic then times the candidates on these arrays (about 20 ms), and shared opens
  /// channels in shared memory. It throws the same on all ranks: UsageError also when lists differ,
  /// RunError when a compute node has no room. Later starts are local: an array that does not fit on one rank is
  /// that rank's error alone, and the others wait for its cells until it starts with one that fits.
  template <class... A>
  void start(const A&... arrays) {
    const std::array<ErasedArray<D>, sizeof...(arrays)> list{erase(arrays)...};
    start(std::span<const ErasedArray<D>>(list));
  }
  void start(std::span<const ErasedArray<D>> arrays) { begin(arrays, false); }
  void start(const std::vector<ErasedArray<D>>& arrays) { begin(arrays, false); }
  /// Moves on what can move, between `start` and `finish`: MPI need not do it on its own. Never waits. Local.
  void progress();
  /// Completes the exchange: every needed ghost is in place. Waits with back-off. Local once the neighbors have
  /// started; several plans' exchanges may be finished in different orders on different ranks. Arrays by kernels:
  /// fences unless the options say otherwise.
  void finish();

  /// Both. An exchange that is not split may wait for ranks of this compute node to start, where it must wait for
  /// their messages anyway: `shared` then writes straight into their ghosts.
  template <class... A>
  void exchange(const A&... arrays) {
    const std::array<ErasedArray<D>, sizeof...(arrays)> list{erase(arrays)...};
    exchange(std::span<const ErasedArray<D>>(list));
  }
  void exchange(std::span<const ErasedArray<D>> arrays) {
    begin(arrays, true);
    finish();
  }
  void exchange(const std::vector<ErasedArray<D>>& arrays) { exchange(std::span<const ErasedArray<D>>(arrays)); }

  /// Of array k of an exchange. Throws UsageError when the plan is for fewer arrays.
  int depth(std::size_t k = 0) const;
  /// Ghost layers that array k needs.
  const Index<D>& ghost_low(std::size_t k = 0) const;
  const Index<D>& ghost_high(std::size_t k = 0) const;
  /// What step 1, 2, .. depth after an exchange of array k may update: the cells that the later steps read, ghosts
  /// among them, as disjoint boxes of global indices (unwrapped, as an array has them), clipped where the grid
  /// ends. Each step reads nothing but what the step before updated, or the exchange brought. The last step's is
  /// the block. `face`: of an array on the faces of that dimension. Local; allocates. Throws UsageError for another
  /// step.
  std::vector<Box<D>> region(int step, std::size_t k = 0, int face = -1) const;

  /// The way that the latest exchange took.
  const ExchangeChoice& choice() const;

 private:
  friend struct detail::HaloPlanAccess;
  void begin(std::span<const ErasedArray<D>> arrays, bool may_wait);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace isohalo
