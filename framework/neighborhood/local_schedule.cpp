#include "framework/neighborhood/local_schedule.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace isohalo {

namespace {

/// Finds the message of a peer among those of a stage.
class MessageFinder {
 public:
  void append(std::vector<LocalMessage>& messages, int peer, LocalMessage::Part part) {
    const auto [found, is_new] = where_.try_emplace(peer, messages.size());
    if (is_new) messages.push_back({peer, {}});
    messages[found->second].parts.push_back(part);
  }

 private:
  std::unordered_map<int, std::size_t> where_;
};

/// One rank's view while its local schedule is made.
class Planner {
 public:
  Planner(const NeighborSchedule& schedule, std::span<const int> relative, const Mesh& mesh, int rank)
      : schedule_(schedule),
        relative_(relative),
        mesh_(mesh),
        ways_(schedule.ring ? Mesh({mesh.size()}, {true}) : mesh),
        rank_(rank),
        landed_(schedule.hops.size()) {}

  LocalSchedule make() {
    local_.algorithm = schedule_.algorithm;
    local_.rank = rank_;
    local_.stages.resize(static_cast<std::size_t>(schedule_.stages));
    for (int i : schedule_.stays)
      if (!schedule_.ring || mesh_.relative_rank(rank_, offset(i)) == rank_) {
        const int block = schedule_.pattern == Pattern::shared ? 0 : i;
        local_.first.push_back({{BlockPlace::Kind::send, block}, {BlockPlace::Kind::receive, i}});
      }
    for (std::size_t h = 0; h < schedule_.hops.size(); ++h) add(static_cast<int>(h));
    return std::move(local_);
  }

 private:
  std::span<const int> offset(int i) const {
    const auto d = static_cast<std::size_t>(mesh_.dimensions());
    return relative_.subspan(static_cast<std::size_t>(i) * d, d);
  }

  /// The rank at `vector` from here, forwards or backwards, in the mesh that the ways run in.
  int away(const std::vector<int>& vector, int sign) {
    scratch_.resize(vector.size());
    for (std::size_t j = 0; j < vector.size(); ++j) scratch_[j] = sign * vector[j];
    return ways_.relative_rank(rank_, scratch_);
  }

  /// Does the leg carry a block of this origin for offset number k of its list?
  bool travels(const Hop& hop, std::size_t k, int origin) const {
    const int target = mesh_.relative_rank(origin, offset(hop.carries[k]));
    if (target == Mesh::no_rank) return false;
    return !schedule_.ring || (origin + hop.distances[k]) % mesh_.size() == target;
  }
  bool travels(const Hop& hop, int origin) const {
    for (std::size_t k = 0; k < hop.carries.size(); ++k)
      if (travels(hop, k, origin)) return true;
    return false;
  }

  void add(int h) {
    const Hop& hop = schedule_.hops[static_cast<std::size_t>(h)];
    const auto& step = schedule_.steps[static_cast<std::size_t>(hop.step)];
    LocalStage& stage = local_.stages[static_cast<std::size_t>(step.stage)];
    if (step.stage != stage_) {
      stage_ = step.stage;
      sent_to_ = received_from_ = {};
    }
    // A block whose origin is `before` behind this rank leaves here.
    const int leaving = away(hop.before, -1), to = away(step.shift, 1);
    if (leaving != Mesh::no_rank && to != Mesh::no_rank && travels(hop, leaving)) {
      const BlockPlace start{BlockPlace::Kind::send,
                             schedule_.pattern == Pattern::shared ? 0 : hop.carries.front()};
      const BlockPlace from = hop.parent < 0 ? start : landed_[static_cast<std::size_t>(hop.parent)];
      sent_to_.append(stage.send, to, {hop.step, from});
    }
    const int arriving = away(hop.after, -1);
    if (arriving != Mesh::no_rank && travels(hop, arriving)) {
      const BlockPlace place = land(hop, arriving);
      landed_[static_cast<std::size_t>(h)] = place;
      received_from_.append(stage.receive, away(step.shift, -1), {hop.step, place});
    }
  }

  /// In the receive slot of the first offset that ends here, otherwise in a temporary one. Never in a slot whose
  /// own source is absent: a block ends here only if it came from that source.
  BlockPlace land(const Hop& hop, int origin) {
    BlockPlace place{BlockPlace::Kind::temporary, -1};
    for (const std::size_t k : hop.ends) {
      if (!travels(hop, k, origin)) continue;
      const BlockPlace slot{BlockPlace::Kind::receive, hop.carries[k]};
      if (place.index < 0)
        place = slot;
      else
        local_.last.push_back({place, slot});
    }
    if (place.index < 0) place.index = static_cast<int>(local_.temporaries++);
    return place;
  }

  const NeighborSchedule& schedule_;
  std::span<const int> relative_;
  const Mesh& mesh_;
  Mesh ways_;
  int rank_;
  std::vector<BlockPlace> landed_;  // per hop, where its block lies on this rank
  std::vector<int> scratch_;
  int stage_ = 0;
  MessageFinder sent_to_, received_from_;  // of the current stage; hops come by stage
  LocalSchedule local_;
};

}  // namespace

LocalSchedule plan_local_schedule(const NeighborSchedule& schedule, std::span<const int> relative, const Mesh& mesh,
                                  int rank) {
  return Planner(schedule, relative, mesh, rank).make();
}

LocalSchedule direct_local_schedule(const IsomorphicNeighborhood& neighbors) {
  const auto d = static_cast<std::size_t>(neighbors.mesh().dimensions());
  const auto zero = [&](int i) {
    const auto offset = neighbors.relative().subspan(static_cast<std::size_t>(i) * d, d);
    return std::all_of(offset.begin(), offset.end(), [](int c) { return c == 0; });
  };
  LocalSchedule local;
  local.rank = neighbors.rank();
  MessageFinder sent_to, received_from;
  for (int i = 0; i < neighbors.count(); ++i) {
    const BlockPlace from{BlockPlace::Kind::send, i}, to{BlockPlace::Kind::receive, i};
    if (zero(i)) {
      local.first.push_back({from, to});
      continue;
    }
    if (local.stages.empty()) local.stages.resize(1);  // also of a rank that has none of its neighbors
    const int target = neighbors.targets()[static_cast<std::size_t>(i)],
              source = neighbors.sources()[static_cast<std::size_t>(i)];
    if (target != Mesh::no_rank) sent_to.append(local.stages[0].send, target, {i, from});
    if (source != Mesh::no_rank) received_from.append(local.stages[0].receive, source, {i, to});
  }
  return local;
}

TrafficTable neighbor_traffic(const NeighborSchedule& schedule, std::span<const int> relative, const Mesh& mesh,
                              double block_bytes) {
  std::optional<TrafficTable> traffic;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const LocalSchedule local = plan_local_schedule(schedule, relative, mesh, rank);
    if (!traffic) traffic.emplace(mesh.size(), static_cast<int>(local.stages.size()));
    for (std::size_t k = 0; k < local.stages.size(); ++k)
      for (const LocalMessage& m : local.stages[k].send)
        if (m.peer != rank)
          traffic->add(static_cast<int>(k), rank, m.peer, static_cast<double>(m.parts.size()) * block_bytes);
  }
  return *traffic;
}

}  // namespace isohalo
