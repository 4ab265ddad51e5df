#pragma once
/// What copies of an IsoComm share. Private to framework/neighborhood.

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "framework/mpi/fingerprint.hpp"
#include "framework/neighborhood/iso_comm.hpp"
#include "framework/neighborhood/iso_identity.hpp"
#include "framework/neighborhood/list_check.hpp"
#include "framework/neighborhood/neighbor_operation.hpp"
#include "framework/neighborhood/type_mark.hpp"

namespace isohalo {

struct IsoComm::State {
  Communicator comm;
  IsomorphicNeighborhood neighbors;
  std::shared_ptr<detail::IsoIdentity> identity;
  Algorithm forced = Algorithm::automatic;
  LinkCost link;
  bool link_known = false;  ///< measured or given
  struct Plan {
    std::shared_ptr<const Itinerary> itinerary;
    std::shared_ptr<const Route> route;
  };
  std::map<std::pair<Algorithm, Pattern>, Plan> plans;
  /// Times of the candidates by pattern and number of bits of the block size; equal on all ranks.
  std::map<std::pair<Pattern, int>, std::vector<double>> measured;
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

  /// The comparison of all ranks' lists that rides on the first operation.
  std::shared_ptr<detail::ListCheck> check;

  State(const Communicator& c, IsomorphicNeighborhood n, std::shared_ptr<detail::IsoIdentity> i)
      : comm(c), neighbors(std::move(n)), identity(std::move(i)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void forget_choices() {
    chosen.clear();
    recent.clear();
    next_recent = 0;
  }

  const Plan& plan(Algorithm algorithm, Pattern pattern) {
    Plan& found = plans[{algorithm, pattern}];
    if (found.itinerary) return found;
    const Mesh& mesh = neighbors.mesh();
    Itinerary it = plan_itinerary(neighbors.relative(), mesh.dimensions(), algorithm, pattern);
    if (algorithm == Algorithm::logarithmic) {  // a list without an order of its own may do better along the ring
      Itinerary ring = plan_ring_itinerary(neighbors.relative(), mesh, pattern);
      if (ring.rounds() < it.rounds() && messages_on(ring, mesh) < messages_on(it, mesh)) it = std::move(ring);
    }
    found.route = std::make_shared<const Route>(plan_route(it, neighbors.relative(), mesh, neighbors.rank()));
    found.itinerary = std::make_shared<const Itinerary>(std::move(it));
    return found;
  }

  std::unique_ptr<detail::NeighborOperation> compile(Algorithm algorithm, const NeighborCall& call,
                                                     bool own_types) {
    const Plan& p = plan(algorithm, call.pattern);
    return std::make_unique<detail::NeighborOperation>(comm, neighbors, p.itinerary, p.route, call, own_types,
                                                       [this, pattern = call.pattern] { return traffic(pattern); });
  }

  /// A call that only this rank cannot compile must not leave the others waiting; then it takes the tags.
  std::unique_ptr<detail::NeighborOperation> compile_or_refuse(Algorithm algorithm, const NeighborCall& call,
                                                               bool own_types, TagLease& tags, bool starts) {
    try {
      return compile(algorithm, call, own_types);
    } catch (...) {
      refuse(call.pattern, algorithm, std::move(tags), starts, current_argument_error());
      throw;
    }
  }

  TagLease lease(TagLease::Stay stay) { return {comm, identity->tags, detail::NeighborTags::kCount, stay}; }

  /// By which the others execute what this rank refuses.
  Algorithm algorithm_of_others(bool blocking) const {
    return blocking || forced != Algorithm::automatic ? forced : Algorithm::direct;
  }

  /// This rank cannot take part in the operation with these tags; the others begin it now if it `starts`.
  /// Messages of a lease that is disputed may be another's, and are left. False when it knows of nobody who came.
  bool refuse(Pattern pattern, Algorithm algorithm, TagLease tags, bool starts, const ArgumentError& error) {
    if (tags.disputed()) {
      const detail::NeighborTicket ticket(tags);
      detail::Parting(comm, ticket, traffic(pattern), algorithm).tell(error.mpi_class(), error.what(), [](int) {
        return 0;
      });
      return true;
    }
    const auto absence = detail::Absence::begin(comm, std::move(tags), traffic(pattern), algorithm, error);
    if (starts) wait_until([&] { return absence->settled() || lists_differ(); }, comm.spins());
    return absence->met_anyone();
  }

  /// Tags that are still in use would mix up messages. Where all ranks have ended the same operations, all of them
  /// come to this.
  void refuse_disputed(Pattern pattern, TagLease& tags, TagLease::Stay stay) {
    if (!tags.disputed()) return;
    const ArgumentError error(
        MPI_ERR_OTHER,
        "neighborhood: this MPI has tags for " + std::to_string(tags.room()) +
            (stay == TagLease::Stay::long_ ? " persistent requests made on a communicator while one of them lives: "
                                             "free requests sooner, or use another communicator"
                                           : " operations on a communicator while one of them is in flight: wait "
                                             "sooner"));
    refuse(pattern, Algorithm::automatic, std::move(tags), false, error);
    throw ArgumentError(error);
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

  /// At every blocking operation, so that all ranks come to the measurement at the same one, whatever algorithm is
  /// set on some of them.
  void know_link() {
    if (link_known) return;
    if (!has_known_link(comm)) identity->meet(comm, {});
    link = known_link(comm);
    link_known = true;
    forget_choices();
  }

  /// All ranks come together before a blocking operation.
  bool meets_before_blocking() const { return !identity->check_begun || !(link_known || has_known_link(comm)); }

  std::uint64_t fingerprint() const { return Fingerprint().add(neighbors.fingerprint()).add(link_known).value(); }

  void forget(const detail::NeighborOperation* operation) {
    std::erase_if(recent, [&](const Recent& r) { return r.operation.get() == operation; });
    next_recent = 0;
  }

  void begin_check() {
    identity->refuse_if_missing();
    if (identity->check_begun) return;
    check =
        std::make_shared<detail::ListCheck>(detail::Comparison::begin(comm, identity->tags.serial(), fingerprint()),
                                            [i = identity, c = comm] { i->listen(c); });
    identity->check_begun = identity->compares = true;
  }

  /// Asks, or waits for the answer.
  void finish_check() {
    identity->refuse_if_missing();
    if (!identity->check_begun) {
      check = std::make_shared<detail::ListCheck>(fingerprint(), [this](auto most) { identity->meet(comm, most); });
      identity->check_begun = true;
    }
    const auto done = [this] {
      if (check->done()) return true;
      check->listen();
      return false;
    };
    wait_until(done, comm.spins());
  }

  bool lists_differ() const { return check && check->failed(); }

  detail::NeighborTraffic traffic(Pattern pattern) {
    detail::NeighborTraffic t;
    for (Algorithm a : kCandidates) t.add(a, *plan(a, pattern).route);
    return t;
  }

  static constexpr Algorithm kCandidates[] = {Algorithm::direct, Algorithm::combining, Algorithm::logarithmic};

  static int size_class(std::int64_t bytes) {
    int bits = 0;
    for (; bytes > 0; bytes >>= 1) ++bits;
    return bits;
  }

  NeighborChoice choose(Pattern pattern, std::int64_t bytes) {
    std::vector<AlgorithmFigures> figures;
    for (Algorithm a : kCandidates)
      figures.push_back(figures_of(*plan(a, pattern).itinerary, neighbors.mesh(), bytes, link));
    if (const auto times = measured.find({pattern, size_class(bytes)}); times != measured.end())
      for (std::size_t k = 0; k < figures.size(); ++k) figures[k].measured_s = times->second[k];
    NeighborChoice choice = cheapest(std::move(figures), bytes);
    choice.link = link;
    return choice;
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
