#include "framework/halo/halo_schedule.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

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
  return std::inner_product(a.begin(), a.end(), b.begin(), 0, std::plus{}, std::not_equal_to{});
}

template <int D>
std::int64_t cells_of(const std::vector<HaloRegion<D>>& regions) {
  std::int64_t n = 0;
  for (const auto& r : regions) n += r.region.cells();
  return n;
}

template <int D>
std::vector<HaloRegion<D>> parts_of(HaloPattern pattern, const HaloGeometry<D>& geometry,
                                    const PerDim<int, D>& coords, const HaloMutation<D>& mutation) {
  auto parts = geometry.regions(coords, pattern);
  if (mutation) mutation(parts);
  return parts;
}

}  // namespace

template <int D>
HaloSchedule<D> halo_receives(HaloPattern pattern, const HaloGeometry<D>& geometry, const PerDim<int, D>& coords,
                              const HaloMutation<D>& mutation) {
  HaloSchedule<D> schedule(pattern == HaloPattern::slabs ? D : 1);  // NOLINT(bugprone-branch-clone): D may be 1
  for (const auto& part : parts_of(pattern, geometry, coords, mutation)) {
    HaloStage<D>& stage = schedule[static_cast<std::size_t>(part.stage)];
    if (part.owner == coords)
      stage.copies.push_back(part);
    else
      message_of(stage.receive, geometry.blocks.rank_at(part.owner), pattern == HaloPattern::direct)
          .regions.push_back(part);
  }
  return schedule;
}

template <int D>
HaloSchedule<D> halo_schedule(HaloPattern pattern, const HaloGeometry<D>& geometry, const PerDim<int, D>& coords,
                              const HaloMutation<D>& mutation) {
  const bool slabs = pattern == HaloPattern::slabs;
  HaloSchedule<D> schedule = halo_receives(pattern, geometry, coords, mutation);
  for (const auto& receiver : geometry.possible_receivers(coords)) {
    if (receiver == coords || (slabs && differing_dimensions<D>(receiver, coords) > 1)) continue;
    for (auto& part : parts_of(pattern, geometry, receiver, mutation)) {
      if (part.owner != coords) continue;
      Index<D> back;
      for (int j = 0; j < D; ++j) back[j] = -part.shift[j];
      part.region = part.region.shifted(back);
      message_of(schedule[static_cast<std::size_t>(part.stage)].send, geometry.blocks.rank_at(receiver),
                 pattern == HaloPattern::direct)
          .regions.push_back(part);
    }
  }
  return schedule;
}

template <int D>
std::vector<JoinedMessage<D>> joined(std::span<const HaloSchedule<D>> schedules, std::size_t stage,
                                     std::vector<HaloMessage<D>> HaloStage<D>::*side) {
  std::vector<JoinedMessage<D>> all;
  for (std::size_t n = 0; n < schedules.size(); ++n)
    for (const auto& message : schedules[n][stage].*side) {
      const auto fits = [&](const JoinedMessage<D>& j) { return j.peer == message.peer && !j.parts[n]; };
      auto place = std::find_if(all.begin(), all.end(), fits);
      if (place == all.end())
        place = all.insert(place, {message.peer, std::vector<const HaloMessage<D>*>(schedules.size(), nullptr)});
      place->parts[n] = &message;
    }
  return all;
}

template <int D>
HaloCost halo_cost(const HaloSchedule<D>& schedule) {
  HaloCost c;
  for (const auto& stage : schedule) {
    for (const auto& m : stage.send) c.cells_sent += cells_of(m.regions);
    c.cells_copied += cells_of(stage.copies);
  }
  return c;
}

template <int D>
TrafficTable halo_traffic(HaloPattern pattern, std::span<const HaloGeometry<D>> geometries,
                          std::span<const double> element_bytes) {
  const Decomposition<D>& blocks = geometries.front().blocks;
  std::optional<TrafficTable> traffic;
  for (int r = 0; r < blocks.ranks(); ++r) {
    std::vector<HaloSchedule<D>> schedules;
    for (const auto& g : geometries) schedules.push_back(halo_schedule(pattern, g, blocks.coordinates(r)));
    const std::size_t stages = schedules.front().size();  // all have as many
    if (!traffic) traffic.emplace(blocks.ranks(), static_cast<int>(stages));
    for (std::size_t k = 0; k < stages; ++k)
      for (const auto& m : joined<D>(schedules, k, &HaloStage<D>::send)) {
        double bytes = 0;
        for (std::size_t n = 0; n < schedules.size(); ++n)
          if (m.parts[n]) bytes += static_cast<double>(cells_of(m.parts[n]->regions)) * element_bytes[n];
        traffic->add(static_cast<int>(k), r, m.peer, bytes);
      }
  }
  return *traffic;
}

#define ISOHALO_INSTANTIATE(D)                                                                                \
  template TrafficTable halo_traffic(HaloPattern, std::span<const HaloGeometry<D>>, std::span<const double>); \
  template std::vector<JoinedMessage<D>> joined<D>(std::span<const HaloSchedule<D>>, std::size_t,             \
                                                   std::vector<HaloMessage<D>> HaloStage<D>::*);              \
  template HaloCost halo_cost(const HaloSchedule<D>&);                                                        \
  template HaloSchedule<D> halo_schedule<D>(HaloPattern, const HaloGeometry<D>&, const PerDim<int, D>&,       \
                                            const HaloMutation<D>&);                                          \
  template HaloSchedule<D> halo_receives<D>(HaloPattern, const HaloGeometry<D>&, const PerDim<int, D>&,       \
                                            const HaloMutation<D>&);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
