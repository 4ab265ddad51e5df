#pragma once
/// What copies of an IsoComm share. Private to framework/neighborhood.

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "framework/mpi/equality_check.hpp"
#include "framework/neighborhood/iso_comm.hpp"
#include "framework/neighborhood/neighbor_operation.hpp"
#include "framework/neighborhood/type_mark.hpp"

namespace isohalo {

struct IsoComm::State {
  Communicator comm;
  IsomorphicNeighborhood neighbors;
  Algorithm forced = Algorithm::automatic;
  std::map<std::pair<Algorithm, Pattern>, NeighborSchedule> schedules;
  std::map<std::pair<Algorithm, Pattern>, std::shared_ptr<const LocalSchedule>> locals;
  /// What `choose` said before, by pattern and block size.
  std::map<std::pair<Pattern, std::int64_t>, Algorithm> chosen;
  /// The last blocking operations, used again for the same arguments.
  struct Recent {
    NeighborCall call;
    detail::TypeMarks types;
    std::unique_ptr<detail::NeighborOperation> operation;
  };
  static constexpr std::size_t kRecent = 4;
  std::vector<Recent> recent;
  std::size_t next_recent = 0;

  /// Of what must be equal on all ranks; rides on the first operation. At level communication only.
  std::unique_ptr<detail::EqualityCheck> comparison;
  bool compared = false;

  State(const Communicator& c, IsomorphicNeighborhood n) : comm(c), neighbors(std::move(n)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const NeighborSchedule& schedule(Algorithm algorithm, Pattern pattern) {
    if (const auto found = schedules.find({algorithm, pattern}); found != schedules.end()) return found->second;
    const Mesh& mesh = neighbors.mesh();
    NeighborSchedule made = plan_neighbor_schedule(neighbors.relative(), mesh.dimensions(), algorithm, pattern);
    if (algorithm == Algorithm::logarithmic) {  // a list without an order of its own may do better along the ring
      NeighborSchedule ring = plan_ring_schedule(neighbors.relative(), mesh, pattern);
      if (ring.rounds() < made.rounds() && messages_on(ring, mesh) < messages_on(made, mesh))
        made = std::move(ring);
    }
    return schedules.emplace(std::pair(algorithm, pattern), std::move(made)).first->second;
  }

  std::unique_ptr<detail::NeighborOperation> compile(Algorithm algorithm, const NeighborCall& call,
                                                     bool own_types) {
    auto& local = locals[{algorithm, call.pattern}];
    if (!local)
      local = std::make_shared<const LocalSchedule>(
          algorithm == Algorithm::direct && call.pattern == Pattern::personal
              ? direct_local_schedule(neighbors)
              : plan_local_schedule(schedule(algorithm, call.pattern), neighbors.relative(), neighbors.mesh(),
                                    neighbors.rank()));
    return std::make_unique<detail::NeighborOperation>(comm, neighbors, local, call, own_types);
  }

  void remember(const NeighborCall& call, std::unique_ptr<detail::NeighborOperation> operation) {
    Recent latest{call, detail::TypeMarks(call), std::move(operation)};
    if (recent.size() < kRecent) {
      recent.push_back(std::move(latest));
    } else {
      recent[next_recent] = std::move(latest);
      next_recent = (next_recent + 1) % kRecent;
    }
  }

  void forget(const detail::NeighborOperation* operation) {
    std::erase_if(recent, [&](const Recent& r) { return r.operation.get() == operation; });
    next_recent = 0;
  }

  /// Starts a comparison of what must be equal on all ranks. Collective in order.
  std::unique_ptr<detail::EqualityCheck> compare() const {
    const auto number = [](auto n) { return static_cast<std::uint64_t>(n); };
    return std::make_unique<detail::EqualityCheck>(
        comm, std::vector<detail::EqualityCheck::Number>{{"the number of offsets", number(neighbors.count())},
                                                         {"the list of offsets", neighbors.fingerprint(), false},
                                                         {"the algorithm that was set", number(forced)}});
  }
  /// Throws what it has found.
  static void refuse_different(const detail::EqualityCheck& done) {
    if (const auto difference = done.difference())
      throw ArgumentError(MPI_ERR_TOPOLOGY, "neighborhood: " + *difference +
                                                ": pass the same list, in the same order, and set the same "
                                                "algorithm, on all ranks of the communicator");
  }
  void compare_with_first_operation() {
    if (compared || !checks_communication()) return;
    comparison = compare();
    compared = true;
  }
  /// True when there is nothing left to compare. When something differs `operation` cannot go on, nor can later
  /// ones: throws.
  bool passes_or_abandons(detail::NeighborOperation& operation) {
    if (!comparison) return true;
    if (!comparison->done()) return false;
    try {
      refuse_different(*comparison);
    } catch (...) {
      if (operation.active()) operation.abandon();
      throw;
    }
    comparison.reset();
    return true;
  }

  NeighborChoice choose(Pattern pattern, std::int64_t bytes) {
    std::vector<AlgorithmFigures> figures;
    for (Algorithm a : {Algorithm::direct, Algorithm::combining, Algorithm::logarithmic})
      figures.push_back(figures_of(schedule(a, pattern), neighbors.mesh(), bytes));
    return cheapest(std::move(figures), bytes);
  }

  /// Bytes of a block, for a call whose blocks have one size.
  static std::int64_t block_bytes(const NeighborCall& call) {
    if (call.is_reduction()) return call.fold.into.count * layout_of(call.fold.into.type).size;
    if (call.send.empty()) return 0;
    return call.send.front().count * layout_of(call.send.front().type).size;
  }

  Algorithm algorithm_for(const NeighborCall& call, bool blocking) {
    if (forced != Algorithm::automatic) return forced;
    if (!blocking || !call.one_size) return Algorithm::direct;
    const std::int64_t bytes = block_bytes(call);
    const auto [found, is_new] = chosen.try_emplace({call.pattern, bytes}, Algorithm::direct);
    if (is_new) found->second = choose(call.pattern, bytes).algorithm;
    return found->second;
  }
};

}  // namespace isohalo
