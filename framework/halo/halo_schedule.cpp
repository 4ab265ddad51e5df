#include "framework/halo/halo_schedule.hpp"

namespace isohalo {

namespace {

/// The message to which the next region for this peer goes.
template <int D>
HaloMessage<D>& message_of(std::vector<HaloMessage<D>>& messages, int peer, bool own_message) {
  if (!own_message)
    for (auto& m : messages)
      if (m.peer == peer) return m;
  return messages.emplace_back(HaloMessage<D>{peer, {}});
}

template <int D>
int differing_dimensions(const PerDim<int, D>& a, const PerDim<int, D>& b) {
  int n = 0;
  for (int j = 0; j < D; ++j) n += a[j] != b[j];
  return n;
}

}  // namespace

template <int D>
HaloSchedule<D> halo_schedule(HaloPattern pattern, const Decomposition<D>& blocks, const PerDim<int, D>& coords,
                              const StencilShape<D>& shape, int steps, const Surroundings<D>& around,
                              const HaloMutation<D>& mutation) {
  const bool slabs = pattern == HaloPattern::slabs, direct = pattern == HaloPattern::direct;
  HaloSchedule<D> schedule;
  schedule.stages.resize(slabs ? D : 1);
  const auto stage_of = [&](const HaloPiece<D>& p) -> HaloStage<D>& {
    return schedule.stages[static_cast<std::size_t>(p.stage)];
  };
  const auto pieces_of = [&](const PerDim<int, D>& block) {
    auto pieces =
        slabs ? slab_pieces(blocks, block, shape, steps, around) : halo_pieces(blocks, block, shape, steps, around);
    if (mutation) mutation(pieces);
    return pieces;
  };
  for (const auto& piece : pieces_of(coords)) {
    if (piece.owner == coords)
      stage_of(piece).copies.push_back({piece.region, piece.shift});
    else
      message_of(stage_of(piece).receive, blocks.rank_at(piece.owner), direct).regions.push_back(piece.region);
  }
  for (const auto& receiver : possible_receivers(blocks, coords, shape, steps, around)) {
    if (receiver == coords || (slabs && differing_dimensions<D>(receiver, coords) > 1)) continue;
    for (const auto& piece : pieces_of(receiver)) {
      if (piece.owner != coords) continue;
      Index<D> back;
      for (int j = 0; j < D; ++j) back[j] = -piece.shift[j];
      auto& message = message_of(stage_of(piece).send, blocks.rank_at(receiver), direct);
      message.regions.push_back(piece.region.shifted(back));
      message.shifts.push_back(piece.shift);
    }
  }
  return schedule;
}

template <int D>
HaloCost HaloSchedule<D>::cost() const {
  HaloCost c;
  c.stages = static_cast<std::int64_t>(stages.size());
  for (const auto& stage : stages) {
    c.messages += static_cast<std::int64_t>(stage.send.size());
    for (const auto& m : stage.send) c.cells_sent += m.cells();
    for (const auto& m : stage.receive) c.cells_received += m.cells();
    for (const auto& copy : stage.copies) c.cells_copied += copy.ghosts.cells();
  }
  return c;
}

#define ISOHALO_INSTANTIATE(D)                                                                           \
  template struct HaloSchedule<D>;                                                                       \
  template HaloSchedule<D> halo_schedule<D>(HaloPattern, const Decomposition<D>&, const PerDim<int, D>&, \
                                            const StencilShape<D>&, int, const Surroundings<D>&,         \
                                            const HaloMutation<D>&);
ISOHALO_INSTANTIATE(1)
ISOHALO_INSTANTIATE(2)
ISOHALO_INSTANTIATE(3)
ISOHALO_INSTANTIATE(4)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
