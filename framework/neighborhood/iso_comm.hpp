#pragma once
/// Isomorphic, sparse collectives on any Cartesian communicator: rank X sends block i to X + C^i and receives block
/// i from X - C^i (docs/neighborhoods.md; Träff, Lübbe, Rougier, Hunold 2015, section 6).

#include <memory>
#include <span>

#include "framework/domain/cartesian_domain.hpp"
#include "framework/neighborhood/neighbor_call.hpp"
#include "framework/neighborhood/neighbor_choice.hpp"

namespace isohalo {

class NeighborRequest;
namespace detail {
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
      : IsoComm(domain.comm(), IsomorphicNeighborhood(domain, offsets)) {}
  /// Local.
  IsoComm(const Communicator& comm, IsomorphicNeighborhood neighbors);

  const IsomorphicNeighborhood& neighbors() const;
  const Communicator& comm() const;

  /// Throws ArgumentError (MPI_ERR_TOPOLOGY), on all ranks, when the lists, or the algorithms that were set,
  /// differ, with what differs and where. Collective. Only the first blocking operation looks for that, too, at
  /// check level `communication` (agreement.hpp).
  void check() const;

  /// Fixes the algorithm of later operations; `automatic` lets the library choose. Equal on all ranks. Local.
  void set_algorithm(Algorithm algorithm);
  /// The schedule that an algorithm uses here: rounds and volume. Local.
  const NeighborSchedule& schedule(Algorithm algorithm, Pattern pattern) const;

  /// What `automatic` would use for a blocking operation, with the figures of all candidates. Local.
  NeighborChoice choice(Pattern pattern, std::int64_t block_bytes) const;

  /// Blocking. Collective. Throws ArgumentError for blocks whose sizes do not fit those of the other side. What is
  /// wrong on one rank is that rank's error; ranks that wait for it go on waiting, as in MPI.
  void execute(const NeighborCall& call) const;
  /// Non-blocking: started when it returns. `automatic` means direct here and in `prepare`.
  NeighborRequest begin(const NeighborCall& call) const;
  /// Persistent: inactive when it returns. Starting allocates nothing.
  NeighborRequest prepare(const NeighborCall& call) const;

 private:
  friend struct detail::NeighborRequestImpl;
  struct State;
  std::shared_ptr<State> state_;
};

/// An operation begun or prepared. Move-only; one that is still in flight when it is destroyed is completed first.
class NeighborRequest {
 public:
  NeighborRequest() noexcept;
  NeighborRequest(NeighborRequest&&) noexcept;
  NeighborRequest& operator=(NeighborRequest&&) noexcept;
  ~NeighborRequest();

  explicit operator bool() const { return impl_ != nullptr; }
  bool persistent() const;
  /// Starts a persistent one. Collective in order per request. Throws ArgumentError when it is active.
  void start();
  /// True when complete or inactive. Throws what went wrong. Local.
  bool test();
  /// Waits with back-off, advancing all operations in flight.
  void wait();

 private:
  friend class IsoComm;
  explicit NeighborRequest(std::unique_ptr<detail::NeighborRequestImpl> impl);
  std::unique_ptr<detail::NeighborRequestImpl> impl_;
};

}  // namespace isohalo
