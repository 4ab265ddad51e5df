#pragma once
/// Halo messages packed and unpacked by Kokkos kernels, for arrays in any memory space. Private to framework/halo:
/// use view_ref.hpp.

#include <Kokkos_Core.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "datatypes/mpi_check.hpp"
#include "framework/halo/ghost_fill.hpp"
#include "framework/halo/kernel_copies.hpp"

namespace isohalo::detail {

/// A box of cells; plain arrays, because device code has no std::array.
template <int D>
struct KernelBox {
  std::int64_t first;                        ///< place of its first cell among the cells of the table
  std::int64_t byte;                         ///< of that cell in the buffer
  std::int64_t low[D], extent[D], shift[D];  ///< from the first owned cell; a cell's source lies `shift` below it
};

enum class KernelTask { pack, unpack, copy };

/// Cell k / words of a table of boxes, word k % words of it: array to buffer, buffer to array, or within the array.
template <int D, class Word, class Memory, KernelTask task>
struct CellKernel {
  char* data;              ///< the first owned cell
  std::int64_t stride[D];  ///< in bytes
  std::int64_t words;      ///< of a cell
  char* buffer;
  Kokkos::View<const KernelBox<D>*, Memory> boxes;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t k) const {
    const std::int64_t cell = k / words, word = k - cell * words;
    std::size_t low = 0, high = boxes.extent(0);
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      if (boxes(middle).first <= cell)
        low = middle;
      else
        high = middle;
    }
    const KernelBox<D>& b = boxes(low);
    std::int64_t left = cell - b.first, at = 0, source = 0;
    for (int j = D - 1; j >= 0; --j) {
      const std::int64_t i = b.low[j] + left % b.extent[j];
      at += i * stride[j];
      source += (i - b.shift[j]) * stride[j];
      left /= b.extent[j];
    }
    Word& here = reinterpret_cast<Word*>(data + at)[word];
    Word& packed = reinterpret_cast<Word*>(buffer + b.byte)[(cell - b.first) * words + word];
    if constexpr (task == KernelTask::pack)
      packed = here;
    else if constexpr (task == KernelTask::unpack)
      here = packed;
    else
      here = reinterpret_cast<const Word*>(data + source)[word];
  }
};

/// Per stage and array one kernel packs the cells of all messages, one copies the ghosts that are this rank's own
/// cells, one unpacks. All arrays of an exchange go in one message per peer.
///
/// Messages are sent from host memory: where the host cannot reach the arrays' memory, or when they are `staged`,
/// buffers are copied there; otherwise they are used in place.
template <int D, class Space, bool staged>
class KernelTransport final : public HaloTransport<D> {
 public:
  KernelTransport(const CartesianDomain<D>& domain, int first_tag, std::vector<HaloSchedule<D>> schedules,
                  std::span<const std::int64_t> element_bytes)
      : HaloTransport<D>(domain, first_tag, std::move(schedules)) {
    for (std::size_t k = 0; k < this->stages(); ++k) {
      Stage& stage = stages_.emplace_back();
      prepare(stage.send, joined<D>(this->schedules_, k, &HaloStage<D>::send), element_bytes);
      prepare(stage.receive, joined<D>(this->schedules_, k, &HaloStage<D>::receive), element_bytes);
      for (std::size_t s = 0; s < this->schedules_.size(); ++s) stage.copies.push_back(copies_of(s, k));
      receives_.emplace_back(stage.receive.messages.size(), MPI_REQUEST_NULL);
      sends_.emplace_back(stage.send.messages.size(), MPI_REQUEST_NULL);
    }
  }

 private:
  using Memory = typename Space::memory_space;
  using Buffer = Kokkos::View<char*, Memory>;
  using HostBuffer = Kokkos::View<char*, Kokkos::HostSpace>;

  /// Boxes in the arrays' memory space.
  struct Table {
    Kokkos::View<KernelBox<D>*, Memory> boxes;
    std::int64_t cells = 0;
  };
  struct Message {
    int peer;
    std::int64_t first, bytes;
  };
  /// All messages one way: their cells in one buffer, and the same buffer or a copy of it on the host.
  struct Side {
    std::vector<Message> messages;
    std::vector<Table> tables;  ///< by array
    Buffer buffer;
    HostBuffer host;
    bool apart = false;
  };
  struct Stage {
    Side send, receive;
    std::vector<Table> copies;  ///< by schedule
  };

  /// Boxes as they are collected.
  struct BoxList {
    std::vector<KernelBox<D>> boxes;
    std::int64_t cells = 0;

    void add(const Box<D>& b, const Index<D>& origin, const Index<D>& shift, std::int64_t byte) {
      KernelBox<D> k{};
      k.first = cells, k.byte = byte;
      for (int j = 0; j < D; ++j) k.low[j] = b.low[j] - origin[j], k.extent[j] = b.extent(j), k.shift[j] = shift[j];
      cells += b.cells();
      boxes.push_back(k);
    }
    Table uploaded() const {
      Table t{Kokkos::View<KernelBox<D>*, Memory>("isohalo::boxes", boxes.size()), cells};
      const auto mirror = Kokkos::create_mirror_view(t.boxes);
      std::copy(boxes.begin(), boxes.end(), mirror.data());
      Kokkos::deep_copy(t.boxes, mirror);
      return t;
    }
  };

  const Index<D>& origin() const { return this->domain_.owned().low; }

  Table copies_of(std::size_t schedule, std::size_t k) const {
    const HaloStage<D>& stage = this->schedules_[schedule].stages[k];
    BoxList list;
    for (const auto& c : stage.copies)
      c.ghosts.for_each_box([&](const Box<D>& b) { list.add(b, origin(), c.shift, 0); });
    if (stage.fill)
      stage.fill->for_each_row_of_copies(
          [&](const Box<D>& b, const Index<D>& shift) { list.add(b, origin(), shift, 0); });
    return list.uploaded();
  }

  /// Message after message, and in each array after array, from multiples of 64 bytes on.
  void prepare(Side& side, const std::vector<JoinedMessage<D>>& messages,
               std::span<const std::int64_t> element_bytes) const {
    constexpr std::int64_t line = 64;
    std::vector<BoxList> lists(element_bytes.size());
    std::int64_t at = 0;
    for (const JoinedMessage<D>& m : messages) {
      const std::int64_t first = at;
      for (std::size_t f = 0; f < lists.size(); ++f) {
        const HaloMessage<D>* const part = m.parts[this->schedule_of(f)];
        if (!part) continue;
        for (const Box<D>& b : part->boxes()) {
          lists[f].add(b, origin(), {}, at);
          at += b.cells() * element_bytes[f];
        }
        at = (at + line - 1) / line * line;
      }
      side.messages.push_back({m.peer, first, at - first});
    }
    for (const BoxList& list : lists) side.tables.push_back(list.uploaded());
    const auto bytes = static_cast<std::size_t>(at);
    side.buffer = Buffer(Kokkos::view_alloc("isohalo::buffer", Kokkos::WithoutInitializing), bytes);
    if constexpr (!staged && Kokkos::SpaceAccessibility<Kokkos::HostSpace, Memory>::accessible) {
      side.host = HostBuffer(side.buffer.data(), bytes);  // lives as long as `buffer`
    } else {
      side.host = HostBuffer(Kokkos::view_alloc("isohalo::host_buffer", Kokkos::WithoutInitializing), bytes);
      side.apart = true;
    }
  }

  void post_receives() override {
    for (std::size_t k = 0; k < stages_.size(); ++k) {
      const Side& side = stages_[k].receive;
      for (std::size_t m = 0; m < side.messages.size(); ++m)
        mpi_check(MPI_Irecv_c(side.host.data() + side.messages[m].first, side.messages[m].bytes, MPI_BYTE,
                              side.messages[m].peer, this->first_tag_, this->comm(), &receives_[k][m]),
                  "MPI_Irecv in a halo exchange", this->comm());
    }
  }

  void send(std::size_t stage) override {
    const Side& side = stages_[stage].send;
    for (std::size_t f = 0; f < this->arrays_.size(); ++f)
      run<KernelTask::pack>("isohalo::pack", f, side.tables[f], side.buffer.data());
    Space().fence();
    if (side.apart) Kokkos::deep_copy(side.host, side.buffer);
    for (std::size_t m = 0; m < side.messages.size(); ++m)
      mpi_check(MPI_Isend_c(side.host.data() + side.messages[m].first, side.messages[m].bytes, MPI_BYTE,
                            side.messages[m].peer, this->first_tag_, this->comm(), &sends_[stage][m]),
                "MPI_Isend in a halo exchange", this->comm());
  }

  void copy(std::size_t stage) override {
    for (std::size_t f = 0; f < this->arrays_.size(); ++f)
      run<KernelTask::copy>("isohalo::copy_ghosts", f, stages_[stage].copies[this->schedule_of(f)], nullptr);
  }

  bool received(std::size_t stage) override {
    if (!test_all(receives_[stage], "halo exchange", this->comm())) return false;
    const Side& side = stages_[stage].receive;
    if (side.apart) Kokkos::deep_copy(side.buffer, side.host);
    for (std::size_t f = 0; f < this->arrays_.size(); ++f)
      run<KernelTask::unpack>("isohalo::unpack", f, side.tables[f], side.buffer.data());
    return true;
  }

  bool left() override {
    for (auto& stage : sends_)
      if (!test_all(stage, "halo exchange", this->comm())) return false;
    Space().fence();  // the last ghosts are in place
    return true;
  }

  template <KernelTask task>
  void run(const char* label, std::size_t array, const Table& table, char* buffer) const {
    if (table.cells == 0) return;
    const ErasedArray<D>& a = this->arrays_[array];
    const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(a.data) % 8);
    switch (std::gcd(std::gcd(std::gcd(a.bytes, a.pitch), address), std::int64_t{8})) {
      case 8:
        return run_by<std::uint64_t, task>(label, a, table, buffer);
      case 4:
        return run_by<std::uint32_t, task>(label, a, table, buffer);
      case 2:
        return run_by<std::uint16_t, task>(label, a, table, buffer);
      default:
        return run_by<std::uint8_t, task>(label, a, table, buffer);
    }
  }

  template <class Word, KernelTask task>
  void run_by(const char* label, const ErasedArray<D>& a, const Table& table, char* buffer) const {
    CellKernel<D, Word, Memory, task> kernel{reinterpret_cast<char*>(a.data),
                                             {},
                                             a.bytes / static_cast<std::int64_t>(sizeof(Word)),
                                             buffer,
                                             table.boxes};
    const Index<D> strides = a.byte_strides();
    for (int j = 0; j < D; ++j) kernel.stride[j] = strides[j];
    Kokkos::parallel_for(
        label, Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(0, table.cells * kernel.words), kernel);
  }

  std::vector<Stage> stages_;
  std::vector<std::vector<MPI_Request>> receives_, sends_;  ///< by stage
};

template <int D, class Space, bool staged>
inline constexpr KernelCopies<D> kKernelCopies{
    [](const CartesianDomain<D>& domain, int first_tag, std::vector<HaloSchedule<D>> schedules,
       std::span<const std::int64_t> element_bytes) -> std::unique_ptr<HaloTransport<D>> {
      return std::make_unique<KernelTransport<D, Space, staged>>(domain, first_tag, std::move(schedules),
                                                                 element_bytes);
    }};

}  // namespace isohalo::detail
