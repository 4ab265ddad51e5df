#include "framework/neighborhood/neighbor_operation.hpp"

#include <cstring>
#include <utility>

#include "datatypes/mpi_check.hpp"

namespace isohalo::detail {

namespace {

/// Several blocks share a packed message when it stays this small, or when the blocks are: below about 10 KB
/// derived datatypes lose up to a factor of two against a copy, and many small messages lose more.
constexpr std::int64_t kPackBytes = 8192, kPackBlockBytes = 2048;

bool worth_packing(std::int64_t bytes, std::size_t blocks) {
  return bytes <= kPackBytes || bytes <= kPackBlockBytes * static_cast<std::int64_t>(blocks);
}
constexpr std::size_t kAlignment = 64;

}  // namespace

NeighborOperation::NeighborOperation(const Communicator& comm, const IsomorphicNeighborhood& neighbors,
                                     std::shared_ptr<const Itinerary> itinerary, std::shared_ptr<const Route> route,
                                     const NeighborCall& call, bool own_types)
    : comm_(comm), itinerary_(std::move(itinerary)), route_(std::move(route)), call_(call) {
  for (int r : neighbors.sources()) source_exists_.push_back(r != Mesh::no_rank);
  for (int r : neighbors.targets()) target_exists_.push_back(r != Mesh::no_rank);
  for (std::size_t i = 0; i < call_.send.size(); ++i)
    if (call_.pattern == Pattern::shared || target_exists_[i])
      call_.send[i].type = kept(call_.send[i].type, own_types);
  for (std::size_t i = 0; i < call_.receive.size(); ++i)
    if (source_exists_[i]) call_.receive[i].type = kept(call_.receive[i].type, own_types);
  if (call_.is_reduction()) {
    call_.fold.into.type = kept(call_.fold.into.type, own_types);
    place_operands();
  }
  place_temporaries();
  for (const auto& c : route_->first) first_copies_.emplace_back(piece(c.from, 0), piece(c.to, 0));
  for (const auto& c : route_->last) last_copies_.emplace_back(piece(c.from, 0), piece(c.to, 0));
  std::size_t most = 0;
  for (const auto& planned : route_->phases) {
    Phase& phase = phases_.emplace_back();
    compile(planned.send, true, phase, phase.send);
    compile(planned.receive, false, phase, phase.receive);
    most = std::max(most, phase.send.size() + phase.receive.size());
  }
  requests_.reserve(most);
  statuses_.resize(most);
  receiving_.reserve(most);
}

MPI_Datatype NeighborOperation::kept(MPI_Datatype type, bool own) {
  if (!own || layout(type).predefined) return type;
  for (const auto& [theirs, ours] : kept_)
    if (theirs == type) return ours;
  MPI_Datatype copy = MPI_DATATYPE_NULL;
  mpi_check(MPI_Type_dup(type, &copy), "MPI_Type_dup of an argument");
  owned_types_.push_back(Datatype::adopt(copy));
  kept_.emplace_back(type, copy);
  return copy;
}

const TypeLayout& NeighborOperation::layout(MPI_Datatype type) {
  for (const auto& [known, l] : layouts_)
    if (known == type) return l;
  return layouts_.emplace_back(type, layout_of(type)).second;
}

/// Room for a block of that count and type; returns the address at which the block's type must be applied.
std::byte* NeighborOperation::storage_for(const Block& block, std::size_t slot) {
  const TypeLayout l = layout(block.type);
  std::int64_t span = 0, low = l.true_low;
  if (block.count > 0) {
    const std::int64_t shift = (block.count - 1) * l.extent;  // negative extents are possible
    span = l.true_extent + std::abs(shift);
    low += std::min<std::int64_t>(0, shift);
  }
  auto& memory = storage_[slot];
  memory.resize(static_cast<std::size_t>(span) + kAlignment);
  auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  address = (address + kAlignment - 1) / kAlignment * kAlignment;
  return reinterpret_cast<std::byte*>(address - static_cast<std::uintptr_t>(low));
}

/// A forwarded block has the size that it has on every rank: this rank's own block of that offset tells it, as
/// received or, where that source is absent, as sent; where both are absent, the caller's arguments for them.
void NeighborOperation::place_temporaries() {
  std::size_t slot = storage_.size();
  storage_.resize(slot + route_->temporary_offsets.size());
  for (int offset : route_->temporary_offsets) {
    const auto i = static_cast<std::size_t>(offset);
    const Block& sent = call_.send[call_.pattern == Pattern::shared ? 0 : i];
    Block b = call_.pattern == Pattern::shared ? sent : call_.receive[i];
    if (call_.pattern == Pattern::personal && !source_exists_[i] && target_exists_[i]) b = sent;
    if (b.type == MPI_DATATYPE_NULL || b.count < 0)
      throw ArgumentError(MPI_ERR_TYPE,
                          "neighborhood: block " + std::to_string(offset) +
                              " is forwarded by this rank, which has no such neighbor and no count and "
                              "type for it: pass the size the block has on all ranks, or use the direct "
                              "algorithm");
    b.address = storage_for(b, slot++);
    temporaries_.push_back(b);
  }
}

void NeighborOperation::place_operands() {
  storage_.resize(source_exists_.size());
  call_.receive.assign(source_exists_.size(), Block{nullptr, call_.fold.into.count, call_.fold.into.type});
  for (std::size_t i = 0; i < source_exists_.size(); ++i)
    if (source_exists_[i]) call_.receive[i].address = storage_for(call_.receive[i], i);
}

NeighborOperation::Piece NeighborOperation::piece_of(const Block& block, int step) {
  const TypeLayout& l = layout(block.type);
  Piece p{block, block.count * l.size, nullptr, step};
  if (l.dense())
    p.dense = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(block.address) +
                                           static_cast<std::uintptr_t>(l.true_low));
  return p;
}

NeighborOperation::Piece NeighborOperation::piece(const Place& place, int step) {
  const auto i = static_cast<std::size_t>(place.index);
  switch (place.kind) {
    case Place::Kind::send:
      return piece_of(call_.send[i], step);
    case Place::Kind::receive:
      return piece_of(call_.receive[i], step);
    case Place::Kind::temporary:
      break;
  }
  return piece_of(temporaries_[i], step);
}

void NeighborOperation::compile(const std::vector<RouteMessage>& from, bool sending, Phase& phase,
                                std::vector<Message>& to) {
  for (const auto& planned : from) {
    std::vector<Piece> pieces;
    std::int64_t bytes = 0;
    for (const auto& part : planned.parts) {
      pieces.push_back(piece(part.place, part.step));
      bytes += pieces.back().bytes;
    }
    if (planned.peer == route_->rank) {
      if (phase.copies.empty()) phase.copies.resize(pieces.size());
      for (std::size_t k = 0; k < pieces.size(); ++k)
        (sending ? phase.copies[k].first : phase.copies[k].second) = pieces[k];
    } else if (itinerary_->algorithm == Algorithm::direct && !worth_packing(bytes, pieces.size())) {
      for (auto& p : pieces) add_message(to, planned.peer, {p});  // each from and to where it lies
    } else {
      add_message(to, planned.peer, std::move(pieces));
    }
  }
}

void NeighborOperation::add_message(std::vector<Message>& to, int peer, std::vector<Piece> pieces) {
  Message m;
  m.peer = peer;
  m.step = pieces.front().step;
  for (const auto& p : pieces) m.bytes += p.bytes;
  m.pieces = std::move(pieces);
  if (m.pieces.size() > 1 && worth_packing(m.bytes, m.pieces.size())) {
    m.buffer.resize(static_cast<std::size_t>(m.bytes) + 1);
  } else if (m.pieces.size() > 1) {
    std::vector<MPI_Count> counts, addresses;
    std::vector<MPI_Datatype> types;
    for (const auto& p : m.pieces) {
      counts.push_back(p.block.count);
      addresses.push_back(static_cast<MPI_Count>(reinterpret_cast<std::intptr_t>(p.block.address)));
      types.push_back(p.block.type);
    }
    MPI_Datatype t = MPI_DATATYPE_NULL;
    mpi_check(MPI_Type_create_struct_c(static_cast<MPI_Count>(counts.size()), counts.data(), addresses.data(),
                                       types.data(), &t),
              "MPI_Type_create_struct_c of a combined message");
    m.joined = Datatype::adopt(t);
  }
  to.push_back(std::move(m));
}

void NeighborOperation::start(int first_tag) {
  first_tag_ = first_tag;
  active_ = true;
  phase_ = 0;
  if (phases_.size() > 1) activate(this);
  for (const auto& [from, to] : first_copies_) copy(from, to);
  if (phases_.empty())
    finish();
  else
    post();
}

void NeighborOperation::post() {
  Phase& phase = phases_[phase_];
  for (auto& m : phase.receive) receive(m);
  for (auto& m : phase.send) send(m);
  for (const auto& [from, to] : phase.copies) copy(from, to);
}

void NeighborOperation::receive(Message& m) {
  const MPI_Comm comm = comm_.get();
  const int tag = first_tag_ + m.step;
  const Block& b = m.pieces.front().block;
  receiving_.push_back(&m);
  MPI_Request& request = requests_.emplace_back(MPI_REQUEST_NULL);
  if (!m.buffer.empty())
    mpi_check(MPI_Irecv_c(m.buffer.data(), m.bytes, MPI_PACKED, m.peer, tag, comm, &request), "MPI_Irecv_c", comm);
  else if (m.joined)
    mpi_check(MPI_Irecv_c(MPI_BOTTOM, 1, m.joined.get(), m.peer, tag, comm, &request), "MPI_Irecv_c", comm);
  else
    mpi_check(MPI_Irecv_c(b.address, b.count, b.type, m.peer, tag, comm, &request), "MPI_Irecv_c", comm);
}

void NeighborOperation::send(Message& m) {
  const MPI_Comm comm = comm_.get();
  const int tag = first_tag_ + m.step;
  const Block& b = m.pieces.front().block;
  MPI_Request& request = requests_.emplace_back(MPI_REQUEST_NULL);
  if (m.buffer.empty()) {
    mpi_check(m.joined ? MPI_Isend_c(MPI_BOTTOM, 1, m.joined.get(), m.peer, tag, comm, &request)
                       : MPI_Isend_c(b.address, b.count, b.type, m.peer, tag, comm, &request),
              "MPI_Isend_c", comm);
    return;
  }
  MPI_Count at = 0;
  for (const auto& p : m.pieces) {
    if (p.dense) {
      std::memcpy(m.buffer.data() + at, p.dense, static_cast<std::size_t>(p.bytes));
      at += p.bytes;
    } else {
      mpi_check(MPI_Pack_c(p.block.address, p.block.count, p.block.type, m.buffer.data(), m.bytes, &at, comm),
                "MPI_Pack_c", comm);
    }
  }
  mpi_check(MPI_Isend_c(m.buffer.data(), m.bytes, MPI_PACKED, m.peer, tag, comm, &request), "MPI_Isend_c", comm);
}

void NeighborOperation::unpack() {
  for (Message* m : receiving_) {
    if (m->buffer.empty()) continue;
    MPI_Count at = 0;
    for (const auto& p : m->pieces) {
      if (p.dense) {
        std::memcpy(p.dense, m->buffer.data() + at, static_cast<std::size_t>(p.bytes));
        at += p.bytes;
      } else {
        mpi_check(MPI_Unpack_c(m->buffer.data(), m->bytes, &at, p.block.address, p.block.count, p.block.type,
                               comm_.get()),
                  "MPI_Unpack_c", comm_.get());
      }
    }
  }
}

/// Every message must bring exactly the bytes that this rank expects: a sender with other counts or types is an
/// error here, not garbage.
void NeighborOperation::check_arrivals(bool failed) {
  for (std::size_t k = 0; k < receiving_.size() && !error_; ++k) {
    const Message& m = *receiving_[k];
    const MPI_Status& status = statuses_[k];
    MPI_Count bytes = 0;
    if (!failed) {
      mpi_check(MPI_Get_elements_c(&status, MPI_BYTE, &bytes), "MPI_Get_elements_c");
      if (bytes == m.bytes) continue;
    } else if (status.MPI_ERROR == MPI_SUCCESS || status.MPI_ERROR == MPI_ERR_PENDING) {
      continue;
    }
    fail(MPI_ERR_TRUNCATE, "neighborhood: rank " + std::to_string(m.peer) + " sent " +
                               (failed ? "more than" : std::to_string(bytes) + " bytes instead of") + " the " +
                               std::to_string(m.bytes) + " bytes that rank " + std::to_string(comm_.rank()) +
                               " receives from it: counts and types must fit on both sides");
  }
}

void NeighborOperation::advance() {
  while (active_) {
    int done = 0;
    const int rc = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, statuses_.data());
    if (rc != MPI_SUCCESS) {
      int error_class = MPI_SUCCESS;
      MPI_Error_class(rc, &error_class);
      if (error_class != MPI_ERR_IN_STATUS && error_class != MPI_ERR_TRUNCATE)
        mpi_check(rc, "MPI_Testall in an isomorphic collective", comm_.get());
      check_arrivals(true);
      continue;  // what has failed is a null request now; the others may still be on their way
    }
    if (!done) return;
    if (!error_) check_arrivals(false);
    if (!error_) unpack();
    requests_.clear();
    receiving_.clear();
    if (++phase_ == phases_.size())
      finish();
    else
      post();
  }
}

void NeighborOperation::finish() {
  for (const auto& [from, to] : last_copies_) copy(from, to);
  if (call_.is_reduction() && !error_) fold();
  active_ = false;
  deactivate(this);
}

void NeighborOperation::fold() {
  const Block* value = nullptr;
  for (std::size_t i = 0; i < source_exists_.size(); ++i) {
    if (!source_exists_[i]) continue;
    const Block& next = call_.receive[i];
    if (value)  // next = value op next
      mpi_check(MPI_Reduce_local_c(value->address, next.address, next.count, next.type, call_.fold.op),
                "MPI_Reduce_local_c");
    value = &next;
  }
  if (!value) return;
  copy(piece_of(*value, 0), piece_of(call_.fold.into, 0));
}

void NeighborOperation::copy(const Piece& from, const Piece& to) {
  if (from.bytes != to.bytes) {
    fail(MPI_ERR_TRUNCATE, "neighborhood: rank " + std::to_string(comm_.rank()) + " sends " +
                               std::to_string(from.bytes) + " bytes to itself but receives " +
                               std::to_string(to.bytes) + ": counts and types must fit on both sides");
  } else if (from.dense && to.dense) {
    std::memmove(to.dense, from.dense, static_cast<std::size_t>(from.bytes));
  } else {
    const int self = comm_.rank();
    mpi_check(
        MPI_Sendrecv_c(from.block.address, from.block.count, from.block.type, self, first_tag_, to.block.address,
                       to.block.count, to.block.type, self, first_tag_, comm_.get(), MPI_STATUS_IGNORE),
        "MPI_Sendrecv_c of a block of this rank itself", comm_.get());
  }
}

void NeighborOperation::abandon() noexcept {
  for (MPI_Request& r : requests_) {
    if (r == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&r);
    MPI_Request_free(&r);
  }
  requests_.clear();
  active_ = false;
  deactivate(this);
}

void NeighborOperation::fail(int mpi_class, const std::string& text) {
  if (!error_) error_ = std::make_unique<ArgumentError>(mpi_class, text);
}

void NeighborOperation::rethrow() {
  if (!error_) return;
  const ArgumentError e = *std::exchange(error_, nullptr);
  throw e;
}

std::int64_t NeighborOperation::bytes_sent() const {
  std::int64_t n = 0;
  for (const auto& phase : phases_)
    for (const auto& m : phase.send) n += m.bytes;
  return n;
}

}  // namespace isohalo::detail
