#pragma once
/// Halo messages from and to host memory: by MPI datatypes, or packed. Private to framework/halo: use HaloPlan.

#include <new>

#include "framework/halo/direct_write.hpp"
#include "framework/halo/strided_copy.hpp"
#include "framework/halo/transport.hpp"
#include "framework/shm/channels.hpp"

namespace isohalo::detail {

template <int D>
class HostTransport : public HaloTransport<D> {
 public:
  HostTransport(const CartesianDomain<D>& domain, int first_tag, std::vector<HaloSchedule<D>> schedules,
                ExchangeStores stores);

 protected:
  void copy(std::size_t stage) final;
  ExchangeStores stores_;

 private:
  std::vector<std::vector<BoxCopier<D>>> copiers_;  ///< by stage and schedule
};

/// Zero copy: MPI datatypes on both sides, made once per schedule and array layout and found again.
template <int D>
class DatatypeTransport final : public HostTransport<D> {
 public:
  using HostTransport<D>::HostTransport;

 private:
  struct Layout {
    std::size_t schedule;
    std::int64_t bytes, pitch;
    Datatype (*element)();
    Index<D> stride;
    std::vector<std::vector<Datatype>> send, receive;  ///< by stage and message
  };

  void post_receives() override;
  void send(std::size_t stage) override;
  bool received(std::size_t stage) override;
  bool left() override;
  const Layout& layout_of(std::size_t array);
  Datatype type_of(const HaloMessage<D>& message, const ErasedArray<D>& array) const;

  std::vector<std::unique_ptr<Layout>> layouts_;
  std::vector<std::vector<MPI_Request>> receives_;  ///< by stage
  std::vector<MPI_Request> sends_;
};

/// Uninitialised bytes that start on a cache line.
class LineBuffer {
 public:
  explicit LineBuffer(std::int64_t bytes)
      : data_(static_cast<std::byte*>(::operator new (static_cast<std::size_t>(bytes), std::align_val_t{kLine}))) {}
  std::byte* get() const { return data_.get(); }

 private:
  static constexpr std::size_t kLine = 64;
  struct Free {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{kLine}); }
  };
  std::unique_ptr<std::byte, Free> data_;
};

/// All arrays of an exchange in one message per peer, packed by our own copies into persistent buffers; between
/// ranks of one compute node, if wanted, through channels in shared memory.
///
/// Rows for arrays that the sender can map it writes straight into the receiver's ghosts, when the receiver has
/// started the exchange and so given them up. Where it has not, the sender that may wait (see
/// HaloTransport::start) does, if it must wait for a message from there anyway; otherwise it packs all.
template <int D>
class PackedTransport final : public HostTransport<D> {
 public:
  /// `element_bytes`: of the arrays of every exchange. Local without channels, otherwise collective; then throws
  /// RunError, the same on all ranks of a compute node, when it has no room for them.
  PackedTransport(const CartesianDomain<D>& domain, int first_tag, std::vector<HaloSchedule<D>> schedules,
                  std::span<const std::int64_t> element_bytes, ExchangeStores stores, bool channels);
  std::int64_t bytes_written_directly() const override { return written_directly_; }

 private:
  /// The cells of one message that an array takes part with.
  struct Part {
    BoxPacker<D> cells;
    std::vector<Index<D>> shifts;  ///< of the boxes of a message that is sent
  };
  /// Array after array, each from a cache line on.
  struct Message {
    int peer;
    std::vector<Part> parts;            ///< by schedule
    std::vector<std::int64_t> offsets;  ///< of each array, and the end
    LineBuffer buffer;                  ///< of a message by MPI
    ChannelEnd* channel;                ///< or null
    bool waiting;                       ///< for the slot to become free, or for the message to come
    bool mutual = false;                ///< sent by channel, and another comes from that peer
  };

  void post_receives() override;
  void send(std::size_t stage) override;
  bool received(std::size_t stage) override;
  bool left() override;
  bool needed_after_start() const override { return HaloTransport<D>::needed_after_start() || unsent_ > 0; }
  Message message_of(const JoinedMessage<D>& joined, std::span<const std::int64_t> element_bytes,
                     bool channel) const;
  const Part& part(const Message& m, std::size_t array) const { return m.parts[this->schedule_of(array)]; }
  void open_channels(const Node& node);
  void tell_places(const Message& m);
  bool fill_slots();
  void fill(Message& m, std::byte* slot);
  bool take_from_channels(std::size_t stage);
  bool complete_receives(std::size_t stage);
  void unpack(const Message& m, const std::byte* buffer, std::uint32_t written) const;

  std::vector<std::vector<Message>> out_, in_;      ///< by stage
  std::vector<std::vector<MPI_Request>> receives_;  ///< by stage and message
  std::vector<MPI_Request> sends_;
  ChannelGroup channels_;
  GhostsOfPeers ghosts_of_peers_;
  std::vector<GhostPlace<D>> places_;  ///< of this rank's arrays
  std::int64_t written_directly_ = 0;  ///< bytes in this exchange
  std::size_t unsent_ = 0;             ///< messages whose slots are not free yet
  int misses_ = 0;
  std::vector<int> arrived_;
};

}  // namespace isohalo::detail
