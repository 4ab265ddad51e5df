/// Tree building of a Barnes-Hut simulation: cells that hold too many bodies are split, level by level, and an
/// allreduce sums what the ranks count in the new cells.
///
/// Source: Li, Hoefler, Snir 2013, section 3.7 and Fig. 27.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "apps/bench/timing.hpp"
#include "apps/bench/workloads.hpp"
#include "datatypes/mix.hpp"
#include "framework/mpi/agreement.hpp"

namespace isohalo {

namespace {

using Counts = std::vector<std::int64_t>;

constexpr unsigned kDeepest = 21;  ///< levels: 3 bits each of a path of 63; cells there are not split

/// r^3 of a uniform r in (-1, 1): many bodies near the middle, few far out. The place among 2^21 of its dimension.
std::uint64_t coordinate(std::uint64_t number) {
  const double r = static_cast<double>(mix64((number + 1) * kGolden) >> 11) * 0x1p-52 - 1 + 0x1p-53;
  const double place = (r * r * r + 1) * 0x1p20;
  return std::min(static_cast<std::uint64_t>(place), (std::uint64_t{1} << kDeepest) - 1);
}

/// The path of a body from the root: which of 8 children, 3 bits per level. It depends on the body's global number
/// alone, so the tree does not depend on the ranks.
std::uint64_t path_of(std::uint64_t body) {
  std::uint64_t path = 0;
  for (std::uint64_t d = 0; d < 3; ++d) {
    const std::uint64_t place = coordinate(3 * body + d);
    for (unsigned bit = 0; bit < kDeepest; ++bit) path |= (place >> bit & 1) << (3 * bit + d);
  }
  return path;
}

/// A body in a cell that is still too full, and which of these cells that is.
struct Body {
  std::uint64_t path;
  std::size_t cell;
};

/// The counts of a level: 8 children of each cell that was too full.
struct Level {
  Counts mine, all;
};

class Tree {
 public:
  Tree(const Communicator& comm, const BenchWorkloadsOptions& options)
      : comm_(comm), all_bodies_(options.bodies), most_(options.most) {
    const std::int64_t p = comm.size(), me = comm.rank();
    agreed(comm, [&] {  // one rank alone may lack the memory
      for (std::int64_t b = all_bodies_ * me / p; b < all_bodies_ * (me + 1) / p; ++b)
        bodies_.push_back({path_of(static_cast<std::uint64_t>(b)), 0});
      left_.reserve(bodies_.size());
    });
    left_ = bodies_;
    // Neither side's: what both must give, and what is gone on with when one is wrong, lest the ranks part.
    build([&](std::size_t, const Counts& mine, Counts& all) {
      all = mine;
      comm_.allreduce(all.data(), static_cast<int>(all.size()), MPI_INT64_T, MPI_SUM);
      levels_.push_back({mine, all});
    });
    std::int64_t sum = 0;
    for (const Level& level : levels_) sum += std::accumulate(level.all.begin(), level.all.end(), std::int64_t{0});
    right_ = sum == bodies_of_full_cells();
  }

  std::vector<double> run(WorkloadCollectives& side) {
    left_ = bodies_;
    Stopwatch allreduce;
    const double total = timed(comm_, [&] {
      build([&](std::size_t depth, const Counts& mine, Counts& all) {
        allreduce([&] { side.allreduce(mine.data(), all.data(), all.size()); });
        const Counts& truth = levels_[depth].all;
        right_ = right_ && all == truth;
        all = truth;
      });
    });
    Counts all(longest());
    const double alone = timed(comm_, [&] {
      for (int k = 0; k < kAlone; ++k)
        for (const Level& level : levels_) side.allreduce(level.mine.data(), all.data(), level.mine.size());
    });
    return {total, allreduce.slowest(comm_), alone / kAlone};
  }

  /// On all ranks, so far. Collective.
  bool right() const { return comm_.min(right_) == 1; }
  std::vector<std::size_t> lengths() const {
    std::vector<std::size_t> lengths;
    for (const Level& level : levels_) lengths.push_back(level.all.size());
    return lengths;
  }
  /// Of all counts, in order.
  std::uint64_t digest() const {
    std::uint64_t digest = 0;
    for (const Level& level : levels_)
      for (const std::int64_t n : level.all) digest = mix64(digest + kGolden + static_cast<std::uint64_t>(n));
    return digest;
  }

 private:
  static constexpr int kAlone = 10;

  std::size_t longest() const {
    std::size_t n = 0;
    for (const Level& level : levels_) n = std::max(n, level.all.size());
    return n;
  }

  /// What the counts of all levels must add up to: each cell that is split hands on the bodies that it has.
  std::int64_t bodies_of_full_cells() const {
    std::int64_t sum = all_bodies_ > most_ ? all_bodies_ : 0;
    for (std::size_t depth = 0; depth + 1 < levels_.size(); ++depth)
      for (const std::int64_t n : levels_[depth].all) sum += n > most_ ? n : 0;
    return sum;
  }

  /// Level by level, until no cell holds too many of `left_`. `allreduce(depth, mine, all)` fills `all`, which is
  /// as long as `mine`. The cells of the next level follow from it, alike on all ranks.
  template <class Allreduce>
  void build(const Allreduce& allreduce) {
    constexpr std::size_t kFewEnough = ~std::size_t{0};
    std::size_t cells = all_bodies_ > most_ ? 1 : 0;
    Counts mine, all;
    std::vector<std::size_t> next;
    for (std::size_t depth = 0; cells > 0 && depth < kDeepest; ++depth) {
      const auto shift = static_cast<unsigned>(3 * (kDeepest - 1 - depth));
      const auto child = [&](const Body& b) { return 8 * b.cell + (b.path >> shift & 7); };
      mine.assign(8 * cells, 0);
      all.assign(8 * cells, 0);
      for (const Body& b : left_) ++mine[child(b)];
      allreduce(depth, mine, all);
      cells = 0;
      next.clear();
      for (const std::int64_t n : all) next.push_back(n > most_ ? cells++ : kFewEnough);
      std::size_t kept = 0;
      for (const Body& b : left_)
        if (const std::size_t cell = next[child(b)]; cell != kFewEnough) left_[kept++] = {b.path, cell};
      left_.resize(kept);
    }
  }

  const Communicator& comm_;
  std::int64_t all_bodies_, most_;
  std::vector<Body> bodies_, left_;  ///< all of this rank's; those in cells that are too full
  std::vector<Level> levels_;
  bool right_ = true;
};

}  // namespace

Json run_barnes_hut(WorkloadSides& sides, const BenchWorkloadsOptions& options) {
  Tree tree(sides.comm, options);
  const std::vector<std::size_t> lengths = tree.lengths();
  Json report{
      {"bodies", options.bodies},  {"most", options.most},
      {"levels", lengths.size()},  {"cells", std::accumulate(lengths.begin(), lengths.end(), std::size_t{1})},
      {"vector_lengths", lengths}, {"digest", fmt::format("{:016x}", tree.digest())}};
  report["phases"] = compare_sides(sides, {"tree", "allreduce in tree", "allreduce without bodies"},
                                   [&](WorkloadCollectives& side) { return tree.run(side); });
  report["right"] = tree.right();
  return report;
}

}  // namespace isohalo
