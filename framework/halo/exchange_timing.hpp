#pragma once
/// Which of several movers is fastest on the live communicator. Private to framework/halo: use HaloPlan.

#include "framework/halo/halo_mover.hpp"

namespace isohalo::detail {

/// Seconds that each mover needs for these arrays: of the slowest rank, the best of some repetitions in which all
/// take turns; the same numbers on all ranks. Brings the ghosts in place, again and again, and changes nothing
/// else. Takes about 20 ms, or four exchanges by each mover where these take longer. Collective.
template <int D>
std::vector<double> time_movers(const Communicator& comm, std::span<const std::unique_ptr<HaloMover<D>>> movers,
                                std::span<const ErasedArray<D>> arrays);

}  // namespace isohalo::detail
