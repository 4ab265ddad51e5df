#pragma once
/// A collective compiled for one rank: messages with addresses, types and buffers, ready to be started again and
/// again.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "datatypes/datatype.hpp"
#include "framework/mpi/communicator.hpp"
#include "framework/mpi/progress.hpp"
#include "framework/neighborhood/neighbor_call.hpp"
#include "framework/neighborhood/route.hpp"

namespace isohalo::detail {

/// The tags of one execution, the same on all ranks whatever their arguments are, so that an operation that is
/// wrong on some rank leaves the tags of all later ones in step.
struct NeighborTags {
  static constexpr int kPhases = 128, kCount = 3 + 2 * kPhases;
  static constexpr int stop = 0;  ///< "a rank has given up", with its error
  /// One message per peer and phase; or, direct algorithm only, one per block, in list order.
  static int data(Algorithm algorithm, bool per_block, int phase) {
    if (algorithm == Algorithm::direct) return 1 + per_block;  // it has one phase
    return 3 + (algorithm == Algorithm::logarithmic) * kPhases + phase;
  }
};

/// Executes a route over MPI. Starting, advancing and completing allocate nothing once messages have had their
/// size.
///
/// A message of one block, or of one that is worth a message of its own, is sent from where it lies. Several small
/// blocks are packed into a buffer; several large ones travel through one datatype with absolute addresses, without
/// a copy. Blocks that this rank forwards are kept packed. Where they need not have one size on all ranks (v and w
/// forms), forwarded messages carry the sizes of their blocks.
///
/// Errors: a message whose size does not fit is noted, and the execution goes on, because other ranks wait for what
/// this one forwards. After any other error this rank gives up and tells those that may wait for it, which do the
/// same: all of them report it, none hangs.
class NeighborOperation final : public Progressable {
 public:
  /// `route`: of this rank along `itinerary`. `own_types`: duplicate derived types, because the caller may free
  /// them before the operation has ended. `dependants`: the ranks that may wait for this one, under any algorithm.
  /// Local.
  NeighborOperation(const Communicator& comm, const IsomorphicNeighborhood& neighbors,
                    std::shared_ptr<const Itinerary> itinerary, std::shared_ptr<const Route> route,
                    const NeighborCall& call, bool own_types, std::function<std::vector<int>()> dependants);
  ~NeighborOperation() override;

  /// Posts the first phase. `first_tag`: of NeighborTags::kCount tags, equal on all ranks, not used by another
  /// operation in flight. Local. Does not throw: see `rethrow`.
  void start(int first_tag) noexcept;
  void advance() noexcept override;
  bool active() const { return active_; }
  /// Throws, once, what went wrong.
  void rethrow();
  /// The last execution was given up, here or on another rank: messages of it may still be under its tags.
  bool stopped() const { return stopped_; }
  /// Gives up an execution whose messages will never come, without telling anybody. Local.
  void abandon() noexcept;

  const Route& route() const { return *route_; }
  std::int64_t bytes_sent() const;

 private:
  struct Piece {
    Block block;
    std::int64_t bytes = 0;
    std::byte* dense = nullptr;  ///< its first byte, when the block is one run of bytes
    int temporary = -1;          ///< slot, when it lies there
  };
  struct Message {
    int peer = 0, tag = 0;
    std::vector<Piece> pieces;
    std::int64_t bytes = 0;
    std::vector<std::byte> buffer;  ///< packed
    Datatype joined;                ///< zero copy
    bool arriving = false;          ///< sized messages: found, its receive is posted
  };
  struct Phase {
    std::vector<Message> send, receive;
    std::vector<std::pair<Piece, Piece>> copies;  ///< blocks that this rank sends to itself
  };

  // Compiling: neighbor_operation.cpp
  const TypeLayout& layout(MPI_Datatype type);
  void keep_block(Block& block, bool own);
  MPI_Datatype kept(MPI_Datatype type, bool own);
  void place_temporaries();
  void place_operands();
  Piece piece_of(const Block& block);
  Piece piece(const Place& place);
  void compile(const std::vector<RouteMessage>& from, int phase_number, bool sending, Phase& phase,
               std::vector<Message>& to);
  void add_message(std::vector<Message>& to, int peer, int tag, std::vector<Piece> pieces);

  // Executing: neighbor_execution.cpp
  void post();
  void send(Message& message);
  void receive(Message& message);
  void pack(Message& message, MPI_Count at);
  void unpack(Message& message, MPI_Count at);
  void send_sized(Message& message);
  void unpack_sized(Message& message);
  bool find_sized();
  bool step();
  bool complete();
  void check_arrival(const MPI_Status* status);
  void copy(const Piece& from, const Piece& to);
  void finish();
  void fold();
  void look_for_trouble();
  void note(int mpi_class, const std::string& text);
  void stop(int mpi_class, const std::string& text) noexcept;
  void cancel() noexcept;

  Communicator comm_;
  std::shared_ptr<const Itinerary> itinerary_;
  std::shared_ptr<const Route> route_;
  NeighborCall call_;
  std::function<std::vector<int>()> dependants_;
  bool sized_ = false;  ///< messages carry the sizes of their blocks
  std::vector<Datatype> owned_types_;
  std::vector<std::pair<MPI_Datatype, MPI_Datatype>> kept_;
  std::vector<std::pair<MPI_Datatype, TypeLayout>> layouts_;
  std::vector<bool> source_exists_;
  std::vector<std::vector<std::byte>> temporaries_, operands_;
  std::vector<Phase> phases_;
  std::vector<std::pair<Piece, Piece>> first_copies_, last_copies_;
  std::vector<MPI_Request> requests_;
  std::vector<Message*> receiving_;  ///< the receives of the current phase, beside the first requests
  std::size_t completed_ = 0;        ///< requests that have been
  std::size_t phase_ = 0;
  int first_tag_ = 0;
  int misses_ = 0;
  bool stopped_ = false;
  bool active_ = false;
  std::unique_ptr<ArgumentError> error_;
};

/// Tells `peers` that this rank gives up the operation with these tags. Local; never throws.
void send_stop(const Communicator& comm, const std::vector<int>& peers, int first_tag, int mpi_class,
               const std::string& text) noexcept;

}  // namespace isohalo::detail
