#include "framework/shm/node_reduce.hpp"

#include <time.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "datatypes/mpi_check.hpp"
#include "framework/shm/reserve.hpp"

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace isohalo {

namespace {

using SegmentPtr = std::shared_ptr<NodeSegment>;

int delete_segment(MPI_Comm, int, void* value, void*) {
  delete static_cast<SegmentPtr*>(value);
  return MPI_SUCCESS;
}

int segment_key() {
  static const int key = [] {
    int k = MPI_KEYVAL_INVALID;
    mpi_check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_segment, &k, nullptr), "MPI_Comm_create_keyval");
    return k;
  }();
  return key;
}

/// `node`: the ranks of this compute node, in the order of their ranks in `comm`.
NodeLayout layout_of(const Communicator& comm, MPI_Comm node) {
  NodeLayout layout;
  int members = 1;
  mpi_check(MPI_Comm_rank(node, &layout.me), "MPI_Comm_rank");
  mpi_check(MPI_Comm_size(node, &members), "MPI_Comm_size");
  int leader = comm.rank();
  MPI_Request told = MPI_REQUEST_NULL;
  mpi_check(MPI_Ibcast(&leader, 1, MPI_INT, 0, node, &told), "MPI_Ibcast of a node's leader");
  comm.wait(told, "leader of a node");
  std::vector<int> leader_of(static_cast<std::size_t>(comm.size()));
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Iallgather(&leader, 1, MPI_INT, leader_of.data(), 1, MPI_INT, comm.get(), &request),
            "MPI_Iallgather", comm.get());
  comm.wait(request, "leaders of nodes");
  layout.leaders = leader_of;
  std::sort(layout.leaders.begin(), layout.leaders.end());
  layout.leaders.erase(std::unique(layout.leaders.begin(), layout.leaders.end()), layout.leaders.end());
  for (int r = 0; r < comm.size(); ++r) {
    const int l = leader_of[static_cast<std::size_t>(r)];
    layout.node_of_rank.push_back(static_cast<int>(
        std::lower_bound(layout.leaders.begin(), layout.leaders.end(), l) - layout.leaders.begin()));
    if (l == leader) layout.members.push_back(r);
  }
  return layout;
}

}  // namespace

NodeSegment::NodeSegment(const Communicator& comm) {
  MPI_Comm node = comm.make_node_communicator();
  layout_ = layout_of(comm, node);
  memory_ = detail::NodeMemory::make(node, comm.spins(), kBytes);
  MPI_Comm_free(&node);
  const bool good = memory_ && detail::reserve_pages(memory(layout_.me), kBytes);
  if (good && layout_.leads()) calls().store(0), sleepers().store(0);
  if (comm.min(good) == 0) memory_.reset();
}

std::shared_ptr<NodeSegment> NodeSegment::of(const Communicator& comm) {
  void* value = nullptr;
  int found = 0;
  mpi_check(MPI_Comm_get_attr(comm.get(), segment_key(), static_cast<void*>(&value), &found), "MPI_Comm_get_attr",
            comm.get());
  if (found) return *static_cast<SegmentPtr*>(value);
  SegmentPtr segment = std::make_shared<NodeSegment>(comm);
  if (!segment->usable()) segment.reset();
  mpi_check(MPI_Comm_set_attr(comm.get(), segment_key(), new SegmentPtr(segment)), "MPI_Comm_set_attr", comm.get());
  return segment;
}

void NodeSegment::sleep(std::uint32_t calls_before, std::int64_t timeout_ns) {
  const timespec time{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
#ifdef __linux__
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&calls()), FUTEX_WAIT, calls_before, &time, nullptr, 0);
#else
  const timespec nap{0, 20000};
  if (calls().load() == calls_before)
    nanosleep(time.tv_sec > 0 || time.tv_nsec > nap.tv_nsec ? &nap : &time, nullptr);
#endif
}

void NodeSegment::wake() {
  calls().fetch_add(1);
#ifdef __linux__
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&calls()), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
#endif
}

std::size_t NodeSegment::top() const {
  std::size_t end = kLine;  // the first is for sleepers
  for (const Live& l : live_) end = std::max(end, l.last);
  return end;
}

std::optional<SegmentSlots> SegmentSlots::make(const Communicator& comm, std::size_t bytes) {
  const SegmentPtr segment = NodeSegment::of(comm);
  if (!segment) return std::nullopt;
  constexpr std::size_t line = NodeSegment::kLine;
  const std::size_t slot = (sizeof(Flag) + bytes + line - 1) / line * line;
  // Ranks may give slots back at different times; what is free above all of them is free on each.
  std::uint64_t common[2] = {segment->top(), segment->made_ + 1};
  comm.allreduce(common, 2, MPI_UINT64_T, MPI_MAX);
  segment->made_ = common[1];
  if (common[0] + 2 * slot > NodeSegment::kBytes) return std::nullopt;
  segment->live_.push_back({common[0], common[0] + 2 * slot});
  return SegmentSlots(segment, common[0], slot, common[1]);
}

SegmentSlots& SegmentSlots::operator=(SegmentSlots&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  segment_ = std::move(other.segment_);
  offset_ = other.offset_, slot_bytes_ = other.slot_bytes_, id_ = other.id_, round_ = other.round_;
  return *this;
}

void SegmentSlots::give_back() noexcept {
  if (segment_) std::erase_if(segment_->live_, [this](const auto& l) { return l.first == offset_; });
  segment_.reset();
}

}  // namespace isohalo
