/// The execution of a compiled collective: stages, sizes, and what happens when something is wrong.

#include <cstring>
#include <list>
#include <utility>

#include "datatypes/large_count.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/neighborhood/neighbor_operation.hpp"

namespace isohalo::detail {

namespace {

/// What is in flight when an error is noted has so long to arrive.
constexpr std::chrono::seconds kPatience{2};

std::int64_t size_at(const std::vector<std::byte>& buffer, std::size_t k) {
  std::int64_t n = 0;
  std::memcpy(&n, buffer.data() + k * sizeof n, sizeof n);
  return n;
}

/// Buffers of messages that nobody has taken: MPI may still read them. There are some only after errors.
std::list<std::vector<std::byte>>& left_to_mpi() {
  static std::list<std::vector<std::byte>> buffers;
  return buffers;
}

}  // namespace

NeighborOperation::~NeighborOperation() {
  if (active() && mpi_is_active()) abandon();
}

template <class Work>
void NeighborOperation::guarded(Work&& work) noexcept {
  try {
    work();
  } catch (...) {
    const ArgumentError e = current_argument_error();
    note(e.mpi_class(), e.what());
    abandon();
  }
}

void NeighborOperation::note(int mpi_class, const std::string& text) {
  if (error_) return;
  error_ = std::make_unique<ArgumentError>(mpi_class, text);
  noted_ = Clock::now();
}

void NeighborOperation::rethrow() {
  if (!error_) return;
  const ArgumentError e = *std::exchange(error_, nullptr);
  throw e;
}

void NeighborOperation::abandon() noexcept {
  for (std::size_t k = 0; k < requests_.size(); ++k) {
    if (requests_[k] == MPI_REQUEST_NULL) continue;
    if (k < receiving_.size() && !sized_) {
      MPI_Cancel(&requests_[k]);
      MPI_Wait(&requests_[k], MPI_STATUS_IGNORE);
    } else {
      MPI_Request_free(&requests_[k]);
    }
  }
  for (auto& stage : stages_)  // not to be started again: its buffers are MPI's
    for (auto* side : {&stage.send, &stage.receive})
      for (auto& m : *side) left_to_mpi().push_back(std::move(m.buffer));
  for (auto& slot : temporaries_) left_to_mpi().push_back(std::move(slot));
  stages_.clear();
  requests_.clear();
  receiving_.clear();
  abandoned_ = true;
  deactivate(this);
}

void NeighborOperation::start(int tag) noexcept {
  tag_ = tag;
  launch();
  if (active() && (stages_.size() > 1 || sized_)) activate(this);
}

void NeighborOperation::begin() {
  completed_ = 0;
  guarded([this] {
    if (abandoned_)
      throw ArgumentError(MPI_ERR_OTHER, "neighborhood: an earlier start of this request failed: free it");
    for (const auto& [from, to] : first_copies_) copy(from, to);
  });
}

bool NeighborOperation::arrived(std::size_t stage) {
  if (stage == 0) return true;
  bool all = false;
  guarded([&] {
    all = (!sized_ || find_sized(stages_[stage - 1])) && complete();
    // A rank with other sizes may send fewer messages than this one expects, or take fewer.
    if (!all && error_ && Clock::now() > noted_ + kPatience) abandon();
  });
  return all;
}

void NeighborOperation::enter(std::size_t stage) {
  guarded([&] {
    if (abandoned_) return;
    if (stage > 0) take_in();
    if (stage < stages_.size())
      post(stages_[stage]);
    else
      finish();
  });
}

/// What a stage has brought.
void NeighborOperation::take_in() {
  for (Message* m : receiving_) {
    if (sized_)
      unpack_sized(*m);
    else if (!error_ && !m->buffer.empty())
      unpack(*m, 0);
  }
  requests_.clear();
  receiving_.clear();
  completed_ = 0;
}

void NeighborOperation::post(CompiledStage& stage) {
  for (auto& m : stage.receive) m.arriving = false;
  if (!sized_)
    for (auto& m : stage.receive) {
      receiving_.push_back(&m);
      requests_.push_back(MPI_REQUEST_NULL);
    }
  const auto receive_all = [this] {
    for (std::size_t k = 0; k < receiving_.size() && !sized_; ++k) receive(*receiving_[k], requests_[k]);
  };
  if (!sends_first_) receive_all();
  for (Message& m : stage.send) sized_ ? send_sized(m) : send(m);
  if (sends_first_) receive_all();
  for (const auto& [from, to] : stage.copies) copy(from, to);
}

/// What MPI is given for a message: its buffer, all blocks by one type, or its only block.
Block NeighborOperation::memory_of(Message& m) {
  if (!m.buffer.empty()) return {m.buffer.data(), m.bytes, MPI_PACKED};
  if (m.joined) return {static_cast<std::byte*>(MPI_BOTTOM), 1, m.joined.get()};
  return m.blocks.front().block;
}

void NeighborOperation::receive(Message& m, MPI_Request& request) {
  const Block b = memory_of(m);
  mpi_check(mpi::irecv(b.address, b.count, b.type, m.peer, tag_, comm_.get(), &request), "MPI_Irecv_c",
            comm_.get());
}

void NeighborOperation::send(Message& m) {
  if (!m.buffer.empty()) pack(m, 0);
  const Block b = memory_of(m);
  mpi_check(
      mpi::isend(b.address, b.count, b.type, m.peer, tag_, comm_.get(), &requests_.emplace_back(MPI_REQUEST_NULL)),
      "MPI_Isend_c", comm_.get());
}

void NeighborOperation::pack(Message& m, MPI_Count at) {
  for (const auto& planned : m.blocks) {
    const MessageBlock p = present(planned);
    if (p.bytes == 0) continue;
    if (p.dense) {
      std::memcpy(m.buffer.data() + at, p.dense, static_cast<std::size_t>(p.bytes));
      at += p.bytes;
    } else {
      mpi_check(mpi::pack(p.block.address, p.block.count, p.block.type, m.buffer.data(),
                          static_cast<MPI_Count>(m.buffer.size()), &at, comm_.get()),
                "MPI_Pack_c", comm_.get());
    }
  }
}

/// `at` becomes its end in the buffer.
void NeighborOperation::unpack_block(const Message& m, const MessageBlock& p, MPI_Count& at) {
  if (p.bytes == 0) return;
  if (p.dense) {
    std::memcpy(p.dense, m.buffer.data() + at, static_cast<std::size_t>(p.bytes));
    at += p.bytes;
  } else {
    mpi_check(mpi::unpack(m.buffer.data(), static_cast<MPI_Count>(m.buffer.size()), &at, p.block.address,
                          p.block.count, p.block.type, comm_.get()),
              "MPI_Unpack_c", comm_.get());
  }
}

void NeighborOperation::unpack(const Message& m, MPI_Count at) {
  for (const auto& p : m.blocks) unpack_block(m, p, at);
}

/// A table of the blocks' sizes, then the blocks.
void NeighborOperation::send_sized(Message& m) {
  const std::size_t table = m.blocks.size() * sizeof(std::int64_t);
  m.buffer.resize(table);
  m.bytes = 0;
  for (std::size_t k = 0; k < m.blocks.size(); ++k) {
    const std::int64_t n = present(m.blocks[k]).bytes;
    std::memcpy(m.buffer.data() + k * sizeof n, &n, sizeof n);
    m.bytes += n;
  }
  m.buffer.resize(table + static_cast<std::size_t>(m.bytes));
  pack(m, static_cast<MPI_Count>(table));
  mpi_check(mpi::isend(m.buffer.data(), static_cast<MPI_Count>(m.buffer.size()), MPI_PACKED, m.peer, tag_,
                       comm_.get(), &requests_.emplace_back(MPI_REQUEST_NULL)),
            "MPI_Isend_c", comm_.get());
}

/// Posts the receives of the messages that are there, each as large as it is; true when all of the stage are
/// posted.
bool NeighborOperation::find_sized(CompiledStage& stage) {
  bool all = true;
  for (auto& m : stage.receive) {
    if (m.arriving) continue;
    int found = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    mpi_check(MPI_Improbe(m.peer, tag_, comm_.get(), &found, &message, &status), "MPI_Improbe", comm_.get());
    if (!found) {
      all = false;
      continue;
    }
    MPI_Count bytes = 0;
    mpi_check(mpi::get_elements(&status, MPI_BYTE, &bytes), "MPI_Get_elements_c");
    m.buffer.resize(static_cast<std::size_t>(bytes));
    m.arriving = true;
    receiving_.push_back(&m);
    mpi_check(mpi::imrecv(m.buffer.data(), bytes, MPI_PACKED, &message, &requests_.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Imrecv_c", comm_.get());
  }
  return all;
}

void NeighborOperation::unpack_sized(Message& m) {
  const std::size_t table = m.blocks.size() * sizeof(std::int64_t);
  auto at = static_cast<MPI_Count>(table);
  for (std::size_t k = 0; k < m.blocks.size(); ++k) {
    const MessageBlock& p = m.blocks[k];
    const std::int64_t n = m.buffer.size() >= table ? size_at(m.buffer, k) : -1;
    if (n < 0 || n > static_cast<std::int64_t>(m.buffer.size()) - at)
      throw ArgumentError(MPI_ERR_OTHER, "neighborhood: rank " + std::to_string(m.peer) +
                                             " sent a message of another operation: all ranks must begin the same "
                                             "collectives in the same order");
    if (p.temporary >= 0) {
      temporaries_[static_cast<std::size_t>(p.temporary)].assign(m.buffer.begin() + at, m.buffer.begin() + at + n);
    } else if (n != p.bytes) {
      note(MPI_ERR_TRUNCATE, "neighborhood: a block of " + std::to_string(n) + " bytes reached rank " +
                                 std::to_string(comm_.rank()) + ", which receives " + std::to_string(p.bytes) +
                                 ": counts and types must fit on both sides");
    } else {
      MPI_Count from = at;
      unpack_block(m, p, from);
    }
    at += n;
  }
}

/// One request after the other, so that it is known which has failed. (MPICH hands the error of a message that is
/// too long to the error handler of the world communicator first, whichever call meets it.)
bool NeighborOperation::complete() {
  for (; completed_ < requests_.size(); ++completed_) {
    int done = 0;
    MPI_Status status;
    const int rc = MPI_Test(&requests_[completed_], &done, &status);
    int error_class = MPI_SUCCESS;
    if (rc != MPI_SUCCESS) MPI_Error_class(rc, &error_class);
    const bool receives = !sized_ && completed_ < receiving_.size();
    if (receives && error_class == MPI_ERR_TRUNCATE) {
      check_arrival(nullptr);
      continue;
    }
    mpi_check(rc, "MPI_Test in an isomorphic collective", comm_.get());
    if (!done) return false;
    if (receives) check_arrival(&status);
  }
  return true;
}

/// Every message must bring exactly the bytes that this rank expects: a sender with other counts or types is an
/// error here, not garbage. No status: it brought too many.
void NeighborOperation::check_arrival(const MPI_Status* status) {
  const Message& m = *receiving_[completed_];
  MPI_Count bytes = 0;
  if (status) {
    mpi_check(mpi::get_elements(status, MPI_BYTE, &bytes), "MPI_Get_elements_c");
    if (bytes == m.bytes) return;
  }
  note(MPI_ERR_TRUNCATE, "neighborhood: rank " + std::to_string(m.peer) + " sent " +
                             (status ? std::to_string(bytes) + " bytes instead of" : std::string("more than")) +
                             " the " + std::to_string(m.bytes) + " bytes that rank " +
                             std::to_string(comm_.rank()) +
                             " receives from it: counts and types must fit on both sides");
}

void NeighborOperation::copy(const MessageBlock& from, const MessageBlock& to) {
  const MessageBlock a = present(from);
  if (sized_ && to.temporary >= 0)
    temporaries_[static_cast<std::size_t>(to.temporary)].resize(static_cast<std::size_t>(a.bytes));
  const MessageBlock b = present(to);
  if (a.bytes != b.bytes) {
    note(MPI_ERR_TRUNCATE, "neighborhood: rank " + std::to_string(comm_.rank()) + " sends " +
                               std::to_string(a.bytes) + " bytes to itself but receives " +
                               std::to_string(b.bytes) + ": counts and types must fit on both sides");
    return;
  }
  if (a.bytes == 0) return;
  if (a.dense && b.dense) {
    std::memmove(b.dense, a.dense, static_cast<std::size_t>(a.bytes));
    return;
  }
  const int self = comm_.rank();
  const Block &out = a.block, &in = b.block;
  mpi_check(
      mpi::sendrecv(out.address, out.count, out.type, self, in.address, in.count, in.type, self, tag_, comm_.get()),
      "MPI_Sendrecv_c of a block of this rank itself", comm_.get());
}

void NeighborOperation::finish() {
  for (const auto& [from, to] : last_copies_) copy(from, to);
  if (call_.is_reduction() && !error_) fold();
}

void NeighborOperation::fold() {
  const Block* value = nullptr;
  for (std::size_t i = 0; i < source_exists_.size(); ++i) {
    if (!source_exists_[i]) continue;
    const Block& next = call_.receive[i];
    if (value)  // next = value op next
      mpi_check(mpi::reduce_local(value->address, next.address, next.count, next.type, call_.fold.op),
                "MPI_Reduce_local_c");
    value = &next;
  }
  if (value) copy(message_block_of(*value), message_block_of(call_.fold.into));
}

}  // namespace isohalo::detail
