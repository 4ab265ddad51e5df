#pragma once
/// Halo messages packed and unpacked by Kokkos kernels, for arrays in any memory space. Private to framework/halo:
/// use view_ref.hpp.

#include <Kokkos_Core.hpp>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "datatypes/error.hpp"
#include "framework/halo/transport.hpp"
#include "framework/mpi/device_memory.hpp"

namespace isohalo::detail {

/// Host memory that a device copies to and from at full speed: pinned, where there is a device.
#ifdef KOKKOS_HAS_SHARED_HOST_PINNED_SPACE  // since Kokkos 4
using HostMemory = Kokkos::SharedHostPinnedSpace;
#else
using HostMemory = Kokkos::HostSpace;
#endif

/// Can MPI send from the memory of Space, and receive there, and may it? Not where Kokkos takes memory in the order
/// of a stream, which MPI does not share among processes.
template <class Space>
bool mpi_reads_memory_of() {
  if (host_messages_wanted()) return false;
  if constexpr (Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename Space::memory_space>::accessible)
    return true;
#if defined(KOKKOS_ENABLE_CUDA) && !defined(KOKKOS_ENABLE_IMPL_CUDA_MALLOC_ASYNC)
  if constexpr (std::is_same_v<Space, Kokkos::Cuda>) return mpi_reads_device_memory(DeviceMemory::cuda);
#endif
#if defined(KOKKOS_ENABLE_HIP) && !defined(KOKKOS_ENABLE_IMPL_HIP_MALLOC_ASYNC) && KOKKOS_VERSION >= 40000
  if constexpr (std::is_same_v<Space, Kokkos::HIP>) return mpi_reads_device_memory(DeviceMemory::hip);
#endif
  return false;
}

/// A box of cells; plain arrays, because device code has no std::array.
template <int D>
struct KernelBox {
  std::int64_t first;             ///< place of its first cell among the cells of the table
  std::int64_t byte;              ///< of that cell in the buffer
  std::int64_t low[D], shift[D];  ///< from the first owned cell; a cell's source lies `shift` below it
  std::uint32_t extent[D];        ///< fewer than 2^32 cells in all, so that devices divide short numbers
};

enum class KernelTask { pack, unpack, copy };

/// Cell k / words of a table of boxes, word k % words of it: array to buffer, buffer to array, or within the array.
template <int D, class Word, KernelTask task>
struct CellKernel {
  char* data;              ///< the first owned cell
  std::int64_t stride[D];  ///< in bytes
  std::int64_t words;      ///< of a cell
  char* buffer;
  const KernelBox<D>* boxes;
  std::size_t number;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t k) const {
    const std::int64_t cell = words == 1 ? k : k / words, word = k - cell * words;
    std::size_t low = 0, high = number;
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      if (boxes[middle].first <= cell)
        low = middle;
      else
        high = middle;
    }
    const KernelBox<D>& b = boxes[low];
    auto left = static_cast<std::uint32_t>(cell - b.first);
    std::int64_t at = 0, source = 0;
    for (int j = D - 1; j >= 0; --j) {
      const std::int64_t i = b.low[j] + left % b.extent[j];
      at += i * stride[j];
      source += (i - b.shift[j]) * stride[j];
      left /= b.extent[j];
    }
    Word& here = reinterpret_cast<Word*>(data + at)[word];
    if constexpr (task == KernelTask::copy) {  // has no buffer
      here = reinterpret_cast<const Word*>(data + source)[word];
    } else {
      Word& packed = reinterpret_cast<Word*>(buffer + b.byte)[(cell - b.first) * words + word];
      if constexpr (task == KernelTask::pack)
        packed = here;
      else
        here = packed;
    }
  }
};

/// Per stage and array one kernel packs the cells of all messages, one copies the ghosts that are this rank's own
/// cells, one unpacks. All arrays of an exchange go in one message per peer.
///
/// Where MPI cannot reach the arrays' memory, or must not (host_messages_wanted), buffers are copied to host
/// memory; otherwise they are used in place.
template <int D, class Space>
class KernelTransport final : public HaloTransport<D> {
 public:
  explicit KernelTransport(HaloTask<D> task) : HaloTransport<D>(std::move(task)) {
    for (std::size_t k = 0; k < this->stages(); ++k) {
      Stage& stage = stages_.emplace_back();
      prepare(stage.send, joined<D>(this->task_.schedules, k, &HaloStage<D>::send));
      prepare(stage.receive, joined<D>(this->task_.schedules, k, &HaloStage<D>::receive));
      for (const auto& schedule : this->task_.schedules) stage.copies.push_back(copies_of(schedule[k]));
      messages_ = messages_ || !stage.send.messages.empty() || !stage.receive.messages.empty();
      this->receives_[k].resize(stage.receive.messages.size(), MPI_REQUEST_NULL);
    }
  }
  ~KernelTransport() override {
    if (!this->fences_ && Kokkos::is_initialized()) Space().fence();  // kernels may still read the buffers
  }

 private:
  using Memory = typename Space::memory_space;
  using Buffer = Kokkos::View<char*, Memory>;
  using HostBuffer = Kokkos::View<char*, HostMemory>;

  /// Boxes: collected, then put into the arrays' memory space.
  struct Table {
    std::vector<KernelBox<D>> list;
    Kokkos::View<KernelBox<D>*, Memory> boxes;
    std::int64_t cells = 0;

    void add(const ShiftedBox<D>& b, const Index<D>& origin, std::int64_t byte) {
      if (b.box.cells() >> 32)
        throw UsageError("ghosts of " + std::to_string(b.box.cells()) +
                         " cells: kernels copy fewer than 2^32 at a time; use more ranks");
      KernelBox<D>& k = list.emplace_back();
      k.first = cells, k.byte = byte;
      for (int j = 0; j < D; ++j) {
        k.low[j] = b.box.low[j] - origin[j];
        k.extent[j] = static_cast<std::uint32_t>(b.box.extent(j));
        k.shift[j] = b.shift[j];
      }
      cells += b.box.cells();
    }
    void upload() {
      boxes = Kokkos::View<KernelBox<D>*, Memory>("isohalo::boxes", list.size());
      const auto mirror = Kokkos::create_mirror_view(boxes);
      std::copy(list.begin(), list.end(), mirror.data());
      Kokkos::deep_copy(boxes, mirror);
      list = {};
    }
  };
  struct Message {
    int peer;
    std::int64_t first, bytes;
  };
  /// All messages one way: their cells in one buffer, which MPI gets itself or as a copy on the host.
  struct Side {
    std::vector<Message> messages;
    std::vector<Table> tables;  ///< by array
    Buffer buffer;
    HostBuffer host;
    bool apart = false;  ///< by way of `host`

    char* of(const Message& m) const { return (apart ? host.data() : buffer.data()) + m.first; }
  };
  struct Stage {
    Side send, receive;
    std::vector<Table> copies;  ///< by schedule
  };

  const Index<D>& origin() const { return this->task_.domain.owned().low; }

  Table copies_of(const HaloStage<D>& stage) const {
    Table table;
    for (const auto& b : boxes_of(stage.copies)) table.add(b, origin(), 0);
    table.upload();
    return table;
  }

  /// Message after message, and in each array after array, from multiples of 64 bytes on.
  void prepare(Side& side, const std::vector<JoinedMessage<D>>& messages) const {
    constexpr std::int64_t line = 64;
    side.tables.resize(this->task_.element_bytes.size());
    std::int64_t at = 0;
    for (const JoinedMessage<D>& m : messages) {
      const std::int64_t first = at;
      for (std::size_t f = 0; f < side.tables.size(); ++f) {
        const HaloMessage<D>* const part = m.parts[this->schedule_of(f)];
        if (!part) continue;
        for (const auto& b : boxes_of(part->regions)) {
          side.tables[f].add(b, origin(), at);
          at += b.box.cells() * this->task_.element_bytes[f];
        }
        at = (at + line - 1) / line * line;
      }
      side.messages.push_back({m.peer, first, at - first});
    }
    for (Table& table : side.tables) table.upload();
    const auto bytes = static_cast<std::size_t>(at);
    side.buffer = Buffer(Kokkos::view_alloc("isohalo::buffer", Kokkos::WithoutInitializing), bytes);
    side.apart = !mpi_reads_memory_of<Space>() && at > 0;
    if (side.apart)
      side.host = HostBuffer(Kokkos::view_alloc("isohalo::host_buffer", Kokkos::WithoutInitializing), bytes);
  }

  /// `send` of the first stage does, when nothing that was launched before still reads the buffers.
  void post_receives() override {}

  /// Fences once for all messages of an exchange, and where later stages send.
  void send(std::size_t stage) override {
    const Side& side = stages_[stage].send;
    for (std::size_t f = 0; f < this->arrays_.size(); ++f)
      run<KernelTask::pack>("isohalo::pack", f, side.tables[f], side.buffer.data());
    if (side.apart) Kokkos::deep_copy(Space(), side.host, side.buffer);
    if (stage == 0 ? messages_ : !side.messages.empty()) Space().fence();
    for (std::size_t k = 0; stage == 0 && k < stages_.size(); ++k) {
      const Side& receive = stages_[k].receive;
      for (std::size_t m = 0; m < receive.messages.size(); ++m)
        this->receive_from(receive.messages[m].peer, receive.of(receive.messages[m]), receive.messages[m].bytes,
                           MPI_BYTE, this->receives_[k][m]);
    }
    for (const Message& m : side.messages) this->send_to(m.peer, side.of(m), m.bytes, MPI_BYTE);
  }

  void copy(std::size_t stage) override {
    for (std::size_t f = 0; f < this->arrays_.size(); ++f)
      run<KernelTask::copy>("isohalo::ghosts", f, stages_[stage].copies[this->schedule_of(f)], nullptr);
  }

  bool received(std::size_t stage) override {
    if (!HaloTransport<D>::received(stage)) return false;
    const Side& side = stages_[stage].receive;
    if (side.apart) Kokkos::deep_copy(Space(), side.buffer, side.host);
    for (std::size_t f = 0; f < this->arrays_.size(); ++f)
      run<KernelTask::unpack>("isohalo::unpack", f, side.tables[f], side.buffer.data());
    return true;
  }

  bool left() override {
    if (!HaloTransport<D>::left()) return false;
    if (this->fences_) Space().fence();  // the last ghosts are in place
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
    const std::int64_t words = a.bytes / static_cast<std::int64_t>(sizeof(Word));
    CellKernel<D, Word, task> kernel{
        reinterpret_cast<char*>(a.data), {}, words, buffer, table.boxes.data(), table.boxes.extent(0)};
    const Index<D> strides = a.byte_strides();
    for (int j = 0; j < D; ++j) kernel.stride[j] = strides[j];
    Kokkos::parallel_for(label, Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(0, table.cells * words),
                         kernel);
  }

  std::vector<Stage> stages_;
  bool messages_ = false;  ///< are there any?
};

template <int D, class Space>
inline constexpr KernelCopies<D> kKernelCopies{[](HaloTask<D> task) -> std::unique_ptr<HaloTransport<D>> {
  return std::make_unique<KernelTransport<D, Space>>(std::move(task));
}};

}  // namespace isohalo::detail
