#include "framework/shm/node_window.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <string>

#include "datatypes/error.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/progress.hpp"
#include "framework/shm/node_memory.hpp"
#include "framework/shm/reserve.hpp"

namespace isohalo {

namespace {

constexpr std::int64_t kLine = 128;          // two cache lines: processors fetch them in pairs
constexpr std::int64_t kHeader = 3 * kLine;  // the counters
constexpr std::int64_t kLeastSegment = std::int64_t{1} << 20, kMostAhead = std::int64_t{64} << 20;

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

std::int64_t channel_bytes(const NodeWindow::Outgoing& o) {
  return kHeader + padded(o.note_bytes) + 2 * padded(o.bytes);
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

bool ChannelEnd::idle() const {
  return taken_of(base_).load(std::memory_order_acquire) == ready_of(base_).load(std::memory_order_relaxed);
}

ChannelGroup& ChannelGroup::operator=(ChannelGroup&& other) noexcept {
  std::swap(outgoing, other.outgoing);
  std::swap(incoming, other.incoming);
  std::swap(window_, other.window_);
  std::swap(segment_, other.segment_);
  std::swap(offset_, other.offset_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

ChannelGroup::~ChannelGroup() {
  if (window_) window_->give_back(*this);
}

/// Memory of all ranks, and what is free of this rank's part.
struct NodeWindow::Segment {
  std::int64_t bytes;
  detail::NodeMemory memory;
  std::vector<std::pair<std::int64_t, std::int64_t>> free;  ///< [from, to), sorted, apart
};

/// Memory of a group that is gone, and its channels, which may still be read.
struct NodeWindow::Retired {
  std::vector<ChannelEnd> channels;
  std::size_t segment;
  std::int64_t offset, bytes;
};

namespace {

/// Every window of the process, in the order in which they were made.
struct Registry {
  std::vector<std::shared_ptr<NodeWindow>> windows;
  int cached_key = MPI_KEYVAL_INVALID;    // on our communicators
  int finalize_key = MPI_KEYVAL_INVALID;  // on MPI_COMM_SELF
};

Registry& registry() {
  static Registry r;
  return r;
}

}  // namespace

int NodeWindow::release_all(MPI_Comm, int, void*, void*) {
  auto& windows = registry().windows;
  while (!windows.empty()) {
    windows.back()->release();
    windows.pop_back();
  }
  return MPI_SUCCESS;
}

std::shared_ptr<NodeWindow> NodeWindow::of(const Communicator& comm) {
  Registry& r = registry();
  if (r.cached_key == MPI_KEYVAL_INVALID) {
    mpi_check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &r.cached_key, nullptr),
              "MPI_Comm_create_keyval");
    mpi_check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, release_all, &r.finalize_key, nullptr),
              "MPI_Comm_create_keyval");
    mpi_check(MPI_Comm_set_attr(MPI_COMM_SELF, r.finalize_key, nullptr), "MPI_Comm_set_attr");
  }
  void* value = nullptr;
  int found = 0;
  mpi_check(MPI_Comm_get_attr(comm.get(), r.cached_key, static_cast<void*>(&value), &found), "MPI_Comm_get_attr");
  if (found) return static_cast<NodeWindow*>(value)->shared_from_this();
  std::shared_ptr<NodeWindow> made(new NodeWindow(comm));
  r.windows.push_back(made);
  mpi_check(MPI_Comm_set_attr(comm.get(), r.cached_key, made.get()), "MPI_Comm_set_attr");
  return made;
}

NodeWindow::NodeWindow(const Communicator& comm) : node_(comm.make_node_communicator()), spins_(comm.spins()) {
  int size = 0;
  mpi_check(MPI_Comm_size(node_, &size), "MPI_Comm_size");
  MPI_Group all = MPI_GROUP_NULL, node = MPI_GROUP_NULL;
  mpi_check(MPI_Comm_group(comm.get(), &all), "MPI_Comm_group");
  mpi_check(MPI_Comm_group(node_, &node), "MPI_Comm_group");
  std::vector<int> node_ranks;
  for (int k = 0; k < size; ++k) node_ranks.push_back(k);
  on_node_.resize(node_ranks.size());
  mpi_check(MPI_Group_translate_ranks(node, size, node_ranks.data(), all, on_node_.data()),
            "MPI_Group_translate_ranks");
  MPI_Group_free(&all);
  MPI_Group_free(&node);
}

NodeWindow::~NodeWindow() = default;

void NodeWindow::release() noexcept {
  segments_.clear();
  if (node_ != MPI_COMM_NULL) MPI_Comm_free(&node_);
  retired_.clear();
}

bool NodeWindow::on_node(int rank) const {
  return std::find(on_node_.begin(), on_node_.end(), rank) != on_node_.end();
}

void NodeWindow::give_back(ChannelGroup& group) noexcept {
  if (segments_.empty() || group.bytes_ == 0) return;  // MPI has ended, or there is nothing
  retired_.push_back({std::move(group.outgoing), group.segment_, group.offset_, group.bytes_});
}

void NodeWindow::reclaim() {
  std::erase_if(retired_, [&](const Retired& r) {
    for (const auto& c : r.channels)
      if (!c.idle()) return false;  // a late receiver
    auto& free = segments_[r.segment]->free;
    free.emplace_back(r.offset, r.offset + r.bytes);
    std::sort(free.begin(), free.end());
    std::size_t kept = 0;
    for (std::size_t k = 1; k < free.size(); ++k)
      if (free[k].first == free[kept].second)
        free[kept].second = free[k].second;
      else
        free[++kept] = free[k];
    free.resize(kept + 1);
    return true;
  });
}

bool NodeWindow::take(std::int64_t bytes, ChannelGroup& group) {
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    auto& free = segments_[s]->free;
    for (auto it = free.begin(); it != free.end(); ++it) {
      if (it->second - it->first < bytes) continue;
      group.segment_ = s;
      group.offset_ = it->first;
      group.bytes_ = bytes;
      it->first += bytes;
      if (it->first == it->second) free.erase(it);
      return true;
    }
  }
  return false;
}

namespace {

[[noreturn]] void throw_no_room(std::int64_t bytes, int ranks) {
  throw RunError(
      "shared memory of this node: " + std::to_string((bytes >> 10) + 1) + " KiB for each of " +
      std::to_string(ranks) +
      " ranks cannot be had, or not be mapped (by memfd_create and /proc/PID/fd): choose an exchange other "
      "than \"shared\"");
}

}  // namespace

void NodeWindow::grow(std::int64_t bytes) {
  const std::int64_t twice = segments_.empty() ? 0 : 2 * segments_.back()->bytes;
  const std::int64_t ahead = std::max({bytes, kLeastSegment, std::min(twice, kMostAhead)});
  const bool full = !detail::memory_has_room(static_cast<double>(ahead) * ranks());
  if (detail::max_on_node(node_, spins_, full) > 0) throw_no_room(ahead, ranks());
  auto memory = detail::NodeMemory::make(node_, spins_, static_cast<std::size_t>(ahead));
  if (!memory) throw_no_room(ahead, ranks());
  segments_.push_back(std::make_unique<Segment>(Segment{ahead, std::move(*memory), {{0, ahead}}}));
}

ChannelGroup NodeWindow::open(const std::vector<Outgoing>& outgoing, const std::vector<int>& incoming) {
  std::int64_t bytes = 0;
  for (const auto& o : outgoing) bytes += channel_bytes(o);
  ChannelGroup group;
  group.window_ = shared_from_this();
  reclaim();
  const bool fits = bytes == 0 || take(bytes, group);
  int me = 0;
  mpi_check(MPI_Comm_rank(node_, &me), "MPI_Comm_rank");
  const auto reserved = [&] {
    return bytes == 0 || detail::reserve_pages(segments_[group.segment_]->memory.of(me) + group.offset_,
                                               static_cast<std::size_t>(bytes));
  };
  constexpr std::int64_t no_room = std::numeric_limits<std::int64_t>::max();
  std::int64_t missing = detail::max_on_node(node_, spins_, !fits ? bytes : reserved() ? 0 : no_room);
  if (missing > 0 && missing < no_room) {
    grow(missing);
    if (!fits) take(bytes, group);
    missing = detail::max_on_node(node_, spins_, fits || reserved() ? 0 : no_room);
  }
  if (missing == no_room) throw_no_room(bytes, ranks());  // what was taken goes back with the group
  exchange_places(outgoing, incoming, group);
  return group;
}

void NodeWindow::exchange_places(const std::vector<Outgoing>& outgoing, const std::vector<int>& incoming,
                                 ChannelGroup& group) {
  struct Place {
    std::int64_t segment, offset, bytes, note_bytes;
  };
  std::vector<Place> sent, got(incoming.size());
  std::int64_t offset = group.offset_;
  int me = 0;
  mpi_check(MPI_Comm_rank(node_, &me), "MPI_Comm_rank");
  for (const auto& o : outgoing) {
    sent.push_back({static_cast<std::int64_t>(group.segment_), offset, o.bytes, o.note_bytes});
    std::byte* const base = segments_[group.segment_]->memory.of(me) + offset;
    group.outgoing.push_back({base, o.bytes, o.note_bytes});
    for (const auto counter : {ready_of, taken_of, opened_of}) counter(base).store(0);
    offset += channel_bytes(o);
  }
  std::vector<MPI_Request> requests(outgoing.size() + incoming.size(), MPI_REQUEST_NULL);
  std::size_t r = 0;
  const auto node_rank = [&](int rank) {
    return static_cast<int>(std::find(on_node_.begin(), on_node_.end(), rank) - on_node_.begin());
  };
  for (std::size_t k = 0; k < incoming.size(); ++k)
    mpi_check(MPI_Irecv(&got[k], 4, MPI_INT64_T, node_rank(incoming[k]), 0, node_, &requests[r++]), "MPI_Irecv",
              node_);
  for (std::size_t k = 0; k < outgoing.size(); ++k)
    mpi_check(MPI_Isend(&sent[k], 4, MPI_INT64_T, node_rank(outgoing[k].peer), 0, node_, &requests[r++]),
              "MPI_Isend", node_);
  wait_all(requests, spins_, "shared memory");
  for (std::size_t k = 0; k < incoming.size(); ++k) {
    std::byte* const base = segments_[static_cast<std::size_t>(got[k].segment)]->memory.of(node_rank(incoming[k]));
    group.incoming.push_back({base + got[k].offset, got[k].bytes, got[k].note_bytes});
  }
}

}  // namespace isohalo
