#pragma once
/// A collective compiled for one rank: messages with addresses, types and buffers, ready to be started again and
/// again.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "datatypes/datatype.hpp"
#include "framework/mpi/communicator.hpp"
#include "framework/neighborhood/local_schedule.hpp"
#include "framework/neighborhood/neighbor_call.hpp"
#include "framework/schedule/stages.hpp"

namespace isohalo::detail {

/// Executes a local schedule over MPI. Starting, advancing and completing allocate nothing once messages have had
/// their size.
///
/// A message of one block, or of one that is worth a message of its own, is sent from where it lies. Several small
/// blocks are packed into a buffer; several large ones travel through one datatype with absolute addresses, without
/// a copy. Blocks that this rank forwards are kept packed. Where they need not have one size on all ranks (v and w
/// forms), forwarded messages carry the sizes of their blocks.
///
/// Errors: a message whose size does not fit is noted, and the execution goes on for a while, because other ranks
/// wait for what this one forwards. After any other error the receives are withdrawn, and sends that nobody takes
/// are left to MPI.
class NeighborOperation final : public StageExecutor<NeighborOperation> {
 public:
  /// `local`: of this rank. `own_types`: duplicate derived types, because the caller may
  /// free them before the operation has ended. Local.
  NeighborOperation(const Communicator& comm, const IsomorphicNeighborhood& neighbors,
                    std::shared_ptr<const LocalSchedule> local, const NeighborCall& call, bool own_types);
  ~NeighborOperation() override;

  /// Posts the first stage. `tag`: equal on all ranks, not used by another operation in flight. One is enough for
  /// all messages, because MPI keeps their order between two ranks. Local. Does not throw: see `rethrow`.
  void start(int tag) noexcept;
  bool active() const { return !ended(); }
  /// Throws, once, what went wrong.
  void rethrow();
  /// Ends an execution that cannot go on. Local.
  void abandon() noexcept;
  /// It has ended so once: not to be started again.
  bool abandoned() const { return abandoned_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct MessageBlock {
    Block block;
    std::int64_t bytes = 0;
    std::byte* dense = nullptr;  ///< its first byte, when the block is one run of bytes
    int temporary = -1;          ///< slot, when it lies there
  };
  struct Message {
    int peer = 0;
    std::vector<MessageBlock> blocks;
    std::int64_t bytes = 0;
    std::vector<std::byte> buffer;  ///< packed
    Datatype joined;                ///< zero copy
    bool arriving = false;          ///< sized messages: found, its receive is posted
  };
  struct CompiledStage {
    std::vector<Message> send, receive;
    std::vector<std::pair<MessageBlock, MessageBlock>> copies;  ///< blocks that this rank sends to itself
  };

  // Compiling: neighbor_operation.cpp
  const TypeLayout& layout(MPI_Datatype type);
  void keep_block(Block& block, bool own);
  MPI_Datatype kept(MPI_Datatype type, bool own);
  void place_temporaries();
  void place_operands();
  MessageBlock message_block_of(const Block& block);
  MessageBlock message_block_at(const BlockPlace& place);
  /// The block itself, or a temporary one with the address and size that its slot has by now.
  MessageBlock present(const MessageBlock& block);
  void compile(const std::vector<LocalMessage>& from, bool sending, CompiledStage& stage, std::vector<Message>& to);
  void add_message(std::vector<Message>& to, int peer, std::vector<MessageBlock> blocks);

  // Executing: neighbor_execution.cpp
  // None of these throws.
  friend class StageExecutor<NeighborOperation>;
  std::size_t stages() const { return stages_.size(); }
  void begin();
  bool arrived(std::size_t stage);
  void enter(std::size_t stage);
  bool left() { return true; }  // a stage has ended when its sends have
  template <class Work>
  void guarded(Work&& work) noexcept;
  void post(CompiledStage& stage);
  static Block memory_of(Message& message);
  void send(Message& message);
  void receive(Message& message, MPI_Request& request);
  void pack(Message& message, MPI_Count at);
  void unpack_block(const Message& message, const MessageBlock& block, MPI_Count& at);
  void unpack(const Message& message, MPI_Count at);
  void send_sized(Message& message);
  void unpack_sized(Message& message);
  void take_in();
  bool find_sized(CompiledStage& stage);
  bool complete();
  void check_arrival(const MPI_Status* status);
  void note(int mpi_class, const std::string& text);
  void copy(const MessageBlock& from, const MessageBlock& to);
  void finish();
  void fold();

  Communicator comm_;
  std::shared_ptr<const LocalSchedule> local_;
  NeighborCall call_;
  bool sized_ = false;  ///< messages carry the sizes of their blocks
  std::vector<Datatype> owned_types_;
  std::vector<std::pair<MPI_Datatype, MPI_Datatype>> kept_;
  std::vector<std::pair<MPI_Datatype, TypeLayout>> layouts_;
  std::vector<bool> source_exists_;
  std::vector<std::vector<std::byte>> temporaries_, operands_;
  std::vector<CompiledStage> stages_;
  std::vector<std::pair<MessageBlock, MessageBlock>> first_copies_, last_copies_;
  std::vector<MPI_Request> requests_;
  std::vector<Message*> receiving_;  ///< the receives of the current stage, beside the first requests
  std::size_t completed_ = 0;        ///< requests that have been
  int tag_ = 0;
  bool sends_first_ = false;  ///< before the receives of a stage
  bool abandoned_ = false;
  std::unique_ptr<ArgumentError> error_;
  Clock::time_point noted_;  ///< when it was
};

}  // namespace isohalo::detail
