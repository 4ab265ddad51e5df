#include "framework/shm/collectives.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include "datatypes/mpi_check.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo {

namespace {

// The memory of a rank: a line that says which step it has ended last, lines for the rounds of the barrier, and
// slots that are used in turn. A slot begins with the step it was published in, so that short data come with the
// flag.
constexpr std::size_t kLine = 128;  // two cache lines: what a processor may fetch at once
constexpr std::size_t kRounds = 32, kSlots = 4, kSlotData = std::size_t{32} << 10, kSlotBytes = kLine + kSlotData;
constexpr std::size_t kFirstSlot = kLine * (1 + kRounds);
constexpr std::size_t kMemory = kFirstSlot + kSlots * kSlotBytes;
/// Shorter vectors are combined by every rank, which reads all; longer ones each in a part of its own.
constexpr std::size_t kFlatBytes = 4096;
/// Short data lie behind the flag, long ones on lines of their own.
constexpr std::size_t kFlag = sizeof(std::uint64_t);

using Counter = std::atomic_ref<std::uint64_t>;
static_assert(Counter::is_always_lock_free, "counters are shared by processes");

Counter counter(std::byte* at) {
  return Counter(*reinterpret_cast<std::uint64_t*>(at));
}

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

std::unique_ptr<NodeCollectives> NodeCollectives::make(MPI_Comm comm, int spins) {
  auto memory = detail::NodeMemory::make(comm, spins, kMemory);
  if (!memory) return nullptr;
  return std::unique_ptr<NodeCollectives>(new NodeCollectives(comm, std::move(*memory), spins));
}

NodeCollectives::NodeCollectives(MPI_Comm comm, detail::NodeMemory memory, int spins)
    : comm_(comm), memory_(std::move(memory)), spins_(spins) {
  mpi_check(MPI_Comm_rank(comm, &me_), "MPI_Comm_rank");
  mpi_check(MPI_Comm_size(comm, &ranks_), "MPI_Comm_size");
  ended_.resize(static_cast<std::size_t>(ranks_));
  vectors_.resize(static_cast<std::size_t>(ranks_));
}

template <class Ready>
void NodeCollectives::wait(const Ready& ready) const {
  for (int k = 0; k < spins_; ++k) {
    if (ready()) return;
    relax();
  }
  Backoff backoff(0);
  for (int k = 0; !ready(); ++k) {
    if (k % 64 == 32) {  // a rank that we wait for may need a message of ours
      int there = 0;
      mpi_check(MPI_Iprobe(MPI_ANY_SOURCE, 0, comm_, &there, MPI_STATUS_IGNORE), "MPI_Iprobe");
    }
    backoff.pause();
  }
}

std::byte* NodeCollectives::slot(int rank) const {
  return memory_.of(rank) + kFirstSlot + step_ % kSlots * kSlotBytes;
}

void NodeCollectives::wait_for_readers() {
  if (step_ <= kSlots) return;
  const std::uint64_t needed = step_ - kSlots;
  for (int r = 0; r < ranks_; ++r) {
    std::uint64_t& known = ended_[static_cast<std::size_t>(r)];
    if (r == me_ || known >= needed) continue;
    const Counter last = counter(memory_.of(r));
    wait([&] { return (known = last.load(std::memory_order_acquire)) >= needed; });
  }
}

std::byte* NodeCollectives::own_slot() {
  wait_for_readers();
  return slot(me_) + kFlag;
}

void NodeCollectives::publish() {
  counter(slot(me_)).store(step_, std::memory_order_release);
}

const std::byte* NodeCollectives::read(int rank) {
  const Counter flag = counter(slot(rank));
  wait([&] { return flag.load(std::memory_order_acquire) == step_; });
  std::uint64_t& known = ended_[static_cast<std::size_t>(rank)];
  known = std::max(known, step_ - 1);
  return slot(rank) + kFlag;
}

void NodeCollectives::end_step() {
  counter(memory_.of(me_)).store(step_, std::memory_order_release);
  ++step_;
}

/// Dissemination: in round k rank w tells w + 2^k, and hears from w - 2^k.
void NodeCollectives::barrier() {
  std::size_t round = 1;
  for (int far = 1; far < ranks_; far *= 2, ++round) {
    counter(memory_.of(me_) + round * kLine).store(step_, std::memory_order_release);
    const Counter theirs = counter(memory_.of((me_ + ranks_ - far) % ranks_) + round * kLine);
    wait([&] { return theirs.load(std::memory_order_acquire) >= step_; });
  }
  end_step();
}

void NodeCollectives::broadcast(std::byte* data, std::size_t bytes, int root) {
  for (std::size_t at = 0; at < bytes; at += kSlotData) {
    const std::size_t n = std::min(kSlotData, bytes - at);
    if (me_ == root) {
      copy_bytes(own_slot(), data + at, n);
      publish();
    } else {
      copy_bytes(data + at, read(root), n);
    }
    end_step();
  }
}

void NodeCollectives::gather(const std::byte* mine, std::size_t bytes, std::byte* all, int root) {
  for (std::size_t at = 0; at < bytes; at += kSlotData) {
    const std::size_t n = std::min(kSlotData, bytes - at);
    if (me_ != root) {
      copy_bytes(own_slot(), mine + at, n);
      publish();
    } else {
      for (int r = 0; r < ranks_; ++r) {
        std::byte* const to = all + static_cast<std::size_t>(r) * bytes + at;
        if (r != me_)
          copy_bytes(to, read(r), n);
        else if (mine)
          copy_bytes(to, mine + at, n);
      }
    }
    end_step();
  }
}

void NodeCollectives::allgather(const std::byte* mine, std::size_t bytes, std::byte* all) {
  for (std::size_t at = 0; at < bytes; at += kSlotData) {
    const std::size_t n = std::min(kSlotData, bytes - at);
    copy_bytes(own_slot(), mine + at, n);
    publish();
    for (int k = 0; k < ranks_; ++k) {  // each begins elsewhere
      const int r = (me_ + k) % ranks_;
      std::byte* const to = all + static_cast<std::size_t>(r) * bytes + at;
      copy_bytes(to, r == me_ ? mine + at : read(r), n);
    }
    end_step();
  }
}

void NodeCollectives::scatter(const std::byte* all, std::size_t bytes, std::byte* mine, int root) {
  // A slot holds a part of what each rank gets.
  const std::size_t part = kSlotData / static_cast<std::size_t>(ranks_);
  for (std::size_t at = 0; at < bytes; at += part) {
    const std::size_t n = std::min(part, bytes - at);
    if (me_ == root) {
      std::byte* const to = own_slot();
      for (int r = 0; r < ranks_; ++r) {
        const std::byte* const from = all + static_cast<std::size_t>(r) * bytes + at;
        if (r != me_)
          copy_bytes(to + static_cast<std::size_t>(r) * n, from, n);
        else if (mine)
          copy_bytes(mine + at, from, n);
      }
      publish();
    } else {
      copy_bytes(mine + at, read(root) + static_cast<std::size_t>(me_) * n, n);
    }
    end_step();
  }
}

void NodeCollectives::allreduce(const std::byte* mine, std::byte* result, std::size_t count,
                                const detail::Combine& combine) {
  const std::size_t bytes = combine.element_bytes(), most = kSlotData / bytes;
  if (count * bytes <= kFlatBytes) {
    if (count > 0) allreduce_flat(mine, result, count, combine);
    return;
  }
  for (std::size_t at = 0; at < count; at += most)
    tile_to_all(mine + at * bytes, result + at * bytes, std::min(most, count - at), combine);
}

/// Everybody reads everything.
void NodeCollectives::allreduce_flat(const std::byte* mine, std::byte* result, std::size_t count,
                                     const detail::Combine& combine) {
  copy_bytes(own_slot(), mine, count * combine.element_bytes());
  publish();
  for (int r = 0; r < ranks_; ++r) vectors_[static_cast<std::size_t>(r)] = r == me_ ? mine : read(r);
  combine.all(vectors_, result, count);
  end_step();
}

/// Each rank combines one tile, which begins on a line, and all read the others' tiles (section 2.4).
void NodeCollectives::tile_to_all(const std::byte* mine, std::byte* result, std::size_t count,
                                  const detail::Combine& combine) {
  const std::size_t bytes = combine.element_bytes();
  const auto p = static_cast<std::size_t>(ranks_);
  const std::size_t granule = std::max<std::size_t>(1, 64 / bytes);
  const std::size_t tile = ((count + p - 1) / p + granule - 1) / granule * granule;
  const auto first = [&](int r) { return std::min(count, static_cast<std::size_t>(r) * tile); };
  const auto length = [&](int r) { return first(r + 1) - first(r); };
  std::byte* const own = own_slot();
  const std::size_t begin = first(me_) * bytes, end = first(me_ + 1) * bytes;
  copy_bytes(own, mine, begin);
  copy_bytes(own + end, mine + end, count * bytes - end);
  publish();
  for (int r = 0; r < ranks_; ++r) vectors_[static_cast<std::size_t>(r)] = (r == me_ ? mine : read(r)) + begin;
  end_step();  // not quite: what we read stays, because nobody gets round to this slot before our tile is there
  std::byte* const combined = own_slot();
  combine.all(vectors_, combined, length(me_));
  publish();
  copy_bytes(result + begin, combined, length(me_) * bytes);
  for (int k = 1; k < ranks_; ++k) {
    const int r = (me_ + k) % ranks_;
    copy_bytes(result + first(r) * bytes, read(r), length(r) * bytes);
  }
  end_step();
}

void NodeCollectives::reduce(const std::byte* mine, std::byte* result, std::size_t count,
                             const detail::Combine& combine, int root) {
  const std::size_t bytes = combine.element_bytes(), most = kSlotData / bytes;
  for (std::size_t at = 0; at < count; at += most) {
    const std::size_t n = std::min(most, count - at);
    if (me_ != root) {
      copy_bytes(own_slot(), mine + at * bytes, n * bytes);
      publish();
    } else {
      for (int r = 0; r < ranks_; ++r)
        vectors_[static_cast<std::size_t>(r)] = r == me_ ? mine + at * bytes : read(r);
      combine.all(vectors_, result + at * bytes, n);
    }
    end_step();
  }
}

}  // namespace isohalo
