/// Schedules executed in one process on up to 4096 virtual ranks, with a value per (origin, block),
/// against the definition: block i of rank X goes to X + C^i.

#include "framework/neighborhood/local_schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <random>
#include <set>

#include "framework/neighborhood/offsets.hpp"
#include "tests/mpi_main.hpp"
#include "tests/neighborhood/counters.hpp"

namespace isohalo {
namespace {

constexpr std::int64_t kUntouched = -1;

std::int64_t value_of(int origin, int block) {
  return std::int64_t{origin} * 1000 + block;
}

/// Runs all ranks' local schedules in lockstep and returns what each receive slot holds in the end.
class Machine {
 public:
  /// `locals`: one per rank, `s`: number of blocks.
  Machine(Pattern pattern, std::vector<LocalSchedule> locals, int s)
      : pattern_(pattern), locals_(std::move(locals)) {
    const std::size_t p = locals_.size();
    received_.assign(p, std::vector<std::int64_t>(static_cast<std::size_t>(s), kUntouched));
    temporary_.resize(p);
    for (std::size_t r = 0; r < p; ++r) temporary_[r].assign(locals_[r].temporaries, kUntouched);
    run();
  }
  const std::vector<std::vector<std::int64_t>>& received() const { return received_; }
  const std::vector<LocalSchedule>& local_schedules() const { return locals_; }

 private:
  std::int64_t read(int rank, BlockPlace p) const {
    const auto r = static_cast<std::size_t>(rank), i = static_cast<std::size_t>(p.index);
    if (p.kind == BlockPlace::Kind::send) return value_of(rank, pattern_ == Pattern::shared ? 0 : p.index);
    const auto& from = p.kind == BlockPlace::Kind::receive ? received_[r] : temporary_[r];
    EXPECT_NE(from[i], kUntouched) << "rank " << rank << " sends what has not arrived";
    return from[i];
  }
  void write(int rank, BlockPlace p, std::int64_t v) {
    const auto r = static_cast<std::size_t>(rank), i = static_cast<std::size_t>(p.index);
    ASSERT_NE(p.kind, BlockPlace::Kind::send);
    auto& to = p.kind == BlockPlace::Kind::receive ? received_[r] : temporary_[r];
    EXPECT_EQ(to[i], kUntouched) << "written twice";
    to[i] = v;
  }

  void run() {
    const int p = static_cast<int>(locals_.size());
    for (const auto& local : locals_) ASSERT_EQ(local.stages.size(), locals_.front().stages.size());
    for (int r = 0; r < p; ++r)
      for (const auto& c : locals_[static_cast<std::size_t>(r)].first) write(r, c.to, read(r, c.from));
    for (std::size_t k = 0; k < locals_.front().stages.size(); ++k) {
      struct Item {
        int step;
        std::int64_t value;
      };
      std::map<std::pair<int, int>, std::vector<Item>> wire;
      for (int r = 0; r < p; ++r)
        for (const auto& m : locals_[static_cast<std::size_t>(r)].stages[k].send) {
          auto& message = wire[{r, m.peer}];
          EXPECT_TRUE(message.empty()) << "two messages to one peer in a stage";
          for (const auto& part : m.parts) message.push_back({part.step, read(r, part.place)});
        }
      for (int r = 0; r < p; ++r)
        for (const auto& m : locals_[static_cast<std::size_t>(r)].stages[k].receive) {
          auto found = wire.find({m.peer, r});
          ASSERT_NE(found, wire.end()) << "rank " << r << " waits for a message that nobody sends";
          ASSERT_EQ(found->second.size(), m.parts.size());
          for (std::size_t b = 0; b < m.parts.size(); ++b) {
            EXPECT_EQ(found->second[b].step, m.parts[b].step);
            write(r, m.parts[b].place, found->second[b].value);
          }
          wire.erase(found);
        }
      ASSERT_TRUE(wire.empty()) << "a message that nobody receives";
    }
    for (int r = 0; r < p; ++r)
      for (const auto& c : locals_[static_cast<std::size_t>(r)].last) write(r, c.to, read(r, c.from));
  }

  Pattern pattern_;
  std::vector<LocalSchedule> locals_;
  std::vector<std::vector<std::int64_t>> received_, temporary_;
};

/// All algorithms and patterns on one mesh and list against the definition.
void check(const Mesh& mesh, const std::vector<int>& relative) {
  const int d = mesh.dimensions(), s = static_cast<int>(relative.size()) / d;
  std::vector<std::vector<int>> source(static_cast<std::size_t>(mesh.size()));
  for (int r = 0; r < mesh.size(); ++r)
    for (int i = 0; i < s; ++i) {
      std::vector<int> here(static_cast<std::size_t>(d));
      mesh.coordinates(r, here);
      bool exists = true;  // not by Mesh::relative_rank, which the local schedules use
      for (int j = 0; j < d; ++j) {
        auto& c = here[static_cast<std::size_t>(j)];
        c -= relative[static_cast<std::size_t>(i * d + j)];
        if (mesh.periodic(j)) c = ((c % mesh.extent(j)) + mesh.extent(j)) % mesh.extent(j);
        exists = exists && c >= 0 && c < mesh.extent(j);
      }
      source[static_cast<std::size_t>(r)].push_back(exists ? mesh.rank_at(here) : -1);
    }
  for (const Pattern pattern : {Pattern::personal, Pattern::shared}) {
    std::vector<NeighborSchedule> ways;
    for (const Algorithm a : {Algorithm::direct, Algorithm::combining, Algorithm::logarithmic})
      ways.push_back(plan_neighbor_schedule(relative, d, a, pattern));
    ways.push_back(plan_ring_schedule(relative, mesh, pattern));
    const auto examine = [&](const NeighborSchedule& schedule, std::vector<LocalSchedule> locals) {
      const Machine machine(pattern, std::move(locals), s);
      for (int r = 0; r < mesh.size(); ++r)
        for (int i = 0; i < s; ++i) {
          const auto at = static_cast<std::size_t>(r), slot = static_cast<std::size_t>(i);
          const int from = source[at][slot];
          const std::int64_t right = from < 0 ? kUntouched : value_of(from, pattern == Pattern::shared ? 0 : i);
          ASSERT_EQ(machine.received()[at][slot], right)
              << to_string(schedule.algorithm) << (schedule.ring ? " (ring)" : "") << ", rank " << r << ", block "
              << i;
        }
      for (const auto& local : machine.local_schedules()) {
        EXPECT_LE(test::messages_of(local), schedule.rounds());
        EXPECT_EQ(local.algorithm, schedule.algorithm);
      }
    };
    for (const auto& schedule : ways) {
      std::vector<LocalSchedule> locals;
      for (int r = 0; r < mesh.size(); ++r) locals.push_back(plan_local_schedule(schedule, relative, mesh, r));
      examine(schedule, std::move(locals));
    }
    if (pattern == Pattern::shared) continue;
    std::vector<LocalSchedule> locals;
    for (int r = 0; r < mesh.size(); ++r)
      locals.push_back(direct_local_schedule(IsomorphicNeighborhood(mesh, r, relative)));
    examine(ways.front(), std::move(locals));
  }
}

std::vector<int> flat2(const Offsets<2>& list) {
  std::vector<int> f;
  for (const auto& o : list) f.push_back(static_cast<int>(o[0])), f.push_back(static_cast<int>(o[1]));
  return f;
}
std::vector<int> flat3(const Offsets<3>& list) {
  std::vector<int> f;
  for (const auto& o : list)
    for (int j = 0; j < 3; ++j) f.push_back(static_cast<int>(o[static_cast<std::size_t>(j)]));
  return f;
}

TEST(LocalSchedule, ThousandsOfRandomCases) {
  test::Random random(2015);
  for (int n = 0; n < 2500; ++n) {
    const int d = static_cast<int>(random.in(1, 4));
    std::vector<int> extents;
    std::vector<bool> periodic;
    for (int j = 0; j < d; ++j) {
      extents.push_back(static_cast<int>(random.in(1, d < 3 ? 7 : 3)));
      periodic.push_back(random.in(0, 1) == 1);
    }
    std::vector<int> relative;
    const int s = static_cast<int>(random.in(0, 12)), reach = static_cast<int>(random.in(0, 5));
    for (int k = 0; k < s * d; ++k) relative.push_back(static_cast<int>(random.in(-reach, reach)));
    if (s > 1 && random.in(0, 1))  // a repeated offset
      std::copy_n(relative.begin(), d, relative.end() - d);
    check(Mesh(extents, periodic), relative);
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "case " << n;
  }
}

TEST(LocalSchedule, NeighborhoodsOnThousandsOfRanks) {
  check(Mesh({64, 64}, {true, false}), flat2(moore<2>(1, Self::include)));
  check(Mesh({64, 64}, {true, true}), flat2(von_neumann<2>(2, Self::leave_out)));
  check(Mesh({16, 16, 16}, {true, false, true}), flat3(moore<3>(1, Self::leave_out)));
  check(Mesh({4096}, {true}), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13});
  auto ring = moore<2>(3, Self::include);
  std::erase_if(ring, [](const Index<2>& o) { return std::max(std::abs(o[0]), std::abs(o[1])) <= 1; });
  std::shuffle(ring.begin(), ring.end(), std::mt19937(9));
  check(Mesh({31, 37}, {false, true}), flat2(ring));
}

TEST(NeighborSchedule, FiguresOfKnownLists) {
  const auto moore3 = flat3(moore<3>(1, Self::include));
  const auto direct = plan_neighbor_schedule(moore3, 3, Algorithm::direct, Pattern::personal);
  EXPECT_EQ(direct.rounds(), 26);
  EXPECT_EQ(direct.volume(), 26);
  const auto combining = plan_neighbor_schedule(moore3, 3, Algorithm::combining, Pattern::personal);
  EXPECT_EQ(combining.rounds(), 6);
  EXPECT_EQ(combining.volume(), 54);
  EXPECT_EQ(plan_neighbor_schedule(moore3, 3, Algorithm::combining, Pattern::shared).volume(), 26);
  for (int s = 1; s <= 40; ++s) {
    std::vector<int> run;
    for (int k = 1; k <= s; ++k) run.push_back(k);
    const auto log = plan_neighbor_schedule(run, 1, Algorithm::logarithmic, Pattern::personal);
    EXPECT_EQ(log.rounds(), std::bit_width(static_cast<unsigned>(s))) << s;  // ceil(log2(s + 1))
    std::vector<int> slanted;                                                // the same run along (2, -1)
    for (int k = 1; k <= s; ++k) slanted.push_back(2 * k), slanted.push_back(-k);
    EXPECT_EQ(plan_neighbor_schedule(slanted, 2, Algorithm::logarithmic, Pattern::personal).rounds(), log.rounds());
  }
}

/// At most floor(log2 r) + 1 rounds, r the longest distance along the ring of all ranks (section 5.3): one per
/// power of two that some distance has.
TEST(NeighborSchedule, RingRoundsByDefinition) {
  test::Random random(21);
  const auto any = [&](int low, int high) { return static_cast<int>(random.in(low, high)); };
  for (int n = 0; n < 500; ++n) {
    const int d = any(1, 3);
    std::vector<int> extents;
    for (int j = 0; j < d; ++j) extents.push_back(any(1, 6));
    const Mesh mesh(extents, std::vector<bool>(static_cast<std::size_t>(d), true));
    std::vector<int> relative;
    for (int k = any(1, 9) * d; k > 0; --k) relative.push_back(any(-4, 4));
    unsigned powers = 0;
    for (int rank = 0; rank < mesh.size(); ++rank)
      for (std::size_t i = 0; i < relative.size(); i += static_cast<std::size_t>(d)) {
        const int target = mesh.relative_rank(rank, {&relative[i], static_cast<std::size_t>(d)});
        powers |= static_cast<unsigned>((target - rank + mesh.size()) % mesh.size());
      }
    for (const Pattern pattern : {Pattern::personal, Pattern::shared})
      EXPECT_EQ(plan_ring_schedule(relative, mesh, pattern).rounds(), std::popcount(powers)) << n;
  }
}

/// Random lists: C and V from their definitions, and the best order of dimensions by trying all.
TEST(NeighborSchedule, CombiningFiguresByDefinition) {
  test::Random random(7);
  for (int n = 0; n < 300; ++n) {
    const int d = static_cast<int>(random.in(1, 4)), s = static_cast<int>(random.in(0, 15));
    std::vector<int> relative;
    for (int k = 0; k < s * d; ++k) relative.push_back(static_cast<int>(random.in(-2, 2)));
    int volume = 0;
    std::vector<std::set<int>> values(static_cast<std::size_t>(d));
    for (int k = 0; k < s * d; ++k)
      if (const int c = relative[static_cast<std::size_t>(k)]; c != 0)
        ++volume, values[static_cast<std::size_t>(k % d)].insert(c);
    int rounds = 0;
    for (const auto& v : values) rounds += static_cast<int>(v.size());
    const auto schedule = plan_neighbor_schedule(relative, d, Algorithm::combining, Pattern::personal);
    EXPECT_EQ(schedule.rounds(), rounds);
    EXPECT_EQ(schedule.volume(), volume);

    std::vector<int> order(static_cast<std::size_t>(d));
    for (int j = 0; j < d; ++j) order[static_cast<std::size_t>(j)] = j;
    std::size_t least = SIZE_MAX;
    do {  // transfers = distinct non-empty prefixes that end in a non-zero
      std::set<std::vector<int>> prefixes;
      for (int i = 0; i < s; ++i) {
        std::vector<int> prefix;
        for (int j : order) {
          prefix.push_back(relative[static_cast<std::size_t>(i * d + j)]);
          if (prefix.back() != 0) prefixes.insert(prefix);
        }
      }
      least = std::min(least, prefixes.size());
    } while (std::next_permutation(order.begin(), order.end()));
    EXPECT_EQ(plan_neighbor_schedule(relative, d, Algorithm::combining, Pattern::shared).volume(),
              static_cast<std::int64_t>(least));
  }
}

}  // namespace
}  // namespace isohalo
