#pragma once
/// Who sends which cells to whom, stage by stage. Pure geometry; how the cells travel is the transports' business.

#include <functional>
#include <span>
#include <vector>

#include "framework/halo/halo_regions.hpp"
#include "framework/schedule/traffic.hpp"

namespace isohalo {

/// Changes the regions of each block before a schedule is made, to prove that tests would notice.
template <int D>
using HaloMutation = std::function<void(std::vector<HaloRegion<D>>&)>;

/// What one exchange costs this rank.
struct HaloCost {
  std::int64_t cells_sent = 0;    ///< to other ranks
  std::int64_t cells_copied = 0;  ///< within this rank's array (periodic dimensions of one rank)
};

/// The cells of one message, in this rank's unwrapped indices: ghosts when received; when sent, own cells, and
/// ghosts of earlier stages, with the shift to the receiver's indices. Both ends list the regions in the same
/// order.
template <int D>
struct HaloMessage {
  int peer = 0;
  std::vector<HaloRegion<D>> regions;
};

/// The regions as boxes, in an order that no layout changes.
template <int D>
std::vector<ShiftedBox<D>> boxes_of(const std::vector<HaloRegion<D>>& regions) {
  std::vector<ShiftedBox<D>> list;
  for (const auto& r : regions) r.region.for_each_box([&](const Box<D>& b) { list.push_back({b, r.shift}); });
  return list;
}

/// Messages and copies that need no other of the same stage. Several messages to one rank match in order.
template <int D>
struct HaloStage {
  std::vector<HaloMessage<D>> send, receive;
  std::vector<HaloRegion<D>> copies;  ///< ghosts that are this rank's own cells
};

/// Stage after stage.
template <int D>
using HaloSchedule = std::vector<HaloStage<D>>;

/// One message with cells of several arrays that need different ghosts. Message k to a rank joins message k to that
/// rank of each other schedule; the receiver, who has as many, joins the same.
template <int D>
struct JoinedMessage {
  int peer = 0;
  std::vector<const HaloMessage<D>*> parts;  ///< by schedule; null: nothing of it
};

/// The messages of one stage of each schedule, those that `side` names (`&HaloStage<D>::send` or receive). They
/// point into the schedules.
template <int D>
std::vector<JoinedMessage<D>> joined(std::span<const HaloSchedule<D>> schedules, std::size_t stage,
                                     std::vector<HaloMessage<D>> HaloStage<D>::*side);

template <int D>
HaloCost halo_cost(const HaloSchedule<D>& schedule);

/// The part of the block at `coords` in an exchange. Local; the parts of all ranks fit together. `pattern` slabs
/// needs `slabs_possible(shape)`.
template <int D>
HaloSchedule<D> halo_schedule(HaloPattern pattern, const HaloGeometry<D>& geometry, const PerDim<int, D>& coords,
                              const HaloMutation<D>& mutation = {});

/// The same without what the block sends: all that one rank receives and copies, at the cost of one rank.
template <int D>
HaloSchedule<D> halo_receives(HaloPattern pattern, const HaloGeometry<D>& geometry, const PerDim<int, D>& coords,
                              const HaloMutation<D>& mutation = {});

/// The messages of one exchange by all blocks. Array k has geometries[k], all with the same blocks, and elements of
/// element_bytes[k]. At least one array. Local.
template <int D>
TrafficTable halo_traffic(HaloPattern pattern, std::span<const HaloGeometry<D>> geometries,
                          std::span<const double> element_bytes);

}  // namespace isohalo
