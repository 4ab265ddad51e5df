#pragma once
/// Isomorphic, sparse collectives on any Cartesian communicator.
///
/// Source: "Isomorphic, Sparse MPI-like Collective Communication Operations for Parallel Stencil Computations"
/// (Träff, Lübbe, Rougier, Hunold 2015), section 6. All ranks hold the same ordered list of relative offsets; rank
/// X sends block i to X + C^i and receives block i from X - C^i. Off the mesh nothing is sent and the buffer of
/// that block is untouched. Whatever the algorithm, the results are the same bit for bit.

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "framework/domain/cartesian_domain.hpp"
#include "framework/neighborhood/neighbor_call.hpp"
#include "framework/neighborhood/neighbor_choice.hpp"

namespace isohalo {

class NeighborRequest;
class FormerIsoComm;
class FormerNeighborRequest;
namespace detail {
class IsoIdentity;
struct NeighborRequestImpl;
}

/// The mesh of a Cartesian communicator. Local. Throws ArgumentError (MPI_ERR_TOPOLOGY) when it has none.
std::shared_ptr<const Mesh> mesh_of(MPI_Comm cart);

/// A communicator with an isomorphic neighborhood. A handle: copies share one object, operations keep it alive.
/// Collectives must be begun in the same order on all ranks; several may be in flight and end in any order.
class IsoComm {
 public:
  /// `cart`: any communicator with a Cartesian topology; left as it is, duplicated privately the first time.
  /// `relative` is flat, s x d, dimension 0 first; offsets may repeat, be zero, or be longer than the mesh.
  /// Collective over `cart` the first time, local afterwards. Throws ArgumentError (MPI_ERR_TOPOLOGY without a
  /// Cartesian topology, MPI_ERR_ARG).
  IsoComm(MPI_Comm cart, std::span<const int> relative);
  /// On the process grid of a domain. Local.
  template <int D>
  IsoComm(const CartesianDomain<D>& domain, const Offsets<D>& offsets)
      : IsoComm(domain.comm(), [&] { return IsomorphicNeighborhood(domain, offsets); }) {}
  /// Of the neighborhood that `make` gives; it may throw. Local. Where an IsoComm cannot be made on some ranks, the
  /// first operation of the others throws the error.
  IsoComm(const Communicator& comm, const std::function<IsomorphicNeighborhood()>& make);

  const IsomorphicNeighborhood& neighbors() const;
  const Communicator& comm() const;

  /// Throws ArgumentError (MPI_ERR_TOPOLOGY), on all ranks, when the lists differ. Collective. The first operation
  /// makes the same check on its way, so that lists that differ are an error, not a hang.
  void check() const;

  /// Fixes the algorithm of later operations; `automatic` lets the library choose. Equal on all ranks. Local.
  /// Blocks of the v and w forms may have different sizes on different ranks under any of them.
  void set_algorithm(Algorithm algorithm);
  /// The itinerary that an algorithm uses here: rounds and volume. Local.
  const Itinerary& itinerary(Algorithm algorithm, Pattern pattern) const;

  /// The cost of a message by which `automatic` chooses. Equal on all ranks. Local. When it is not given, the first
  /// blocking operation measures it, once per communicator (some milliseconds).
  void set_link(const LinkCost& link);
  /// Measures it between neighboring ranks, sets and returns it. Collective.
  LinkCost measure_link();
  /// Times the algorithms on blocks of that size and remembers the result for `automatic`. Collective.
  NeighborChoice tune(Pattern pattern, std::int64_t block_bytes);
  /// What `automatic` would use for a blocking operation, with the figures of all candidates. Local.
  NeighborChoice choice(Pattern pattern, std::int64_t block_bytes) const;

  /// Takes part in an operation only by telling the others that this rank cannot: for arguments that are refused
  /// before there is a NeighborCall. They report `error`; none of them waits for ever. Collective in order.
  void refuse(Pattern pattern, bool blocking, bool persistent, const ArgumentError& error) const;

  /// Blocking. Collective. Throws ArgumentError for bad arguments and for blocks whose sizes do not fit those of
  /// the other side.
  void execute(const NeighborCall& call) const;
  /// Non-blocking: started when it returns. `automatic` means direct here and in `prepare`: with the other
  /// algorithms a rank must forward for others, which happens only while it waits in this library.
  NeighborRequest begin(const NeighborCall& call) const;
  /// Persistent: inactive when it returns. Starting allocates nothing.
  NeighborRequest prepare(const NeighborCall& call) const;

 private:
  friend struct detail::NeighborRequestImpl;
  friend class FormerIsoComm;
  friend class FormerNeighborRequest;
  struct State;
  explicit IsoComm(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::unique_ptr<detail::NeighborRequestImpl> make(const NeighborCall& call, bool persistent) const;
  std::shared_ptr<State> state_;
};

/// What is remembered of an IsoComm that this rank has let go of, in case that it is used again by mistake: enough
/// to take part in operations by telling the others so. Does not keep the communicator.
class FormerIsoComm {
 public:
  explicit FormerIsoComm(const IsoComm& comm);
  /// This rank cannot take part in an operation that the others may have begun, or have not: if they have, they
  /// report `error`. Nothing when the communicator is gone as well. Local; waits up to two seconds for the others.
  void refuse(Pattern pattern, bool blocking, bool persistent, const ArgumentError& error) const;
  /// The same for IsoComm::check.
  void refuse_check(const ArgumentError& error) const;
  const FormerCommunicator& comm() const { return comm_; }

 private:
  friend class FormerNeighborRequest;
  /// As it was; none when the communicator is gone.
  std::optional<IsoComm> again() const;

  FormerCommunicator comm_;
  IsomorphicNeighborhood neighbors_;
  std::shared_ptr<detail::IsoIdentity> identity_;
  Algorithm forced_;
  bool differed_, link_known_;
};

/// An operation begun or prepared. Move-only; one that is still in flight when it is destroyed is completed first.
class NeighborRequest {
 public:
  NeighborRequest() = default;
  NeighborRequest(NeighborRequest&&) noexcept;
  NeighborRequest& operator=(NeighborRequest&&) noexcept;
  ~NeighborRequest();

  explicit operator bool() const { return impl_ != nullptr; }
  bool persistent() const;
  bool active() const;
  /// Of one begun or prepared.
  const IsomorphicNeighborhood& neighbors() const;
  /// Starts a persistent one. Collective in order per request. Throws ArgumentError when it is active.
  void start();
  /// True when complete or inactive. Throws what went wrong. Local.
  bool test();
  /// Waits with back-off, advancing all operations in flight.
  void wait();
  /// Algorithm, rounds, messages and bytes that this rank sends.
  Algorithm algorithm() const;
  std::int64_t messages() const;
  std::int64_t bytes() const;

 private:
  friend class IsoComm;
  friend class FormerNeighborRequest;
  explicit NeighborRequest(std::unique_ptr<detail::NeighborRequestImpl> impl);
  std::unique_ptr<detail::NeighborRequestImpl> impl_;
};

/// What is remembered of a persistent request that this rank has let go of, in case that it is started again by
/// mistake. Does not keep the communicator.
class FormerNeighborRequest {
 public:
  explicit FormerNeighborRequest(const NeighborRequest& request);
  /// Takes part in a start only by telling the others that this rank cannot: they report `error`. Nothing when the
  /// communicator is gone as well. Collective in order.
  void refuse(const ArgumentError& error) const;
  const FormerCommunicator& comm() const { return comm_.comm(); }

 private:
  FormerIsoComm comm_;
  TagLease::Former tags_;
  Pattern pattern_;
  Algorithm algorithm_;
};

}  // namespace isohalo
