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
#include "framework/neighborhood/giving_up.hpp"
#include "framework/neighborhood/list_check.hpp"
#include "framework/neighborhood/neighbor_call.hpp"
#include "framework/neighborhood/route.hpp"

namespace isohalo::detail {

/// Executes a route over MPI. Starting, advancing and completing allocate nothing once messages have had their
/// size.
///
/// A message of one block, or of one that is worth a message of its own, is sent from where it lies. Several small
/// blocks are packed into a buffer; several large ones travel through one datatype with absolute addresses, without
/// a copy. Blocks that this rank forwards are kept packed. Where they need not have one size on all ranks (v and w
/// forms), forwarded messages carry the sizes of their blocks.
///
/// Errors: a message whose size does not fit is noted, and the execution goes on, because other ranks wait for what
/// this one forwards. After any other error this rank gives up and tells those that have to do with it, which do
/// the same: none hangs, and none ends before the blocks that it has sent from where they lie have been taken by
/// ranks that come in time (see Parting).
class NeighborOperation final : public Progressable {
 public:
  /// `route`: of this rank along `itinerary`. `own_types`: duplicate derived types, because the caller may free
  /// them before the operation has ended. `traffic`: what it takes to give up. Local.
  NeighborOperation(const Communicator& comm, const IsomorphicNeighborhood& neighbors,
                    std::shared_ptr<const Itinerary> itinerary, std::shared_ptr<const Route> route,
                    const NeighborCall& call, bool own_types, std::function<NeighborTraffic()> traffic);
  ~NeighborOperation() override;

  /// Posts the first phase. `ticket`: of NeighborTags::kCount tags, equal on all ranks, not used by another
  /// operation in flight. Not complete before `check` has passed; an error when it fails. Local. Does not throw:
  /// see `rethrow`.
  void start(const NeighborTicket& ticket, std::shared_ptr<ListCheck> check = nullptr) noexcept;
  void advance() noexcept override;
  bool active() const { return active_; }
  /// Throws, once, what went wrong.
  void rethrow();
  /// The last execution was given up, here or on another rank; not to be started again.
  bool stopped() const { return stopped_; }
  /// What went wrong; when `stopped`.
  const ArgumentError& error() const { return *error_; }

  const NeighborCall& call() const { return call_; }
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
  void compile(const std::vector<RouteMessage>& from, bool sending, Phase& phase, std::vector<Message>& to);
  void add_message(std::vector<Message>& to, int peer, int tag, std::vector<Piece> pieces);

  // Executing: neighbor_execution.cpp
  template <class Work>
  void guarded(Work&& work) noexcept;
  void begin();
  void post();
  void send(Message& message);
  void receive(Message& message, MPI_Request& request);
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

  // Giving up: neighbor_ending.cpp
  void look_for_stop();
  void look_now_and_then();
  void look_for_trouble();
  void note(int mpi_class, const std::string& text);
  void stop(int mpi_class, const std::string& text) noexcept;
  void part() noexcept;
  void withdraw_receives();
  int sent_to(int peer) const;
  void let_go() noexcept;
  void end() noexcept;

  Communicator comm_;
  std::shared_ptr<const Itinerary> itinerary_;
  std::shared_ptr<const Route> route_;
  NeighborCall call_;
  std::function<NeighborTraffic()> traffic_;
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
  std::size_t posted_ = 0;           ///< sends of the current phase
  std::size_t awaited_ = 0;          ///< its receives that are posted, of messages whose size is known
  std::size_t phase_ = 0;
  NeighborTicket ticket_;
  int misses_ = 0;
  bool large_in_place_ = false;  ///< MPI may read blocks after `start`, where they lie
  bool sends_first_ = false;     ///< before the receives of a phase
  bool active_ = false;
  bool finished_ = false;  ///< all but the check
  bool stopped_ = false;
  std::shared_ptr<ListCheck> check_;          ///< until it has passed
  std::vector<std::pair<int, int>> notices_;  ///< of others that gave up: rank, messages sent to this one
  std::vector<std::pair<int, int>> taken_;  ///< messages that have been received when this rank gives up: rank, tag
  std::unique_ptr<Parting> parting_;
  std::unique_ptr<ArgumentError> error_;
};

}  // namespace isohalo::detail
