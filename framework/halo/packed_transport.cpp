#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "framework/halo/host_transport.hpp"
#include "framework/shm/channels.hpp"
#include "framework/shm/shared_memory.hpp"

namespace isohalo::detail {

namespace {

/// A slot begins with a byte for each array: 1 when its rows were written straight into the ghosts.
std::int64_t slot_header(std::size_t arrays) {
  return static_cast<std::int64_t>(arrays) / 64 * 64 + 64;
}

/// Rows of at least so many bytes are written straight into the receiver's ghosts where its array can be mapped;
/// the others, strided there, are packed.
constexpr std::int64_t kDirectRow_bytes = 64;

/// What a receiver tells a sender about one array. Plain bytes.
template <int D>
struct GhostPlace {
  std::int64_t writable = 0;    ///< 0: the array lies in no shared memory, or its rows are strided
  SharedAddress memory;         ///< of the first owned cell
  std::int64_t low[D] = {};     ///< unwrapped index of that cell
  std::int64_t stride[D] = {};  ///< in bytes
};

template <int D>
GhostPlace<D> ghost_place(const ErasedArray<D>& a) {
  GhostPlace<D> place;
  const Index<D> stride = a.byte_strides();
  if (stride[D - 1] != a.bytes || !SharedMemory::find(a.data, place.memory)) return place;
  for (int j = 0; j < D; ++j) place.low[j] = a.owned.low[j], place.stride[j] = stride[j];
  place.writable = 1;
  return place;
}

/// Other ranks' memory that recent exchanges wrote to, mapped here.
class GhostsOfPeers {
 public:
  /// To be called at the start of each exchange: forgets what the last few did not use.
  void begin_exchange() {
    constexpr std::int64_t kept = 4;  // solvers use two or three arrays in turn
    ++exchanges_;
    std::erase_if(targets_, [&](const Target& t) { return exchanges_ - t.last_used > kept; });
  }

  /// The place in this process, or null when the memory cannot be mapped.
  std::byte* find(int peer, const SharedAddress& address) {
    auto target = std::find_if(targets_.begin(), targets_.end(),
                               [&](const Target& t) { return t.peer == peer && t.serial == address.serial; });
    if (target == targets_.end())
      target = targets_.insert(target, Target{peer, address.serial, 0, MappedMemory(address)});
    target->last_used = exchanges_;
    return target->memory.mapped() ? target->memory.data() + address.offset : nullptr;
  }

 private:
  struct Target {
    int peer;
    std::int64_t serial, last_used;
    MappedMemory memory;
  };
  std::vector<Target> targets_;
  std::int64_t exchanges_ = 0;
};

/// A cache line: what buffers are made of.
struct alignas(64) Line {
  std::byte bytes[64];
};

/// Rows for arrays that the sender can map it writes straight into the receiver's ghosts, when the receiver has
/// started the exchange and so given them up. Where it has not, the sender that may wait (see
/// HaloTransport::start) does, if it must wait for a message from there anyway; otherwise it packs all.
template <int D>
class PackedTransport final : public HostTransport<D> {
 public:
  PackedTransport(HaloTask<D> task, bool channels) : HostTransport<D>(std::move(task)) {
    const auto node = channels ? Node::of(this->task_.domain.comm()) : nullptr;
    const auto messages = [&](std::size_t stage, auto side) {
      std::vector<Message> list;
      for (const auto& m : joined<D>(this->task_.schedules, stage, side))
        list.push_back(message_of(m, node && node->holds(m.peer)));
      return list;
    };
    for (std::size_t k = 0; k < this->stages(); ++k) {
      auto& out = out_.emplace_back(messages(k, &HaloStage<D>::send));
      const auto& in = in_.emplace_back(messages(k, &HaloStage<D>::receive));
      for (Message& p : out)
        p.mutual = std::any_of(in.begin(), in.end(), [&](const Message& q) { return q.peer == p.peer; });
      this->receives_[k].resize(in.size(), MPI_REQUEST_NULL);
      arrived_.resize(std::max(arrived_.size(), in.size()));
    }
    if (node) open_channels(*node);
  }

 private:
  /// Array after array, each from a cache line on.
  struct Message {
    int peer;
    std::vector<BoxPacker<D>> parts;    ///< by schedule
    std::vector<std::int64_t> offsets;  ///< of each array, and the end
    std::unique_ptr<Line[]> lines;      ///< of a message by MPI
    ChannelEnd* channel;                ///< or null
    bool waiting;                       ///< for the slot to become free, or for the message to come
    bool mutual = false;                ///< sent by channel, and another comes from that peer

    std::byte* buffer() const { return reinterpret_cast<std::byte*>(lines.get()); }
  };

  /// At first `waiting` marks the messages that go by channel.
  Message message_of(const JoinedMessage<D>& joined, bool channel) const {
    std::vector<BoxPacker<D>> parts;
    for (const HaloMessage<D>* m : joined.parts)
      parts.emplace_back(m ? boxes_of(m->regions) : std::vector<ShiftedBox<D>>{}, this->task_.stores);
    std::vector<std::int64_t> offsets{channel ? slot_header(this->task_.element_bytes.size()) : 0};
    for (std::size_t f = 0; f < this->task_.element_bytes.size(); ++f) {
      const std::int64_t bytes = parts[this->schedule_of(f)].cells() * this->task_.element_bytes[f];
      offsets.push_back((offsets.back() + bytes + 63) / 64 * 64);
    }
    auto lines =
        std::make_unique_for_overwrite<Line[]>(channel ? 0 : static_cast<std::size_t>(offsets.back()) / 64);
    return {joined.peer, std::move(parts), std::move(offsets), std::move(lines), nullptr, channel};
  }
  const BoxPacker<D>& part(const Message& m, std::size_t array) const { return m.parts[this->schedule_of(array)]; }

  void open_channels(const Node& node) {
    std::vector<ChannelGroup::Outgoing> outgoing;
    std::vector<int> incoming;
    const auto note_bytes = static_cast<std::int64_t>(sizeof(GhostPlace<D>) * this->task_.element_bytes.size());
    for (const auto& stage : out_)
      for (const Message& p : stage)
        if (p.waiting) outgoing.push_back({p.peer, p.offsets.back(), note_bytes});
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

  void post_receives() override {
    ghosts_of_peers_.begin_exchange();
    places_.clear();
    if (channels_.incoming.size() > 0)
      for (const auto& a : this->arrays_) places_.push_back(ghost_place(a));
    for (std::size_t k = 0; k < in_.size(); ++k)
      for (std::size_t m = 0; m < in_[k].size(); ++m) {
        Message& p = in_[k][m];
        p.waiting = p.channel != nullptr;
        if (p.channel) {  // before the peer may send: where its rows go
          if (!places_.empty()) std::memcpy(p.channel->note(), places_.data(), places_.size() * sizeof places_[0]);
          p.channel->open();
        } else {
          this->receive_from(p.peer, p.buffer(), p.offsets.back(), MPI_BYTE, this->receives_[k][m]);
        }
      }
  }

  void send(std::size_t stage) override {
    for (Message& p : out_[stage])
      if (p.channel) p.waiting = true, ++unsent_;
    fill_slots();
    for (const Message& p : out_[stage]) {
      if (p.channel) continue;
      for (std::size_t f = 0; f < this->arrays_.size(); ++f)
        part(p, f).pack(this->arrays_[f], p.buffer() + p.offsets[f]);
      this->send_to(p.peer, p.buffer(), p.offsets.back(), MPI_BYTE);
    }
  }

  /// Fills the slots that have become free; true when none is missing.
  bool fill_slots() {
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

  void fill(Message& m, std::byte* slot) {
    const bool open = m.channel->opened();
    for (std::size_t f = 0; f < this->arrays_.size(); ++f) {
      const ErasedArray<D>& a = this->arrays_[f];
      GhostPlace<D> place;
      if (open) std::memcpy(&place, m.channel->note() + f * sizeof place, sizeof place);
      std::byte* const to = place.writable ? ghosts_of_peers_.find(m.peer, place.memory) : nullptr;
      slot[f] = std::byte{to != nullptr};
      if (to) part(m, f).copy_rows(a, kDirectRow_bytes, to, place.low, place.stride);
      part(m, f).pack(a, slot + m.offsets[f], to ? kDirectRow_bytes : kAllRows);
    }
  }

  /// A message by channel says which arrays' rows are in place already.
  void unpack(const Message& m, const std::byte* buffer) const {
    for (std::size_t f = 0; f < this->arrays_.size(); ++f)
      part(m, f).unpack(this->arrays_[f], buffer + m.offsets[f],
                        m.channel && buffer[f] != std::byte{} ? kDirectRow_bytes : kAllRows);
  }

  bool received(std::size_t stage) override {
    fill_slots();
    const bool taken = take_from_channels(stage), completed = complete_receives(stage);
    if (!taken && ++misses_ % 16 == 0) move_messages(this->comm());
    return taken && completed;
  }

  bool take_from_channels(std::size_t stage) {
    bool all = true;
    for (Message& p : in_[stage]) {
      if (!p.waiting) continue;
      const std::byte* const message = p.channel->next_message();
      if (!message) {
        all = false;
        continue;
      }
      unpack(p, message);
      p.channel->release();
      p.waiting = false;
    }
    return all;
  }

  bool complete_receives(std::size_t stage) {
    auto& requests = this->receives_[stage];
    int count = 0;
    mpi_check(MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &count, arrived_.data(),
                           MPI_STATUSES_IGNORE),
              "halo exchange", this->comm());
    if (count == MPI_UNDEFINED) return true;  // none left
    for (int i = 0; i < count; ++i) {
      const Message& p = in_[stage][static_cast<std::size_t>(arrived_[static_cast<std::size_t>(i)])];
      unpack(p, p.buffer());
    }
    return std::all_of(requests.begin(), requests.end(), [](MPI_Request r) { return r == MPI_REQUEST_NULL; });
  }

  bool left() override { return fill_slots() && HaloTransport<D>::left(); }
  bool needed_after_start() const override { return HaloTransport<D>::needed_after_start() || unsent_ > 0; }

  std::vector<std::vector<Message>> out_, in_;  ///< by stage
  ChannelGroup channels_;
  GhostsOfPeers ghosts_of_peers_;
  std::vector<GhostPlace<D>> places_;  ///< of this rank's arrays
  std::size_t unsent_ = 0;             ///< messages whose slots are not free yet
  int misses_ = 0;
  std::vector<int> arrived_;
};

}  // namespace

template <int D>
std::unique_ptr<HaloTransport<D>> packed_transport(HaloTask<D> task, bool channels) {
  return std::make_unique<PackedTransport<D>>(std::move(task), channels);
}

#define ISOHALO_INSTANTIATE(D) template std::unique_ptr<HaloTransport<D>> packed_transport<D>(HaloTask<D>, bool);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo::detail
