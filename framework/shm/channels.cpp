#include "framework/shm/channels.hpp"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <string>

#include "datatypes/error.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/shm/node_memory.hpp"

namespace isohalo {

namespace {

constexpr std::int64_t kLine = 128;          // two cache lines: processors fetch them in pairs
constexpr std::int64_t kHeader = 3 * kLine;  // the counters, zero at first as the memory is

std::int64_t padded(std::int64_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

using Counter = std::atomic_ref<std::uint64_t>;
static_assert(Counter::is_always_lock_free);

Counter ready_of(std::byte* base) {
  return Counter(*reinterpret_cast<std::uint64_t*>(base));
}
Counter taken_of(std::byte* base) {
  return Counter(*reinterpret_cast<std::uint64_t*>(base + kLine));
}
Counter opened_of(std::byte* base) {
  return Counter(*reinterpret_cast<std::uint64_t*>(base + 2 * kLine));
}

std::int64_t channel_bytes(const ChannelGroup::Outgoing& o) {
  return kHeader + padded(o.note_bytes) + 2 * padded(o.bytes);
}

/// False when the machine is known to have less than twice so many bytes of memory left: what is shared is memory
/// like any other.
bool memory_has_room(double bytes) {
  std::ifstream in("/proc/meminfo");
  for (std::string key, rest; in >> key; std::getline(in, rest)) {
    double kib = 0;
    if (key == "MemAvailable:" && in >> kib) return 2 * bytes <= kib * 1024;
  }
  return true;
}

/// `missing`: bytes of the rank that lacks most, on all ranks.
void refuse_missing(std::int64_t missing, int ranks) {
  if (missing == 0) return;
  throw RunError(
      "shared memory of this node: " + std::to_string((missing >> 10) + 1) + " KiB for each of " +
      std::to_string(ranks) +
      " ranks cannot be had, or not be mapped (by memfd_create and /proc/PID/fd): choose an exchange other "
      "than \"shared\"");
}

}  // namespace

std::byte* ChannelEnd::slot(std::uint64_t message) const {
  return base_ + kHeader + padded(note_bytes_) + static_cast<std::int64_t>(message & 1) * padded(slot_bytes_);
}

std::byte* ChannelEnd::free_slot() const {
  const std::uint64_t message = count_ + 1;
  return taken_of(base_).load(std::memory_order_acquire) + 2 >= message ? slot(message) : nullptr;
}

void ChannelEnd::publish() {
  ready_of(base_).store(++count_, std::memory_order_release);
}

const std::byte* ChannelEnd::next_message() const {
  const std::uint64_t message = count_ + 1;
  return ready_of(base_).load(std::memory_order_acquire) >= message ? slot(message) : nullptr;
}

void ChannelEnd::release() {
  taken_of(base_).store(++count_, std::memory_order_release);
}

std::byte* ChannelEnd::note() const {
  return base_ + kHeader;
}

void ChannelEnd::open() {
  opened_of(base_).store(count_ + 1, std::memory_order_release);
}

bool ChannelEnd::opened() const {
  return opened_of(base_).load(std::memory_order_acquire) > count_;
}

ChannelGroup::ChannelGroup(const Node& node, const std::vector<Outgoing>& out, const std::vector<int>& in) {
  std::int64_t bytes = 0;
  for (const Outgoing& o : out) bytes += channel_bytes(o);
  SharedAddress mine;
  const bool good = bytes == 0 || (memory_has_room(static_cast<double>(bytes) * node.ranks()) &&
                                   detail::reserve_shared(static_cast<std::size_t>(bytes), own_, mine));
  refuse_missing(node.max(good ? 0 : bytes), node.ranks());
  connect(node, out, in, mine);
  const bool mapped = std::all_of(theirs_.begin(), theirs_.end(), [](const auto& m) { return m.mapped(); });
  refuse_missing(node.max(mapped ? 0 : std::max<std::int64_t>(bytes, 1)), node.ranks());
  own_.close();
}

void ChannelGroup::connect(const Node& node, const std::vector<Outgoing>& out, const std::vector<int>& in,
                           const SharedAddress& mine) {
  struct Place {
    SharedAddress at;
    std::int64_t bytes, note_bytes;
  };
  const auto& members = node.layout().members;
  const auto member = [&](int rank) {
    return static_cast<int>(std::lower_bound(members.begin(), members.end(), rank) - members.begin());
  };
  std::vector<Place> sent, got(in.size());
  SharedAddress at = mine;
  for (const Outgoing& o : out) {
    outgoing.push_back({own_.data() + at.offset, o.bytes, o.note_bytes});
    sent.push_back({at, o.bytes, o.note_bytes});
    at.offset += channel_bytes(o);
  }
  std::vector<MPI_Request> requests(in.size() + out.size(), MPI_REQUEST_NULL);
  auto request = requests.begin();
  for (std::size_t k = 0; k < in.size(); ++k)
    mpi_check(MPI_Irecv(&got[k], sizeof(Place), MPI_BYTE, member(in[k]), 0, node.comm(), &*request++), "MPI_Irecv",
              node.comm());
  for (std::size_t k = 0; k < out.size(); ++k)
    mpi_check(MPI_Isend(&sent[k], sizeof(Place), MPI_BYTE, member(out[k].peer), 0, node.comm(), &*request++),
              "MPI_Isend", node.comm());
  node.wait(requests);
  std::map<int, std::byte*> memory_of;  // each peer's is mapped once
  for (std::size_t k = 0; k < in.size(); ++k) {
    const auto [known, is_new] = memory_of.try_emplace(in[k], own_.data());
    if (is_new && member(in[k]) != node.layout().me) known->second = theirs_.emplace_back(got[k].at).data();
    if (!known->second) return;  // which all ranks hear of
    incoming.push_back({known->second + got[k].at.offset, got[k].bytes, got[k].note_bytes});
  }
}

}  // namespace isohalo
