#include <algorithm>
#include <cstring>
#include <utility>

#include "datatypes/mpi_check.hpp"
#include "framework/halo/host_transport.hpp"

namespace isohalo::detail {

namespace {
/// A slot begins with the set of arrays, as bits, whose rows were written straight into the ghosts.
constexpr std::int64_t kSlotHeader = 64;
static_assert(kMostArrays <= 32);
}  // namespace

template <int D>
PackedTransport<D>::PackedTransport(const CartesianDomain<D>& domain, int first_tag,
                                    std::vector<HaloSchedule<D>> schedules,
                                    std::span<const std::int64_t> element_bytes, ExchangeStores stores,
                                    bool channels)
    : HostTransport<D>(domain, first_tag, std::move(schedules), stores) {
  const auto node = channels ? Node::of(domain.comm()) : nullptr;
  const auto by_channel = [&](int peer) { return node && node->holds(peer); };
  std::size_t most = 0;
  for (std::size_t k = 0; k < this->stages(); ++k) {
    auto& out = out_.emplace_back();
    auto& in = in_.emplace_back();
    for (const auto& m : joined<D>(this->schedules_, k, &HaloStage<D>::send))
      out.push_back(message_of(m, element_bytes, by_channel(m.peer)));
    for (const auto& m : joined<D>(this->schedules_, k, &HaloStage<D>::receive))
      in.push_back(message_of(m, element_bytes, by_channel(m.peer)));
    receives_.emplace_back(in.size(), MPI_REQUEST_NULL);
    most = std::max(most, in.size());
  }
  arrived_.resize(most);
  for (std::size_t k = 0; k < out_.size(); ++k)
    for (Message& p : out_[k])
      p.mutual = std::any_of(in_[k].begin(), in_[k].end(), [&](const Message& q) { return q.peer == p.peer; });
  if (node) open_channels(*node);
}

template <int D>
typename PackedTransport<D>::Message PackedTransport<D>::message_of(const JoinedMessage<D>& joined,
                                                                    std::span<const std::int64_t> element_bytes,
                                                                    bool channel) const {
  std::vector<Part> parts;
  for (const HaloMessage<D>* m : joined.parts)
    parts.push_back(m ? Part{BoxPacker<D>(m->boxes(), this->stores_), m->box_shifts()}
                      : Part{BoxPacker<D>({}), {}});
  std::vector<std::int64_t> offsets{channel ? kSlotHeader : 0};
  for (std::size_t f = 0; f < element_bytes.size(); ++f) {
    const std::int64_t bytes = parts[this->schedule_of(f)].cells.cells() * element_bytes[f];
    offsets.push_back((offsets.back() + bytes + 63) / 64 * 64);
  }
  LineBuffer buffer(channel ? 0 : offsets.back());
  return {joined.peer, std::move(parts), std::move(offsets), std::move(buffer), nullptr, channel};
}

/// At first `waiting` marks the messages that go by channel.
template <int D>
void PackedTransport<D>::open_channels(const Node& node) {
  std::vector<ChannelGroup::Outgoing> outgoing;
  std::vector<int> incoming;
  for (const auto& stage : out_)
    for (const Message& p : stage)
      if (p.waiting)
        outgoing.push_back(
            {p.peer, p.offsets.back(), static_cast<std::int64_t>(sizeof(GhostPlace<D>) * (p.offsets.size() - 1))});
  for (const auto& stage : in_)
    for (const Message& p : stage)
      if (p.waiting) incoming.push_back(p.peer);
  channels_ = ChannelGroup(node, outgoing, incoming);
  const auto attach = [](auto& stages, std::vector<ChannelEnd>& ends) {
    auto end = ends.begin();
    for (auto& stage : stages)
      for (Message& p : stage)
        if (std::exchange(p.waiting, false)) p.channel = &*end++;
  };
  attach(out_, channels_.outgoing);
  attach(in_, channels_.incoming);
}

/// Before the peer may send: where its rows go.
template <int D>
void PackedTransport<D>::tell_places(const Message& m) {
  if (places_.size() * sizeof(GhostPlace<D>) > 0)
    std::memcpy(m.channel->note(), places_.data(), places_.size() * sizeof(GhostPlace<D>));
  m.channel->open();
}

template <int D>
void PackedTransport<D>::fill(Message& m, std::byte* slot) {
  std::uint32_t written = 0;
  const bool open = m.channel->opened();
  for (std::size_t f = 0; f < this->arrays_.size(); ++f) {
    const ErasedArray<D>& a = this->arrays_[f];
    const auto& [cells, shifts] = part(m, f);
    GhostPlace<D> place;
    if (open) std::memcpy(&place, m.channel->note() + f * sizeof place, sizeof place);
    std::byte* const to = place.writable ? ghosts_of_peers_.find(m.peer, place.memory) : nullptr;
    if (to) {
      written |= 1u << f;
      written_directly_ += cells.copy_rows(a, kDirectRow_bytes, shifts, to, place.low, place.stride);
      cells.pack(a, slot + m.offsets[f], kDirectRow_bytes);
    } else {
      cells.pack(a, slot + m.offsets[f]);
    }
  }
  std::memcpy(slot, &written, sizeof written);
}

/// `written`: the arrays, as bits, whose rows are in place already.
template <int D>
void PackedTransport<D>::unpack(const Message& m, const std::byte* buffer, std::uint32_t written) const {
  for (std::size_t f = 0; f < this->arrays_.size(); ++f)
    if (written >> f & 1u)
      part(m, f).cells.unpack(this->arrays_[f], buffer + m.offsets[f], kDirectRow_bytes);
    else
      part(m, f).cells.unpack(this->arrays_[f], buffer + m.offsets[f]);
}

template <int D>
void PackedTransport<D>::post_receives() {
  const MPI_Comm comm = this->comm();
  ghosts_of_peers_.begin_exchange();
  written_directly_ = 0;
  places_.clear();
  if (channels_.incoming.size() > 0)
    for (std::size_t f = 0; f < this->arrays_.size(); ++f)
      places_.push_back(this->repeats(f) ? GhostPlace<D>{} : ghost_place(this->arrays_[f]));
  for (std::size_t k = 0; k < in_.size(); ++k)
    for (std::size_t m = 0; m < in_[k].size(); ++m) {
      Message& p = in_[k][m];
      p.waiting = p.channel != nullptr;
      if (p.channel) {
        tell_places(p);
        continue;
      }
      mpi_check(
          MPI_Irecv_c(p.buffer.get(), p.offsets.back(), MPI_BYTE, p.peer, this->first_tag_, comm, &receives_[k][m]),
          "MPI_Irecv in a halo exchange", comm);
    }
}

template <int D>
void PackedTransport<D>::send(std::size_t stage) {
  const MPI_Comm comm = this->comm();
  for (Message& p : out_[stage])
    if (p.channel) p.waiting = true, ++unsent_;
  fill_slots();
  for (const Message& p : out_[stage]) {
    if (p.channel) continue;
    for (std::size_t f = 0; f < this->arrays_.size(); ++f)
      part(p, f).cells.pack(this->arrays_[f], p.buffer.get() + p.offsets[f]);
    mpi_check(MPI_Isend_c(p.buffer.get(), p.offsets.back(), MPI_BYTE, p.peer, this->first_tag_, comm,
                          &sends_.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Isend in a halo exchange", comm);
  }
}

/// Fills the slots that have become free; true when none is missing.
template <int D>
bool PackedTransport<D>::fill_slots() {
  if (unsent_ == 0) return true;
  for (auto& stage : out_)
    for (Message& p : stage) {
      std::byte* const slot = p.waiting ? p.channel->free_slot() : nullptr;
      if (!slot || (this->may_wait_ && p.mutual && !p.channel->opened())) continue;
      fill(p, slot);
      p.channel->publish();
      p.waiting = false;
      --unsent_;
    }
  return unsent_ == 0;
}

template <int D>
bool PackedTransport<D>::take_from_channels(std::size_t stage) {
  bool all = true;
  for (Message& p : in_[stage]) {
    if (!p.waiting) continue;
    const std::byte* const message = p.channel->next_message();
    if (!message) {
      all = false;
      continue;
    }
    std::uint32_t written = 0;
    std::memcpy(&written, message, sizeof written);
    unpack(p, message, written);
    p.channel->release();
    p.waiting = false;
  }
  return all;
}

template <int D>
bool PackedTransport<D>::complete_receives(std::size_t stage) {
  auto& requests = receives_[stage];
  int count = 0;
  mpi_check(MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &count, arrived_.data(),
                         MPI_STATUSES_IGNORE),
            "halo exchange", this->comm());
  if (count == MPI_UNDEFINED) return true;  // none left
  for (int i = 0; i < count; ++i) {
    const Message& p = in_[stage][static_cast<std::size_t>(arrived_[static_cast<std::size_t>(i)])];
    unpack(p, p.buffer.get(), 0);
  }
  return std::all_of(requests.begin(), requests.end(), [](MPI_Request r) { return r == MPI_REQUEST_NULL; });
}

template <int D>
bool PackedTransport<D>::received(std::size_t stage) {
  fill_slots();
  const bool taken = take_from_channels(stage), completed = complete_receives(stage);
  if (!taken && ++misses_ % 16 == 0) {  // the awaited rank may wait for a message of ours that MPI still has
    int ignored = 0;
    const MPI_Comm comm = this->comm();
    mpi_check(MPI_Iprobe(MPI_ANY_SOURCE, this->first_tag_, comm, &ignored, MPI_STATUS_IGNORE), "MPI_Iprobe", comm);
  }
  return taken && completed;
}

template <int D>
bool PackedTransport<D>::left() {
  if (!fill_slots() || !test_all(sends_, "halo exchange", this->comm())) return false;
  sends_.clear();
  return true;
}

template class PackedTransport<1>;
template class PackedTransport<2>;
template class PackedTransport<3>;
template class PackedTransport<4>;

}  // namespace isohalo::detail
