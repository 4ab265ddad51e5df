#include "framework/shm/collectives.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include "datatypes/error.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo {

namespace {

constexpr std::size_t kSizes = 17;   // powers of two up to a slot's bytes, and nothing
constexpr int kSpinsOfFewCores = 5;  // where ranks outnumber the cores that they may run on

/// Until they are measured: of a processor that is not new, and of ranks that outnumber the cores.
NodeCosts guessed_costs(const Hierarchy& h, int spins) {
  const double wait = spins < NodeCollectives::kSpinsOfOwnCores ? 5000 : 0;
  NodeCosts costs{{{1, 1, 0}}};
  for (int d = 1; d <= h.levels(); ++d) costs.reach.push_back({wait + 60.0 * d, 2.0 * d, 1.0});
  return costs;
}

/// Those that this process may run on: fewer than the machine has, where a launcher binds it or the job got a part
/// of the machine.
cpu_set_t own_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) std::memset(&cores, 0xff, sizeof cores);  // not known
  return cores;
}

/// The first of those that cost least.
template <class Cost>
NodeAlgorithm cheapest(const std::vector<NodeAlgorithm>& possible, const Cost& cost) {
  std::pair<double, NodeAlgorithm> best{cost(possible[0]), possible[0]};
  for (const NodeAlgorithm& a : possible)
    if (const double c = cost(a); c < best.first) best = {c, a};
  return best.second;
}

}  // namespace

std::unique_ptr<NodeCollectives> NodeCollectives::make(MPI_Comm comm, const NodeCollectivesOptions& options) {
  int ranks = 1;
  mpi_check(MPI_Comm_size(comm, &ranks), "MPI_Comm_size");
  Hierarchy hierarchy(ranks);
  if (options.hierarchy)
    hierarchy = *options.hierarchy;
  else if (ranks > 2)  // of two there is one order
    hierarchy = Hierarchy::of_machine(comm, options.spins, options.place);
  if (!options.algorithm.empty()) NodeAlgorithm::of_text(options.algorithm);
  NodeCollectivesOptions agreed = options;  // ranks of several launches may see different numbers of others
  std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  mpi_check(MPI_Iallreduce(MPI_IN_PLACE, &agreed.spins, 1, MPI_INT, MPI_MIN, comm, &requests[0]), "MPI_Iallreduce",
            comm);
  cpu_set_t cores = own_cores();
  mpi_check(MPI_Iallreduce(MPI_IN_PLACE, &cores, sizeof cores, MPI_BYTE, MPI_BOR, comm, &requests[1]),
            "MPI_Iallreduce", comm);
  wait_all(requests, options.spins, "collectives of a node");
  if (CPU_COUNT(&cores) < ranks) agreed.spins = std::min(agreed.spins, kSpinsOfFewCores);
  auto memory = detail::NodeMemory::make(comm, agreed.spins, memory_bytes());
  if (!memory) return nullptr;
  return std::unique_ptr<NodeCollectives>(
      new NodeCollectives(comm, std::move(*memory), std::move(hierarchy), agreed));
}

NodeCollectives::NodeCollectives(MPI_Comm comm, detail::NodeMemory memory, Hierarchy hierarchy,
                                 const NodeCollectivesOptions& options)
    : comm_(comm),
      memory_(std::move(memory)),
      ranks_(hierarchy.ranks()),
      spins_(options.spins),
      hierarchy_(std::move(hierarchy)),
      rank_order_(ranks_),
      costs_(guessed_costs(hierarchy_, spins_)) {
  mpi_check(MPI_Comm_rank(comm, &me_), "MPI_Comm_rank");
  if (!options.algorithm.empty()) forced_ = NodeAlgorithm::of_text(options.algorithm);
  ended_.resize(static_cast<std::size_t>(ranks_));
  inputs_.resize(static_cast<std::size_t>(ranks_));
  chosen_.resize(static_cast<std::size_t>(Shape::given) * 2 * kSizes);
  schedules_.resize(static_cast<std::size_t>(Shape::given) * static_cast<std::size_t>(ranks_ + 1) * kSizes);
}

// --- what is done
// --------------------------------------------------------------------------------------------------

NodeAlgorithm NodeCollectives::reduction_algorithm(Shape shape, std::size_t bytes, int root) const {
  using Kind = NodeAlgorithm::Kind;
  const Hierarchy& h = shape == Shape::ordered_reduction ? rank_order_ : hierarchy_;
  const auto possible = reduction_algorithms(h, root);
  if (forced_) {
    NodeAlgorithm a = *forced_;
    if (a.level >= h.levels()) a.level = 0, a.two_stages = false;
    if (a.kind == Kind::cyclic && shape != Shape::reduction) a.kind = Kind::tiled;
    if (a.kind == Kind::dissemination && root >= 0) a.kind = Kind::tree;
    return a;
  }
  return cheapest(possible, [&](const NodeAlgorithm& a) {
    return schedule_ns(reduction_schedule(a, h, root), h, costs_, static_cast<double>(bytes));
  });
}

NodeAlgorithm NodeCollectives::broadcast_algorithm(std::size_t bytes) const {
  const auto possible = broadcast_algorithms(hierarchy_);
  if (forced_)
    return std::find(possible.begin(), possible.end(), *forced_) != possible.end() ? *forced_ : possible[0];
  return cheapest(possible, [&](const NodeAlgorithm& a) {
    return schedule_ns(broadcast_schedule(a, hierarchy_, 0), hierarchy_, costs_, static_cast<double>(bytes));
  });
}

/// What is chosen for vectors of so many bits of bytes. To try all takes milliseconds of a hundred ranks, so one
/// root's choice is all roots'.
const NodeAlgorithm& NodeCollectives::chosen(Shape shape, bool rooted, std::size_t size) {
  auto& place = chosen_[(static_cast<std::size_t>(shape) * 2 + rooted) * kSizes + size];
  const std::size_t bytes = (std::size_t{1} << size) - 1;
  if (!place)
    place =
        shape == Shape::broadcast ? broadcast_algorithm(bytes) : reduction_algorithm(shape, bytes, rooted ? 0 : -1);
  return *place;
}

NodeSchedule NodeCollectives::make_schedule(Shape shape, int root, std::size_t size) {
  switch (shape) {
    case Shape::broadcast:
      return broadcast_schedule(chosen(shape, true, size), hierarchy_, root);
    case Shape::gather:
      return gather_blocks(ranks_, root);
    case Shape::scatter:
      return scatter_blocks(ranks_, root);
    case Shape::meeting:
    case Shape::given:
      return meeting(ranks_);
    case Shape::reduction:
    case Shape::inexact_reduction:
    case Shape::ordered_reduction:
      break;
  }
  return reduction_schedule(chosen(shape, root >= 0, size),
                            shape == Shape::ordered_reduction ? rank_order_ : hierarchy_, root);
}

const detail::RankSchedule& NodeCollectives::schedule_of(const Call& call) {
  if (call.shape == Shape::given) return *call.schedule;
  const bool by_size = call.shape <= Shape::broadcast;
  const auto size = by_size ? static_cast<std::size_t>(std::bit_width(call.length * call.element)) : 0;
  auto& place = schedules_[(static_cast<std::size_t>(call.shape) * static_cast<std::size_t>(ranks_ + 1) +
                            static_cast<std::size_t>(call.root + 1)) *
                               kSizes +
                           size];
  if (!place) place = std::make_unique<detail::RankSchedule>(make_schedule(call.shape, call.root, size), me_);
  return *place;
}

void NodeCollectives::set_costs(NodeCosts costs) {
  costs_ = std::move(costs);
  await_readers();
  for (auto& s : schedules_) s.reset();
  for (auto& c : chosen_) c.reset();
}

// --- calls
// ---------------------------------------------------------------------------------------------------------

NodeCollectives::Call NodeCollectives::call(const Collective& c) const {
  using Kind = Collective::Kind;
  switch (c.kind) {
    case Kind::barrier:
      return {Shape::meeting, -1, nullptr, nullptr, 1, 0, 1};
    case Kind::broadcast:
      return {Shape::broadcast, c.root, c.from, c.to, c.count, 1, kSlotData};
    case Kind::gather:
    case Kind::allgather:
      return {Shape::gather, c.root, c.from, c.to, c.count, 1, kSlotData};
    case Kind::scatter:
      return {Shape::scatter, c.root, c.from, c.to, c.count, 1, kSlotData / static_cast<std::size_t>(ranks_)};
    case Kind::reduce:
    case Kind::allreduce:
      break;
  }
  const std::size_t element = c.combine->element_bytes();
  Shape shape = c.combine->exact() ? Shape::reduction : Shape::inexact_reduction;
  if (!c.combine->commutes() && !hierarchy_.in_rank_order()) shape = Shape::ordered_reduction;
  if (shape == Shape::inexact_reduction && !forced_) shape = Shape::reduction;
  return {shape, c.root, c.from, c.to, c.count, element, kSlotData / element, c.combine};
}

void NodeCollectives::run(const NodeSchedule& schedule, int times, const std::byte* mine, std::byte* result,
                          std::size_t count, const Combine* combine) {
  const detail::RankSchedule own(schedule, me_);
  const std::size_t element = combine ? combine->element_bytes() : 1;
  for (int k = 0; k < times; ++k)
    complete({Shape::given, -1, mine, result, count, element, kSlotData / element, combine, &own});
  await_readers();
}

// --- measurements
// --------------------------------------------------------------------------------------------------

/// Many of the longest slots, or as few as a schedule needs? Whatever broadcasts a long vector faster. Ranks that
/// outnumber the cores take many, to run ahead. Takes some milliseconds. Collective, with nothing begun.
void NodeCollectives::choose_slots() {
  slots_chosen_ = true;
  if (!get_many_slots() || spins_ < kSpinsOfOwnCores) return;
  const std::size_t bytes = 16 * kSlotData, choices[] = {long_slots_, std::size_t{kNodeSlots}};
  std::vector<std::byte> data(bytes);
  const NodeSchedule spread = spread_vector(hierarchy_, 0, {});
  std::array<double, 2> best{1e18, 1e18};
  const int rounds = static_cast<int>(long_slots_ / 16) + 1;  // the first turn comes to every slot
  for (int turn = 0; turn < 4; ++turn)
    for (std::size_t k = 0; k < 2; ++k) {
      long_slots_ = choices[k];
      run(Collective::barrier());
      const double start = MPI_Wtime();
      run(spread, rounds, data.data(), data.data(), bytes, nullptr);  // until all is read
      if (turn > 0) best[k] = std::min(best[k], MPI_Wtime() - start);
    }
  run(Collective::broadcast(reinterpret_cast<std::byte*>(best.data()), sizeof best, 0));
  if (best[1] > 0.9 * best[0])
    long_slots_ = choices[0];
  else
    long_memory_.reset();
}

NodeCosts NodeCollectives::measure() {
  std::vector<std::byte> from(kSlotData), to(kSlotData);
  // Microseconds are few: the best of some tries.
  const auto best_ns = [&](const NodeSchedule& s, std::size_t bytes) {
    double best = 1e18;
    for (int turn = 0; turn < 4; ++turn) {
      const double start = MPI_Wtime();
      run(s, 8, from.data(), to.data(), bytes, nullptr);
      best = std::min(best, (MPI_Wtime() - start) / 8 * 1e9);
    }
    return best;
  };
  constexpr double lines = kSlotData / kLineBytes;
  NodeSchedule copy(ranks_);
  copy.result(0, 0, {.part = {}, .sources = {{0, kOwn}}});
  NodeCosts costs{{{1, std::max(0.1, best_ns(copy, kSlotData) / lines / 2), 0}}};
  const double own = costs.reach[0].line_ns;
  for (int d = 1; d <= hierarchy_.levels(); ++d) {
    std::vector<int> far;
    for (int r = 1; r < ranks_; ++r)
      if (hierarchy_.distance(0, r) == d) far.push_back(r);
    if (far.empty()) {  // rank 0 is alone in its group
      costs.reach.push_back(costs.reach.back());
      continue;
    }
    NodeSchedule there_and_back(ranks_), to_all(ranks_);
    there_and_back.fill(0, 0, {.part = {}, .sources = {{0, kOwn}}});
    there_and_back.fill(far[0], 1, {.part = {}, .sources = {{0, 0}}});
    there_and_back.result(0, 1, {.part = {}, .sources = {{far[0], 1}}});
    to_all.fill(0, 0, {.part = {}, .sources = {{0, kOwn}}});
    for (const int r : far) to_all.result(r, 0, {.part = {}, .sources = {{0, 0}}});
    const double shortest = best_ns(there_and_back, 8), longest = best_ns(there_and_back, kSlotData);
    ReachCosts c;
    c.latency_ns = shortest / 2;
    // A line is copied here, there and back.
    c.line_ns = std::max(own, ((longest - shortest) / lines - 4 * own) / 2);
    c.shared_line_ns = std::max(0.0, (best_ns(to_all, kSlotData) / lines - own) / static_cast<double>(far.size()));
    costs.reach.push_back(c);
  }
  auto* const data = reinterpret_cast<std::byte*>(costs.reach.data());
  run(Collective::broadcast(data, costs.reach.size() * sizeof(ReachCosts), 0));
  run(Collective::barrier());
  return costs;
}

}  // namespace isohalo
