#pragma once
/// A collective compiled for one rank: messages with addresses, types and buffers, ready to be started again and
/// again.

#include <memory>
#include <string>
#include <vector>

#include "datatypes/datatype.hpp"
#include "framework/mpi/communicator.hpp"
#include "framework/mpi/progress.hpp"
#include "framework/neighborhood/neighbor_call.hpp"
#include "framework/neighborhood/route.hpp"

namespace isohalo::detail {

/// Executes a route over MPI. Starting, advancing and completing allocate nothing.
///
/// A message of one block, or of one that is worth a message of its own, is sent from where it lies. Several small
/// blocks are packed into a buffer; several large ones travel through one datatype with absolute addresses, without
/// a copy. The two ends need not choose alike: packed data match any type.
class NeighborOperation final : public Progressable {
 public:
  /// `route`: of this rank along `itinerary`. `own_types`: duplicate
  /// derived types, because the caller may free them before the operation has ended. Throws ArgumentError for a
  /// temporary block without a type. Local.
  NeighborOperation(const Communicator& comm, const IsomorphicNeighborhood& neighbors,
                    std::shared_ptr<const Itinerary> itinerary, std::shared_ptr<const Route> route,
                    const NeighborCall& call, bool own_types);

  /// Tags that one execution takes.
  int tags() const { return static_cast<int>(itinerary_->steps.size()); }
  /// Posts the first phase. `first_tag`: equal on all ranks, not used by another operation in flight. Local.
  void start(int first_tag);
  void advance() override;
  bool active() const { return active_; }
  /// The error that the execution met, if any; the remaining phases were executed all the same, because other ranks
  /// wait for them. Throws it once.
  void rethrow();

  /// Gives up an execution whose messages will never come. Local.
  void abandon() noexcept;

  const Route& route() const { return *route_; }
  std::int64_t bytes_sent() const;

 private:
  struct Piece {
    Block block;
    std::int64_t bytes = 0;
    std::byte* dense = nullptr;  ///< its first byte, when the block is one run of bytes
    int step = 0;
  };
  struct Message {
    int peer = 0, step = 0;
    std::vector<Piece> pieces;
    std::int64_t bytes = 0;
    std::vector<std::byte> buffer;  ///< packed
    Datatype joined;                ///< zero copy
  };
  struct Phase {
    std::vector<Message> send, receive;
    std::vector<std::pair<Piece, Piece>> copies;  ///< blocks that this rank sends to itself
  };

  const TypeLayout& layout(MPI_Datatype type);
  MPI_Datatype kept(MPI_Datatype type, bool own);
  void place_temporaries();
  void place_operands();
  std::byte* storage_for(const Block& block, std::size_t slot);
  Piece piece_of(const Block& block, int step);
  Piece piece(const Place& place, int step);
  void compile(const std::vector<RouteMessage>& from, bool sending, Phase& phase, std::vector<Message>& to);
  void add_message(std::vector<Message>& to, int peer, std::vector<Piece> pieces);
  void post();
  void send(Message& message);
  void receive(Message& message);
  void unpack();
  void check_arrivals(bool failed);
  void copy(const Piece& from, const Piece& to);
  void finish();
  void fold();
  void fail(int mpi_class, const std::string& text);

  Communicator comm_;
  std::shared_ptr<const Itinerary> itinerary_;
  std::shared_ptr<const Route> route_;
  NeighborCall call_;
  std::vector<Datatype> owned_types_;
  std::vector<std::pair<MPI_Datatype, MPI_Datatype>> kept_;
  std::vector<std::pair<MPI_Datatype, TypeLayout>> layouts_;
  std::vector<bool> source_exists_, target_exists_;
  std::vector<Block> temporaries_;
  std::vector<std::vector<std::byte>> storage_;
  std::vector<Phase> phases_;
  std::vector<std::pair<Piece, Piece>> first_copies_, last_copies_;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
  std::vector<Message*> receiving_;  ///< the receives of the current phase, beside the first requests
  std::size_t phase_ = 0;
  int first_tag_ = 0;
  bool active_ = false;
  std::unique_ptr<ArgumentError> error_;
};

}  // namespace isohalo::detail
