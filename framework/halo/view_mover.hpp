#pragma once
/// The engine of KokkosViewExchange: one pattern of messages, packed and unpacked by kernels. Private to
/// framework/halo.

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <vector>

#include "datatypes/mpi_check.hpp"
#include "framework/domain/cartesian_domain.hpp"
#include "framework/halo/farewell.hpp"
#include "framework/halo/ghost_fill.hpp"
#include "framework/halo/halo_mover.hpp"
#include "framework/halo/halo_schedule.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo {

namespace detail {

/// A box of cells of a view; plain arrays, because device code has no std::array.
template <int D>
struct ViewBox {
  std::int64_t first;                        ///< place of its first cell among the cells of the table
  std::int64_t low[D], extent[D], shift[D];  ///< indices into the view; a cell's source lies `shift` below it
};

template <class View>
KOKKOS_INLINE_FUNCTION typename View::reference_type view_element(const View& v, const std::int64_t* i) {
  constexpr int rank = static_cast<int>(View::rank);
  if constexpr (rank == 1)
    return v(i[0]);
  else if constexpr (rank == 2)
    return v(i[0], i[1]);
  else if constexpr (rank == 3)
    return v(i[0], i[1], i[2]);
  else
    return v(i[0], i[1], i[2], i[3]);
}

enum class ViewTask { pack, unpack, copy };

/// Cell k of a table of boxes: view to buffer, buffer to view, or within the view.
template <class View, class Buffer, ViewTask task>
struct ViewKernel {
  static constexpr int D = static_cast<int>(View::rank);
  View view;
  Buffer buffer;
  Kokkos::View<const ViewBox<D>*, typename View::memory_space> boxes;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t k) const {
    std::size_t low = 0, high = boxes.extent(0);
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      if (boxes(middle).first <= k)
        low = middle;
      else
        high = middle;
    }
    const ViewBox<D>& b = boxes(low);
    std::int64_t left = k - b.first, i[D], source[D];
    for (int j = D - 1; j >= 0; --j) {
      i[j] = b.low[j] + left % b.extent[j];
      source[j] = i[j] - b.shift[j];
      left /= b.extent[j];
    }
    if constexpr (task == ViewTask::pack)
      buffer(static_cast<std::size_t>(k)) = view_element(view, i);
    else if constexpr (task == ViewTask::unpack)
      view_element(view, i) = buffer(static_cast<std::size_t>(k));
    else
      view_element(view, i) = view_element(view, source);
  }
};

/// Takes an exchange through its stages. Per stage one kernel packs all messages, one copies the ghosts that are
/// this rank's own cells, one unpacks. An exchange of several stages is active in every wait of the process: other
/// ranks may wait for its later stages while this rank waits for something else.
template <class View>
class ViewMover final : public Progressable {
 public:
  static constexpr int D = static_cast<int>(View::rank);
  using Value = typename View::non_const_value_type;
  using Memory = typename View::memory_space;
  using Space = typename View::execution_space;

  /// `origin`: the global index of the views' first cell. Fences.
  ViewMover(const Communicator& comm, int tag, const HaloSchedule<D>& schedule, const Index<D>& origin, bool staged)
      : comm_(comm), tag_(tag), origin_(origin) {
    for (const HaloStage<D>& s : schedule.stages) {
      Stage& stage = stages_.emplace_back();
      prepare(stage.send, s.send, staged);
      prepare(stage.receive, s.receive, staged);
      std::vector<Box> boxes;
      for (const auto& c : s.copies)
        c.ghosts.for_each_box([&](const isohalo::Box<D>& b) { append(boxes, stage.copies.cells, b, c.shift); });
      if (s.fill)
        s.fill->for_each_row_of_copies(
            [&](const isohalo::Box<D>& b, const Index<D>& shift) { append(boxes, stage.copies.cells, b, shift); });
      stage.copies.upload(boxes);
    }
  }

  /// Posts all receives, packs and sends the first stage. Fences the packing kernel. Local.
  void start(const View& view) {
    view_ = view;
    stage_ = 0;
    for (Stage& stage : stages_)
      for (const auto& m : stage.receive.messages)
        mpi_check(MPI_Irecv_c(stage.receive.host.data() + m.first, m.cells * kBytes, MPI_BYTE, m.peer, tag_,
                              comm_.get(), &stage.receives.emplace_back(MPI_REQUEST_NULL)),
                  "MPI_Irecv in a view exchange", comm_.get());
    if (!stages_.empty()) send(stages_.front());
    if (stages_.size() > 1) activate(this);
  }

  void advance() override {
    while (stage_ < stages_.size() && complete(stages_[stage_])) {
      if (++stage_ < stages_.size())
        send(stages_[stage_]);
      else
        deactivate(this);
    }
  }

  /// Waits with back-off. Fences. Throws UsageError, and is of no use any more, when a rank has said farewell.
  void finish(Farewell* farewell = nullptr) {
    Farewell::Ear ear(farewell);
    const auto done = [this, &ear] {
      advance();
      if (stage_ == stages_.size() && sent()) return true;
      ear.listen();
      return false;
    };
    wait_until(done, comm_.spins());
    sends_.clear();
    Space().fence();
    view_ = View();
  }

  /// Withdraws the receives of an exchange that will not be finished; this is of no use any more then. False when
  /// MPI still has buffers that this owns. Local.
  bool withdraw() noexcept {
    deactivate(this);
    for (Stage& stage : stages_) withdraw_receives(stage.receives);
    try {
      return sent();
    } catch (const MpiError&) {
      return false;
    }
  }
  /// To which this rank sends, or from which it receives.
  std::vector<int> peers() const {
    std::vector<int> list;
    for (const Stage& stage : stages_)
      for (const Side* side : {&stage.send, &stage.receive})
        for (const auto& m : side->messages)
          if (std::find(list.begin(), list.end(), m.peer) == list.end()) list.push_back(m.peer);
    return list;
  }

 private:
  static constexpr std::int64_t kBytes = static_cast<std::int64_t>(sizeof(Value));
  using Box = ViewBox<D>;
  using Buffer = Kokkos::View<Value*, Memory>;

  /// Boxes in the view's memory space.
  struct Table {
    Kokkos::View<Box*, Memory> boxes;
    std::int64_t cells = 0;

    void upload(const std::vector<Box>& list) {
      boxes = Kokkos::View<Box*, Memory>("isohalo::boxes", list.size());
      const auto mirror = Kokkos::create_mirror_view(boxes);
      for (std::size_t k = 0; k < list.size(); ++k) mirror(k) = list[k];
      Kokkos::deep_copy(boxes, mirror);
    }
  };
  struct Message {
    int peer;
    std::int64_t first, cells;
  };
  /// All messages one way: their cells in one buffer, and the same buffer or a copy of it on the host.
  struct Side {
    std::vector<Message> messages;
    Table table;
    Buffer buffer;
    Kokkos::View<Value*, Kokkos::HostSpace> host;
    bool apart = false;
  };

  /// What needs nothing of a later stage; kernels of one execution space run one after the other.
  struct Stage {
    Side send, receive;
    Table copies;
    std::vector<MPI_Request> receives;
  };

  void send(const Stage& stage) {
    const MPI_Comm comm = comm_.get();
    const Side& side = stage.send;
    run<ViewTask::pack>("isohalo::pack", side.table, side.buffer);
    Space().fence();
    if (side.apart) Kokkos::deep_copy(side.host, side.buffer);
    for (const auto& m : side.messages)
      mpi_check(MPI_Isend_c(side.host.data() + m.first, m.cells * kBytes, MPI_BYTE, m.peer, tag_, comm,
                            &sends_.emplace_back(MPI_REQUEST_NULL)),
                "MPI_Isend in a view exchange", comm);
    run<ViewTask::copy>("isohalo::copy_ghosts", stage.copies, side.buffer);
  }

  /// True when all that was sent has left.
  bool sent() {
    int done = 0;
    mpi_check(MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &done, MPI_STATUSES_IGNORE),
              "view exchange", comm_.get());
    return done != 0;
  }

  /// Puts the ghosts of a stage in place; false when some have not arrived.
  bool complete(Stage& stage) {
    int done = 0;
    mpi_check(
        MPI_Testall(static_cast<int>(stage.receives.size()), stage.receives.data(), &done, MPI_STATUSES_IGNORE),
        "view exchange", comm_.get());
    if (!done) return false;
    stage.receives.clear();
    if (stage.receive.apart) Kokkos::deep_copy(stage.receive.buffer, stage.receive.host);
    run<ViewTask::unpack>("isohalo::unpack", stage.receive.table, stage.receive.buffer);
    return true;
  }

  void append(std::vector<Box>& boxes, std::int64_t& cells, const isohalo::Box<D>& b, const Index<D>& shift) const {
    Box v{};
    v.first = cells;
    for (int j = 0; j < D; ++j) {
      v.low[j] = b.low[j] - origin_[j];
      v.extent[j] = b.extent(j);
      v.shift[j] = shift[j];
    }
    cells += b.cells();
    boxes.push_back(v);
  }

  void prepare(Side& side, const std::vector<HaloMessage<D>>& messages, bool staged) {
    std::vector<Box> boxes;
    for (const auto& m : messages) {
      const std::int64_t first = side.table.cells;
      for (const auto& b : m.boxes()) append(boxes, side.table.cells, b, {});
      side.messages.push_back({m.peer, first, side.table.cells - first});
    }
    side.table.upload(boxes);
    const auto cells = static_cast<std::size_t>(side.table.cells);
    side.buffer = Buffer(Kokkos::view_alloc("isohalo::buffer", Kokkos::WithoutInitializing), cells);
    if constexpr (Kokkos::SpaceAccessibility<Kokkos::HostSpace, Memory>::accessible) {
      if (!staged) {
        side.host =
            Kokkos::View<Value*, Kokkos::HostSpace>(side.buffer.data(), cells);  // lives as long as `buffer`
        return;
      }
    }
    side.host = Kokkos::View<Value*, Kokkos::HostSpace>(
        Kokkos::view_alloc("isohalo::host_buffer", Kokkos::WithoutInitializing), cells);
    side.apart = true;
  }

  template <ViewTask task>
  void run(const char* label, const Table& table, const Buffer& buffer) const {
    if (table.cells == 0) return;
    Kokkos::parallel_for(label, Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(0, table.cells),
                         ViewKernel<View, Buffer, task>{view_, buffer, table.boxes});
  }

  Communicator comm_;
  int tag_;
  Index<D> origin_;
  std::vector<Stage> stages_;
  std::size_t stage_ = 0;  ///< whose messages are awaited
  View view_;
  std::vector<MPI_Request> sends_;
};

}  // namespace detail

}  // namespace isohalo
