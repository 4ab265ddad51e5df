#pragma once
/// Messages packed by our own copies. Private to framework/halo: use HaloPlan.

#include <new>

#include "framework/halo/halo_mover.hpp"
#include "framework/halo/push_targets.hpp"
#include "framework/shm/node_window.hpp"

namespace isohalo::detail {

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

/// All arrays of an exchange in one message per peer, in persistent buffers; between ranks of one node, if wanted,
/// through channels in shared memory.
///
/// Rows for arrays that the sender can map it writes straight into the receiver's ghosts, when the receiver has
/// started the exchange and so given them up. Where it has not, the sender that is in no hurry (see
/// HaloMover::start) waits, if it must wait for a message from there anyway; otherwise it packs all.
template <int D>
class PackedMover final : public HaloMover<D> {
 public:
  /// `element_bytes`: of the arrays of every exchange by this mover. Local without channels, otherwise collective;
  /// then throws RunError, the same on all ranks of a node, when it has no room for them.
  PackedMover(const CartesianDomain<D>& domain, int first_tag, std::vector<HaloSchedule<D>> schedules,
              std::span<const std::int64_t> element_bytes, ExchangeStores stores, bool channels);
  std::int64_t bytes_pushed() const override { return pushed_; }

 private:
  /// The cells of one message that an array takes part with.
  struct Part {
    BoxPacker<D> cells;
    std::vector<Index<D>> shifts;  ///< of the boxes of a message that is sent
  };
  /// One message: array after array, each from a cache line on.
  struct Parcel {
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
  bool sent() override;
  bool withdraw() noexcept override;
  bool needed_after_start() const override { return HaloMover<D>::needed_after_start() || unsent_ > 0; }
  bool let_go(std::span<const int> gone) override;
  Parcel parcel_of(const JoinedMessage<D>& message, std::span<const std::int64_t> element_bytes,
                   bool channel) const;
  const Part& part(const Parcel& parcel, std::size_t array) const { return parcel.parts[this->schedule_of(array)]; }
  void open_channels(NodeWindow& window);
  void tell_places(const Parcel& parcel);
  bool fill_slots();
  void fill(Parcel& parcel, std::byte* slot);
  bool take_messages(std::size_t stage);
  bool complete_receives(std::size_t stage);
  void unpack(const Parcel& parcel, const std::byte* buffer, std::uint32_t pushed) const;

  std::vector<std::vector<Parcel>> out_, in_;       ///< by stage
  std::vector<std::vector<MPI_Request>> receives_;  ///< by stage and parcel
  std::vector<MPI_Request> sends_;
  ChannelGroup channels_;
  PushTargets targets_;
  std::vector<GhostPlace<D>> places_;  ///< of this rank's arrays
  std::int64_t pushed_ = 0;            ///< bytes in this exchange
  std::size_t unsent_ = 0;             ///< parcels whose slots are not free yet
  int misses_ = 0;
  std::vector<int> arrived_;
};

}  // namespace isohalo::detail
