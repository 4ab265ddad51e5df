/// Long vectors, read from where they lie in another process. Who is read from has to wait for that, so ranks that
/// outnumber the cores do not do it.

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <random>

#include "framework/shm/collectives.hpp"

namespace isohalo {

namespace {

/// The bytes from there on to `to`. False where the system refuses, or has no such call (Linux has it): then some
/// of them may have come. Local.
bool copy_from(const detail::ProcessAddress& from, std::byte* to, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const iovec here{to + done, bytes - done}, there{const_cast<std::byte*>(from.at) + done, bytes - done};
    const ssize_t came = process_vm_readv(static_cast<pid_t>(from.process), &here, 1, &there, 1, 0);
    if (came <= 0) return false;
    done += static_cast<std::size_t>(came);
  }
  return true;
}

}  // namespace

/// Of this call; null: by slots.
FastestWay* NodeCollectives::ways_of(const Call& call) {
  const bool gathers = call.shape == Shape::gather && call.root < 0;
  if (ranks_ == 1 || (!gathers && (forced_ || call.shape > Shape::broadcast))) return nullptr;
  const std::size_t kind = gathers ? 0 : call.shape == Shape::broadcast ? 1 : call.root < 0 ? 2 : 3;
  const std::size_t bytes = call.count * call.element * (gathers ? static_cast<std::size_t>(ranks_) : 1);
  const auto bits = static_cast<std::size_t>(std::bit_width(bytes));
  if (bits <= kOnceFrom) return nullptr;
  return &ways_[kind * kOnceLengths + std::min(bits - 1 - kOnceFrom, kOnceLengths - 1)];
}

/// Can all ranks read each other's memory? Collective.
bool NodeCollectives::can_copy_once() {
  // Numbers that no other process has there, should ranks have process numbers of their own.
  const std::uint64_t token = std::random_device()() | std::uint64_t{std::random_device()()} << 32;
  struct Word {
    detail::ProcessAddress place;
    std::uint64_t value;
  } const mine{{getpid(), reinterpret_cast<const std::byte*>(&token)}, token};
  std::vector<Word> words(static_cast<std::size_t>(ranks_));
  gather_words(&mine, sizeof mine, words.data());
  const bool refused = std::any_of(words.begin(), words.end(), [](const Word& w) {
    std::uint64_t read = 0;
    return !copy_from(w.place, reinterpret_cast<std::byte*>(&read), sizeof read) || read != w.value;
  });
  return largest(refused) == 0;
}

void NodeCollectives::copy_once(bool once) {
  std::fill(ways_.begin(), ways_.end(), FastestWay::decided_for(once && can_copy_once() ? 1 : 0));
}

/// A few bytes of each rank to all, never copied once. Collective.
void NodeCollectives::gather_words(const void* mine, std::size_t bytes, void* all) {
  const auto* const from = static_cast<const std::byte*>(mine);
  complete(call(Collective::allgather(from, bytes, static_cast<std::byte*>(all))), false);
}

/// Where something of each rank lies. Collective.
void NodeCollectives::tell(const std::byte* at, std::vector<detail::ProcessAddress>& all) {
  const detail::ProcessAddress own{getpid(), at};
  all.resize(static_cast<std::size_t>(ranks_));
  gather_words(&own, sizeof own, all.data());
}

/// The largest number of all ranks. Collective.
double NodeCollectives::largest(double mine) {
  numbers_.resize(static_cast<std::size_t>(ranks_));
  gather_words(&mine, sizeof mine, numbers_.data());
  return *std::max_element(numbers_.begin(), numbers_.end());
}

/// The elements, from the first one on, that are done: all, or fewer, the same on all ranks, when one of them could
/// not read. Then the rest is to be done by slots. All have read when it ends.
std::size_t NodeCollectives::copied_once(const Call& call) {
  if (call.combine) return reduced_once(call);
  const bool gathers = call.shape == Shape::gather;
  const auto me = static_cast<std::size_t>(me_), n = static_cast<std::size_t>(ranks_);
  std::byte* const in_place = gathers ? call.result + me * call.count : call.result;
  bool read = true;
  if (gathers) {
    tell(call.mine, places_);
    if (call.mine != in_place) std::memcpy(in_place, call.mine, call.count);
    for (std::size_t k = 1; k < n; ++k) {  // not all from the same one at the same time
      const std::size_t from = (me + k) % n;
      read = read && copy_from(places_[from], call.result + from * call.count, call.count);
    }
  } else {
    detail::ProcessAddress root{getpid(), call.mine};
    run(Collective::broadcast(reinterpret_cast<std::byte*>(&root), sizeof root, call.root));
    read = me_ == call.root || copy_from(root, call.result, call.count);
  }
  return largest(!read) == 0 ? call.count : 0;
}

/// Each rank combines a part of the vector, which it reads from all; then they read these parts.
std::size_t NodeCollectives::reduced_once(const Call& call) {
  const auto me = static_cast<std::size_t>(me_), n = static_cast<std::size_t>(ranks_);
  const std::size_t element = call.element, granule = std::max<std::size_t>(1, 64 / element);
  const auto elements = [&](std::size_t bytes) {
    return std::max<std::size_t>(1, bytes / element / granule) * granule;
  };
  const std::size_t most = elements(kOncePart), piece = elements(kOncePieces / n);  // of a part; read at a time
  const bool ordered = call.shape == Shape::ordered_reduction;
  std::vector<Join>& joins = all_joins_[ordered];
  if (joins.empty()) {
    const CombiningTree tree(ordered ? rank_order_ : hierarchy_);
    std::vector<int> leaves(n);
    std::iota(leaves.begin(), leaves.end(), 0);
    joins = tree.joins(tree.root(), leaves);
  }
  // What others still read is not overwritten: a part that has its place in what is combined lies here first.
  const bool here = call.mine == call.result || (call.root >= 0 && me_ != call.root);
  pieces_.resize(n * piece * element);
  if (here) part_.resize(std::min(most, call.count) * element);
  tell(call.mine, terms_);

  std::size_t done = 0;
  for (std::size_t length = 0; done < call.count; done += length) {
    length = std::min(call.count - done, n * most);
    const std::size_t each = ((length + n - 1) / n + granule - 1) / granule * granule;
    const auto begin_of = [&](std::size_t rank) { return done + std::min(length, rank * each); };
    const auto bytes_of = [&](std::size_t rank) { return (begin_of(rank + 1) - begin_of(rank)) * element; };
    const std::size_t first = begin_of(me), last = begin_of(me + 1);
    std::byte* const part = here ? part_.data() : call.result + first * element;
    bool read = true;
    for (std::size_t at = first, m = 0; at < last && read; at += m) {
      m = std::min(piece, last - at);
      inputs_[me] = call.mine + at * element;
      for (std::size_t k = 1; k < n; ++k) {
        const std::size_t from = (me + k) % n;
        std::byte* const to = pieces_.data() + from * piece * element;
        read = read && copy_from({terms_[from].process, terms_[from].at + at * element}, to, m * element);
        inputs_[from] = to;
      }
      if (read) call.combine->join(joins, inputs_, part + (at - first) * element, m);
    }
    tell(read ? part : nullptr, places_);
    if (std::any_of(places_.begin(), places_.end(), [](const auto& p) { return p.at == nullptr; })) return done;
    const bool wanted = call.root < 0 || call.root == me_;
    if (wanted && here) std::memcpy(call.result + first * element, part, bytes_of(me));
    for (std::size_t k = 1; wanted && k < n; ++k) {
      const std::size_t from = (me + k) % n;
      read = read && copy_from(places_[from], call.result + begin_of(from) * element, bytes_of(from));
    }
    if (largest(!read) == 0) continue;
    for (std::size_t from = 0; from < n; ++from) {  // what is combined is there, and may lie where its terms did
      std::byte* const to = wanted ? call.result + begin_of(from) * element : nullptr;
      const auto rest = Collective::broadcast(from == me ? part : to, bytes_of(from), static_cast<int>(from));
      complete(this->call(rest), false);
    }
    return done + length;
  }
  return done;
}

}  // namespace isohalo
