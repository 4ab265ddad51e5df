#pragma once
/// Halo exchange for Kokkos views in any memory space, by pack and unpack kernels. Header only; needs Kokkos, and
/// is not part of isohalo::halo.

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "datatypes/error.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/domain/cartesian_domain.hpp"
#include "framework/halo/halo_schedule.hpp"

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

}  // namespace detail

/// The halo exchange of `HaloPlan` for views of rank 1 to 4 that hold the owned box and its ghosts; index 0 of the
/// view is the lowest ghost.
///
/// Per stage one kernel packs all messages, one copies the ghosts that are this rank's own cells, one unpacks.
/// Messages are sent from host memory: where the host cannot reach the view's memory, or with `staged`, buffers are
/// copied there; otherwise they are used in place.
template <class View>
class KokkosViewExchange {
 public:
  static constexpr int D = static_cast<int>(View::rank);
  using Value = typename View::non_const_value_type;
  using Memory = typename View::memory_space;
  using Space = typename View::execution_space;

  /// Plans for `depth` steps of `shape`; `ghost_low` and `ghost_high` are the ghost layers of the views. `pattern`:
  /// how the ghosts are cut into messages; one message per rank needs the fewest kernels. Collective in order (no
  /// communication). Fences. Throws UsageError when depth < 0, when the layers are fewer than the steps need, or
  /// for slabs of a shape that has no name.
  KokkosViewExchange(const CartesianDomain<D>& domain, const StencilShape<D>& shape, int depth,
                     const Index<D>& ghost_low, const Index<D>& ghost_high, bool staged = false,
                     HaloPattern pattern = HaloPattern::coalesced)
      : domain_(domain), origin_(domain.owned().low), tag_(domain.comm().take_tags(1)) {
    if (depth < 0) throw UsageError("halo depth " + std::to_string(depth) + " is negative");
    if (pattern == HaloPattern::slabs && !slabs_possible(shape))
      throw UsageError("view exchange: slabs need a shape with a name (star, moore, ..), not a list of offsets");
    const Surroundings<D> around{domain.global(), domain.periodic(), {}, {}};
    const auto needed = shape.ghost_widths(depth, around);
    for (int j = 0; j < D; ++j) {
      if (ghost_low[j] < needed[0][j] || ghost_high[j] < needed[1][j])
        throw UsageError("view exchange: the view has " + std::to_string(std::min(ghost_low[j], ghost_high[j])) +
                         " ghost layers in dimension " + std::to_string(j) + ", the plan needs " +
                         std::to_string(std::max(needed[0][j], needed[1][j])));
      origin_[j] -= ghost_low[j];
      extents_[j] = domain.owned().extent(j) + ghost_low[j] + ghost_high[j];
    }
    const auto schedule =
        halo_schedule(pattern, domain.decomposition(), domain.coordinates(), shape, depth, around);
    for (const HaloStage<D>& s : schedule.stages) {
      Stage& stage = stages_.emplace_back();
      prepare(stage.send, s.send, staged);
      prepare(stage.receive, s.receive, staged);
      std::vector<Box> boxes;
      for (const auto& c : s.copies)
        c.ghosts.for_each_box([&](const isohalo::Box<D>& b) { append(boxes, stage.copies.cells, b, c.shift); });
      stage.copies.upload(boxes);
    }
  }

  /// Posts all receives, packs and sends the first stage. Until `finish` the ghosts must not be touched. Fences the
  /// packing kernel. Local. Throws UsageError when an exchange is in flight or the view has other extents.
  void start(const View& view) {
    check(view);
    view_ = view;
    in_flight_ = true;
    const MPI_Comm comm = domain_.comm().get();
    for (Stage& stage : stages_)
      for (const auto& m : stage.receive.messages)
        mpi_check(MPI_Irecv_c(stage.receive.host.data() + m.first, m.cells * kBytes, MPI_BYTE, m.peer, tag_, comm,
                              &stage.receives.emplace_back(MPI_REQUEST_NULL)),
                  "MPI_Irecv in a view exchange", comm);
    send(stages_.front());
  }

  /// Completes the exchange: the ghosts are in place. Waits with back-off. Fences.
  void finish() {
    if (!in_flight_) throw UsageError("view exchange: finish() without start()");
    for (std::size_t k = 0; k < stages_.size(); ++k) {
      Stage& stage = stages_[k];
      if (k > 0) send(stage);
      domain_.comm().wait(stage.receives, "view exchange");
      stage.receives.clear();
      if (stage.receive.apart) Kokkos::deep_copy(stage.receive.buffer, stage.receive.host);
      run<detail::ViewTask::unpack>("isohalo::unpack", stage.receive.table, stage.receive.buffer);
    }
    domain_.comm().wait(sends_, "view exchange");
    sends_.clear();
    Space().fence();
    view_ = View();
    in_flight_ = false;
  }

  void exchange(const View& view) {
    start(view);
    finish();
  }

 private:
  static constexpr std::int64_t kBytes = static_cast<std::int64_t>(sizeof(Value));
  using Box = detail::ViewBox<D>;
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
    const MPI_Comm comm = domain_.comm().get();
    const Side& side = stage.send;
    run<detail::ViewTask::pack>("isohalo::pack", side.table, side.buffer);
    Space().fence();
    if (side.apart) Kokkos::deep_copy(side.host, side.buffer);
    for (const auto& m : side.messages)
      mpi_check(MPI_Isend_c(side.host.data() + m.first, m.cells * kBytes, MPI_BYTE, m.peer, tag_, comm,
                            &sends_.emplace_back(MPI_REQUEST_NULL)),
                "MPI_Isend in a view exchange", comm);
    run<detail::ViewTask::copy>("isohalo::copy_ghosts", stage.copies, side.buffer);
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

  void check(const View& view) const {
    if (in_flight_) throw UsageError("view exchange: start() while an exchange is in flight; call finish() first");
    for (int j = 0; j < D; ++j)
      if (static_cast<std::int64_t>(view.extent(static_cast<std::size_t>(j))) != extents_[j])
        throw UsageError("view exchange: the view has " + std::to_string(view.extent(static_cast<std::size_t>(j))) +
                         " cells in dimension " + std::to_string(j) + ", block and ghosts have " +
                         std::to_string(extents_[j]));
  }

  template <detail::ViewTask task>
  void run(const char* label, const Table& table, const Buffer& buffer) const {
    if (table.cells == 0) return;
    Kokkos::parallel_for(label, Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(0, table.cells),
                         detail::ViewKernel<View, Buffer, task>{view_, buffer, table.boxes});
  }

  CartesianDomain<D> domain_;
  Index<D> origin_, extents_{};
  int tag_;
  std::vector<Stage> stages_;
  View view_;
  std::vector<MPI_Request> sends_;
  bool in_flight_ = false;
};

}  // namespace isohalo
