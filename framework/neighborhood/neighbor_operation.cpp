#include "framework/neighborhood/neighbor_operation.hpp"

#include <algorithm>
#include <utility>

#include "datatypes/large_count.hpp"
#include "datatypes/mpi_check.hpp"

namespace isohalo::detail {

namespace {

/// Several blocks share a packed message when it stays this small, or when the blocks are: below about 10 KB
/// derived datatypes lose up to a factor of two against a copy, and many small messages lose more.
constexpr std::int64_t kPackBytes = 8192, kPackBlockBytes = 2048;
constexpr std::uintptr_t kAlignment = 64;
/// Strided messages beyond this size, which MPI announces first, took 0.6 to 0.9 of the time when the receive was
/// posted after the announcement; for others the order made no difference.
constexpr std::int64_t kAnnounced_bytes = 8192;

bool worth_packing(std::int64_t bytes, std::size_t blocks) {
  return bytes <= kPackBytes || bytes <= kPackBlockBytes * static_cast<std::int64_t>(blocks);
}

std::byte* shifted(const std::byte* address, std::int64_t bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(address) +
                                      static_cast<std::uintptr_t>(bytes));
}

}  // namespace

NeighborOperation::NeighborOperation(const Communicator& comm, const IsomorphicNeighborhood& neighbors,
                                     std::shared_ptr<const LocalSchedule> local, const NeighborCall& call,
                                     bool own_types)
    : comm_(comm),
      local_(std::move(local)),
      call_(call),
      sized_(!call.one_size && local_->algorithm != Algorithm::direct) {
  for (int r : neighbors.sources()) source_exists_.push_back(r != Mesh::no_rank);
  for (auto* side : {&call_.send, &call_.receive})
    for (Block& b : *side)
      if (b.type != MPI_DATATYPE_NULL) keep_block(b, own_types);
  if (call_.is_reduction()) {
    if (!mpi_combines(call_.fold.op, call_.fold.into.type))
      throw ArgumentError(MPI_ERR_OP,
                          "a reduction over neighbors: MPI does not combine elements of this type by "
                          "this operation, or the type is not committed");
    call_.fold.into.type = kept(call_.fold.into.type, own_types);
    place_operands();
  }
  place_temporaries();
  for (const auto& c : local_->first) first_copies_.emplace_back(message_block_at(c.from), message_block_at(c.to));
  for (const auto& c : local_->last) last_copies_.emplace_back(message_block_at(c.from), message_block_at(c.to));
  std::size_t most = 0;
  for (std::size_t k = 0; k < local_->stages.size(); ++k) {
    CompiledStage& stage = stages_.emplace_back();
    compile(local_->stages[k].send, true, stage, stage.send);
    compile(local_->stages[k].receive, false, stage, stage.receive);
    most = std::max(most, stage.send.size() + stage.receive.size());
  }
  requests_.reserve(most);
  receiving_.reserve(most);
}

void NeighborOperation::keep_block(Block& block, bool own) {
  if (block.address || block.count == 0) {
    block.type = kept(block.type, own);
    return;
  }
  // MPI_BOTTOM itself: MPICH refuses to pack from there, so the same data is described from another address.
  const TypeLayout l = layout(block.type);
  const MPI_Count one = 1, place = -static_cast<MPI_Count>(kAlignment);
  MPI_Datatype moved = MPI_DATATYPE_NULL, resized = MPI_DATATYPE_NULL;
  mpi_check(mpi::type_create_hindexed(1, &one, &place, block.type, &moved), "MPI_Type_create_hindexed_c");
  const Datatype between = Datatype::adopt(moved);
  mpi_check(mpi::type_create_resized(moved, 0, l.extent, &resized), "MPI_Type_create_resized_c");
  owned_types_.push_back(Datatype::adopt(resized));
  block = {shifted(nullptr, kAlignment), block.count, resized};
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

/// A forwarded block is kept packed, in as many bytes as all blocks of the call have; a sized one in as many as it
/// brings.
void NeighborOperation::place_temporaries() {
  temporaries_.resize(local_->temporaries);
  if (sized_ || temporaries_.empty()) return;
  const Block& like = call_.is_reduction() ? call_.fold.into : call_.send.front();
  const std::int64_t bytes = like.count * layout(like.type).size;
  for (auto& slot : temporaries_) slot.resize(static_cast<std::size_t>(bytes));
}

/// A vector of its own for each source of a reduction, laid out as the caller's type says.
void NeighborOperation::place_operands() {
  const Block& like = call_.fold.into;
  const TypeLayout l = layout(like.type);
  std::int64_t span = 0, low = l.true_low;
  if (like.count > 0) {
    const std::int64_t shift = (like.count - 1) * l.extent;  // negative extents are possible
    span = l.true_extent + std::abs(shift);
    low += std::min<std::int64_t>(0, shift);
  }
  operands_.resize(source_exists_.size());
  call_.receive.assign(source_exists_.size(), Block{});
  for (std::size_t i = 0; i < source_exists_.size(); ++i) {
    if (!source_exists_[i]) continue;
    operands_[i].resize(static_cast<std::size_t>(span) + kAlignment);
    const auto address = reinterpret_cast<std::uintptr_t>(operands_[i].data());
    const auto aligned = static_cast<std::int64_t>((address + kAlignment - 1) / kAlignment * kAlignment - address);
    call_.receive[i] = {shifted(operands_[i].data(), aligned - low), like.count, like.type};
  }
}

NeighborOperation::MessageBlock NeighborOperation::message_block_of(const Block& block) {
  const TypeLayout& l = layout(block.type);
  MessageBlock p{block, block.count * l.size, nullptr, -1};
  if (l.dense()) p.dense = shifted(block.address, l.true_low);
  return p;
}

NeighborOperation::MessageBlock NeighborOperation::message_block_at(const BlockPlace& place) {
  const auto i = static_cast<std::size_t>(place.index);
  if (place.kind == BlockPlace::Kind::send) return message_block_of(call_.send[i]);
  if (place.kind == BlockPlace::Kind::receive) return message_block_of(call_.receive[i]);
  MessageBlock p;
  p.temporary = place.index;
  return present(p);
}

NeighborOperation::MessageBlock NeighborOperation::present(const MessageBlock& block) {
  if (block.temporary < 0) return block;
  auto& slot = temporaries_[static_cast<std::size_t>(block.temporary)];
  const auto bytes = static_cast<std::int64_t>(slot.size());
  return {{slot.data(), bytes, MPI_PACKED}, bytes, slot.data(), block.temporary};
}

void NeighborOperation::compile(const std::vector<LocalMessage>& from, bool sending, CompiledStage& stage,
                                std::vector<Message>& to) {
  const Algorithm a = local_->algorithm;
  for (const auto& planned : from) {
    std::vector<MessageBlock> blocks;
    std::int64_t bytes = 0;
    for (const auto& part : planned.parts) {
      blocks.push_back(message_block_at(part.place));
      bytes += blocks.back().bytes;
    }
    if (planned.peer == local_->rank) {
      if (stage.copies.empty()) stage.copies.resize(blocks.size());
      for (std::size_t k = 0; k < blocks.size(); ++k)
        (sending ? stage.copies[k].first : stage.copies[k].second) = blocks[k];
    } else if (a == Algorithm::direct && blocks.size() > 1 && !worth_packing(bytes, blocks.size())) {
      for (auto& p : blocks)  // each from and to where it lies
        add_message(to, planned.peer, {p});
    } else {
      add_message(to, planned.peer, std::move(blocks));
    }
  }
}

void NeighborOperation::add_message(std::vector<Message>& to, int peer, std::vector<MessageBlock> blocks) {
  Message m;
  m.peer = peer;
  for (const auto& p : blocks) m.bytes += p.bytes;
  m.blocks = std::move(blocks);
  if (!sized_ && m.blocks.size() > 1 && worth_packing(m.bytes, m.blocks.size())) {
    m.buffer.resize(static_cast<std::size_t>(m.bytes) + 1);  // never empty: it marks packed messages
  } else if (!sized_ && m.blocks.size() > 1) {
    std::vector<MPI_Count> counts, addresses;
    std::vector<MPI_Datatype> types;
    for (const auto& p : m.blocks) {
      counts.push_back(p.block.count);
      addresses.push_back(static_cast<MPI_Count>(reinterpret_cast<std::intptr_t>(p.block.address)));
      types.push_back(p.block.type);
    }
    MPI_Datatype t = MPI_DATATYPE_NULL;
    mpi_check(mpi::type_create_struct(static_cast<MPI_Count>(counts.size()), counts.data(), addresses.data(),
                                      types.data(), &t),
              "MPI_Type_create_struct_c of a combined message");
    m.joined = Datatype::adopt(t);
  }
  const bool sends = &to == &stages_.back().send;
  const bool in_place = sends && m.buffer.empty() && !sized_;
  sends_first_ = sends_first_ || (in_place && m.bytes > kAnnounced_bytes);
  to.push_back(std::move(m));
}

}  // namespace isohalo::detail
