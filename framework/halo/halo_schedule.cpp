#include "framework/halo/halo_schedule.hpp"

#include <algorithm>
#include <optional>

#include "framework/halo/ghost_fill.hpp"

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

/// Every cell of other ranks comes once; then the ghosts that repeat it, or this rank's own cells, are filled.
template <int D>
HaloSchedule<D> repeating_schedule(const Decomposition<D>& blocks, const PerDim<int, D>& coords,
                                   const StencilShape<D>& shape, int steps, const BoundaryTopology<D>& around) {
  HaloSchedule<D> schedule;
  schedule.stages.resize(2);
  auto fill = std::make_shared<const detail::GhostFill<D>>(blocks, coords, shape, steps, around);
  schedule.stages[0].receive = fill->received(blocks, coords);
  for (const auto& receiver : possible_receivers(blocks, coords, shape, steps, around)) {
    if (receiver == coords) continue;
    auto message = detail::repeated_grid_message(blocks, coords, receiver, shape, steps, around);
    if (!message.regions.empty()) schedule.stages[0].send.push_back(std::move(message));
  }
  schedule.stages[1].fill = std::move(fill);
  return schedule;
}

}  // namespace

template <int D>
HaloSchedule<D> halo_schedule(HaloPattern pattern, const Decomposition<D>& blocks, const PerDim<int, D>& coords,
                              const StencilShape<D>& shape, int steps, const BoundaryTopology<D>& around,
                              const HaloMutation<D>& mutation) {
  const bool slabs = pattern == HaloPattern::slabs, direct = pattern == HaloPattern::direct;
  if (!slabs && !mutation && detail::repeats_grid(blocks, shape, steps, around))
    return repeating_schedule(blocks, coords, shape, steps, around);
  HaloSchedule<D> schedule;
  schedule.stages.resize(slabs ? D : 1);  // NOLINT(bugprone-branch-clone): D may be 1
  const auto stage_of = [&](const HaloRegion<D>& p) -> HaloStage<D>& {
    return schedule.stages[static_cast<std::size_t>(p.stage)];
  };
  const auto parts_of = [&](const PerDim<int, D>& block) {
    auto parts = slabs ? slab_regions(blocks, block, shape, steps, around)
                       : halo_regions(blocks, block, shape, steps, around);
    if (mutation) mutation(parts);
    return parts;
  };
  for (const auto& part : parts_of(coords)) {
    if (part.owner == coords)
      stage_of(part).copies.push_back({part.region, part.shift});
    else
      message_of(stage_of(part).receive, blocks.rank_at(part.owner), direct).regions.push_back(part.region);
  }
  for (const auto& receiver : possible_receivers(blocks, coords, shape, steps, around)) {
    if (receiver == coords || (slabs && differing_dimensions<D>(receiver, coords) > 1)) continue;
    for (const auto& part : parts_of(receiver)) {
      if (part.owner != coords) continue;
      Index<D> back;
      for (int j = 0; j < D; ++j) back[j] = -part.shift[j];
      auto& message = message_of(stage_of(part).send, blocks.rank_at(receiver), direct);
      message.regions.push_back(part.region.shifted(back));
      message.shifts.push_back(part.shift);
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
    if (stage.fill) c.cells_copied += stage.fill->cells();
  }
  return c;
}

template <int D>
std::vector<JoinedMessage<D>> joined(std::span<const HaloSchedule<D>> schedules, std::size_t stage,
                                     std::vector<HaloMessage<D>> HaloStage<D>::*side) {
  std::vector<JoinedMessage<D>> all;
  for (std::size_t n = 0; n < schedules.size(); ++n)
    for (const auto& message : schedules[n].stages[stage].*side) {
      const auto fits = [&](const JoinedMessage<D>& j) { return j.peer == message.peer && !j.parts[n]; };
      auto place = std::find_if(all.begin(), all.end(), fits);
      if (place == all.end())
        place = all.insert(place, {message.peer, std::vector<const HaloMessage<D>*>(schedules.size(), nullptr)});
      place->parts[n] = &message;
    }
  return all;
}

template <int D>
HaloCost total_cost(std::span<const HaloSchedule<D>> schedules, bool join) {
  HaloCost total;
  for (const auto& schedule : schedules) {
    const HaloCost c = schedule.cost();
    total.stages = std::max(total.stages, c.stages);
    total.messages += c.messages;
    total.cells_sent += c.cells_sent;
    total.cells_received += c.cells_received;
    total.cells_copied += c.cells_copied;
  }
  if (!join) return total;
  total.messages = 0;
  for (std::size_t k = 0; k < static_cast<std::size_t>(total.stages); ++k)
    total.messages += static_cast<std::int64_t>(joined<D>(schedules, k, &HaloStage<D>::send).size());
  return total;
}

template <int D>
TrafficTable halo_traffic(HaloPattern pattern, const Decomposition<D>& blocks, const StencilShape<D>& shape,
                          int steps, const BoundaryTopology<D>& around, double element_bytes) {
  std::optional<TrafficTable> traffic;
  for (int r = 0; r < blocks.ranks(); ++r) {
    const auto schedule = halo_schedule(pattern, blocks, blocks.coordinates(r), shape, steps, around);
    if (!traffic) traffic.emplace(blocks.ranks(), static_cast<int>(schedule.stages.size()));
    for (std::size_t k = 0; k < schedule.stages.size(); ++k)
      for (const auto& m : schedule.stages[k].send)
        traffic->add(static_cast<int>(k), r, m.peer, static_cast<double>(m.cells()) * element_bytes);
  }
  return *traffic;
}

#define ISOHALO_INSTANTIATE(D)                                                                           \
  template TrafficTable halo_traffic(HaloPattern, const Decomposition<D>&, const StencilShape<D>&, int,  \
                                     const BoundaryTopology<D>&, double);                                \
  template struct HaloSchedule<D>;                                                                       \
  template std::vector<JoinedMessage<D>> joined<D>(std::span<const HaloSchedule<D>>, std::size_t,        \
                                                   std::vector<HaloMessage<D>> HaloStage<D>::*);         \
  template HaloCost total_cost<D>(std::span<const HaloSchedule<D>>, bool);                               \
  template HaloSchedule<D> halo_schedule<D>(HaloPattern, const Decomposition<D>&, const PerDim<int, D>&, \
                                            const StencilShape<D>&, int, const BoundaryTopology<D>&,     \
                                            const HaloMutation<D>&);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
