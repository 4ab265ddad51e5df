#include "framework/neighborhood/neighbor_schedule.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>

#include "datatypes/error.hpp"

namespace isohalo {

const char* to_string(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::automatic:
      return "automatic";
    case Algorithm::direct:
      return "direct";
    case Algorithm::combining:
      return "combining";
    case Algorithm::logarithmic:
      return "logarithmic";
  }
  return "?";
}

namespace {

/// The flat list with a row per offset.
class List {
 public:
  List(std::span<const int> relative, int dimensions)
      : relative_(relative), d_(static_cast<std::size_t>(dimensions)) {}
  int size() const { return static_cast<int>(relative_.size() / d_); }
  std::size_t dimensions() const { return d_; }
  std::span<const int> operator[](int i) const { return relative_.subspan(static_cast<std::size_t>(i) * d_, d_); }
  bool zero(int i) const {
    return std::all_of((*this)[i].begin(), (*this)[i].end(), [](int c) { return c == 0; });
  }

 private:
  std::span<const int> relative_;
  std::size_t d_;
};

/// The legs of each way as indices of steps, before they become hops. Steps come out grouped by stage, in the order
/// in which the list first needs them within a stage, which is the same on every rank.
class Legs {
 public:
  Legs(int ways, int stages) : ways_(static_cast<std::size_t>(ways)), groups_(static_cast<std::size_t>(stages)) {}

  void add(int way, int stage, std::vector<int> shift) {
    Group& group = groups_[static_cast<std::size_t>(stage)];
    const auto [found, is_new] = group.member.try_emplace(std::move(shift), static_cast<int>(group.shifts.size()));
    if (is_new) group.shifts.push_back(found->first);
    ways_[static_cast<std::size_t>(way)].push_back({stage, found->second});
  }
  /// `length` times `direction` in powers of two, a stage for each from `stage` on. On a mesh every stop lies
  /// between origin and destination, so it exists.
  void add_bits(int way, int stage, std::int64_t length, const std::vector<int>& direction) {
    for (int t = 0; (std::abs(length) >> t) > 0; ++t) {
      if (!(std::abs(length) >> t & 1)) continue;
      std::vector<int> shift = direction;
      for (auto& c : shift) c = static_cast<int>(c * (std::int64_t{1} << t) * (length < 0 ? -1 : 1));
      add(way, stage + t, std::move(shift));
    }
  }

  struct Leg {
    int stage, member;
  };
  const std::vector<Leg>& way(int i) const { return ways_[static_cast<std::size_t>(i)]; }

  std::vector<NeighborSchedule::Step> steps() const {
    std::vector<NeighborSchedule::Step> all;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (const auto& shift : groups_[g].shifts) all.push_back({static_cast<int>(g), shift});
    return all;
  }
  int step_index(const Leg& leg) const {
    std::size_t at = static_cast<std::size_t>(leg.member);
    for (int g = 0; g < leg.stage; ++g) at += groups_[static_cast<std::size_t>(g)].shifts.size();
    return static_cast<int>(at);
  }

 private:
  std::vector<std::vector<Leg>> ways_;
  struct Group {
    std::vector<std::vector<int>> shifts;
    std::map<std::vector<int>, int> member;
  };
  std::vector<Group> groups_;  // by stage
};

std::vector<int> unit(std::size_t dimensions, std::size_t j, int length) {
  std::vector<int> v(dimensions, 0);
  v[j] = length;
  return v;
}

/// Every offset in one leg.
Legs direct_legs(const List& list) {
  Legs legs(list.size(), 1);
  for (int i = 0; i < list.size(); ++i)
    if (!list.zero(i)) legs.add(i, 0, std::vector<int>(list[i].begin(), list[i].end()));
  return legs;
}

/// A leg per non-zero coordinate, dimensions in the given order.
Legs combining_legs(const List& list, const std::vector<std::size_t>& order) {
  Legs legs(list.size(), static_cast<int>(order.size()));
  for (int i = 0; i < list.size(); ++i)
    for (std::size_t k = 0; k < order.size(); ++k)
      if (const int c = list[i][order[k]]; c != 0)
        legs.add(i, static_cast<int>(k), unit(list.dimensions(), order[k], c));
  return legs;
}

int bits_of(std::int64_t n) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n)));
}

/// The list as multiples of one vector.
struct Line {
  std::vector<int> direction;
  std::vector<std::int64_t> multiple;  // per offset
};

std::optional<Line> as_line(const List& list) {
  Line line;
  int first = 0;
  while (first < list.size() && list.zero(first)) ++first;
  if (first == list.size()) return std::nullopt;
  // The primitive vector of the first offset, then the greatest common divisor of all multiples of it.
  std::int64_t g = 0;
  for (int c : list[first]) g = std::gcd(g, static_cast<std::int64_t>(c));
  for (int c : list[first]) line.direction.push_back(static_cast<int>(c / g));
  std::int64_t common = 0;
  for (int i = 0; i < list.size(); ++i) {
    std::size_t lead = 0;
    while (line.direction[lead] == 0) ++lead;
    const std::int64_t m = list[i][lead] / line.direction[lead];
    for (std::size_t j = 0; j < list.dimensions(); ++j)
      if (m * line.direction[j] != list[i][j]) return std::nullopt;
    line.multiple.push_back(m);
    common = std::gcd(common, m);
  }
  for (auto& m : line.multiple) m /= common;
  for (auto& c : line.direction) c = static_cast<int>(c * common);
  return line;
}

/// Powers of two along one vector.
Legs line_legs(const List& list, const Line& line) {
  std::int64_t longest = 0;
  for (std::int64_t m : line.multiple) longest = std::max(longest, std::abs(m));
  Legs legs(list.size(), bits_of(longest));
  for (int i = 0; i < list.size(); ++i)
    legs.add_bits(i, 0, line.multiple[static_cast<std::size_t>(i)], line.direction);
  return legs;
}

/// Powers of two in one dimension after the other.
Legs dimension_bit_legs(const List& list) {
  std::vector<int> first_stage{0};
  for (std::size_t j = 0; j < list.dimensions(); ++j) {
    std::int64_t longest = 0;
    for (int i = 0; i < list.size(); ++i) longest = std::max(longest, std::abs(std::int64_t{list[i][j]}));
    first_stage.push_back(first_stage.back() + bits_of(longest));
  }
  Legs legs(list.size(), first_stage.back());
  for (int i = 0; i < list.size(); ++i)
    for (std::size_t j = 0; j < list.dimensions(); ++j)
      legs.add_bits(i, first_stage[j], list[i][j], unit(list.dimensions(), j, 1));
  return legs;
}

/// What a way ends in: the offset it serves and, on the ring, the distance that offset must have there.
struct End {
  int offset;
  std::int64_t distance;
};

/// Turns legs into hops. Shared blocks walk a prefix tree: ways that begin with the same legs share their hops.
void make_hops(const Legs& legs, const std::vector<End>& ends, NeighborSchedule& schedule) {
  schedule.steps = legs.steps();
  schedule.stages = schedule.steps.empty() ? 0 : schedule.steps.back().stage + 1;
  std::map<std::pair<int, int>, int> child;  // (parent, step) -> hop
  for (std::size_t w = 0; w < ends.size(); ++w) {
    const auto& way = legs.way(static_cast<int>(w));
    int parent = -1;
    for (std::size_t k = 0; k < way.size(); ++k) {
      const int step = legs.step_index(way[k]);
      int hop = static_cast<int>(schedule.hops.size());
      if (schedule.pattern == Pattern::shared) hop = child.try_emplace({parent, step}, hop).first->second;
      if (hop == static_cast<int>(schedule.hops.size())) {
        Hop h;
        h.step = step;
        h.parent = parent;
        const auto& shift = schedule.steps[static_cast<std::size_t>(step)].shift;
        h.before =
            parent < 0 ? std::vector<int>(shift.size(), 0) : schedule.hops[static_cast<std::size_t>(parent)].after;
        h.after = h.before;
        for (std::size_t j = 0; j < shift.size(); ++j) h.after[j] += shift[j];
        schedule.hops.push_back(std::move(h));
      }
      Hop& h = schedule.hops[static_cast<std::size_t>(hop)];
      if (k + 1 == way.size()) h.ends.push_back(h.carries.size());
      h.carries.push_back(ends[w].offset);
      if (schedule.ring) h.distances.push_back(ends[w].distance);
      parent = hop;
    }
  }
  // Hops in the order of their stages, parents before children, otherwise as found.
  std::vector<int> order(schedule.hops.size()), place(schedule.hops.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return schedule.hops[static_cast<std::size_t>(a)].step < schedule.hops[static_cast<std::size_t>(b)].step;
  });
  for (std::size_t k = 0; k < order.size(); ++k) place[static_cast<std::size_t>(order[k])] = static_cast<int>(k);
  std::vector<Hop> sorted;
  sorted.reserve(order.size());
  for (int k : order) sorted.push_back(std::move(schedule.hops[static_cast<std::size_t>(k)]));
  for (auto& h : sorted)
    if (h.parent >= 0) h.parent = place[static_cast<std::size_t>(h.parent)];
  schedule.hops = std::move(sorted);
}

NeighborSchedule from_legs(const List& list, Algorithm algorithm, Pattern pattern, const Legs& legs) {
  NeighborSchedule schedule;
  schedule.algorithm = algorithm;
  schedule.pattern = pattern;
  std::vector<End> ends;
  for (int i = 0; i < list.size(); ++i) {
    ends.push_back({i, 0});
    if (list.zero(i)) schedule.stays.push_back(i);
  }
  make_hops(legs, ends, schedule);
  return schedule;
}

/// The order of dimensions whose prefix tree has fewest hops; all d! are tried up to five dimensions.
NeighborSchedule best_combining(const List& list, Pattern pattern) {
  std::vector<std::size_t> order(list.dimensions());
  std::iota(order.begin(), order.end(), std::size_t{0});
  NeighborSchedule best = from_legs(list, Algorithm::combining, pattern, combining_legs(list, order));
  if (pattern == Pattern::personal || order.size() > 5) return best;
  while (std::next_permutation(order.begin(), order.end())) {
    NeighborSchedule other = from_legs(list, Algorithm::combining, pattern, combining_legs(list, order));
    if (other.volume() < best.volume()) best = std::move(other);
  }
  return best;
}

}  // namespace

NeighborSchedule plan_neighbor_schedule(std::span<const int> relative, int dimensions, Algorithm algorithm,
                                        Pattern pattern) {
  const List list(relative, dimensions);
  switch (algorithm) {
    case Algorithm::direct:
      return from_legs(list, algorithm, pattern, direct_legs(list));
    case Algorithm::combining:
      return best_combining(list, pattern);
    case Algorithm::logarithmic: {
      const auto line = as_line(list);
      return from_legs(list, algorithm, pattern, line ? line_legs(list, *line) : dimension_bit_legs(list));
    }
    case Algorithm::automatic:
      break;
  }
  throw UsageError("neighborhood: a schedule needs a definite algorithm, not \"automatic\"");
}

namespace {

/// The ring distances that offset i has on `mesh`, over all origins: each dimension adds c mod n with or without a
/// wrap.
std::vector<std::int64_t> ring_distances(std::span<const int> offset, const Mesh& mesh) {
  std::vector<std::int64_t> found{0};
  std::int64_t weight = mesh.size();
  for (int j = 0; j < mesh.dimensions(); ++j) {
    const std::int64_t n = mesh.extent(j), c = offset[static_cast<std::size_t>(j)];
    weight /= n;
    std::vector<std::int64_t> deltas;
    if (mesh.periodic(j)) {
      const std::int64_t m = ((c % n) + n) % n;
      deltas.push_back(m);
      if (m > 0) deltas.push_back(m - n);
    } else if (std::abs(c) < n) {
      deltas.push_back(c);
    }
    std::vector<std::int64_t> next;
    for (std::int64_t f : found)
      for (std::int64_t delta : deltas) next.push_back(f + delta * weight);
    found = std::move(next);
  }
  const std::int64_t p = mesh.size();
  for (auto& f : found) f = ((f % p) + p) % p;
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace

NeighborSchedule plan_ring_schedule(std::span<const int> relative, const Mesh& mesh, Pattern pattern) {
  const List list(relative, mesh.dimensions());
  NeighborSchedule schedule;
  schedule.algorithm = Algorithm::logarithmic;
  schedule.pattern = pattern;
  schedule.ring = true;
  std::vector<End> ends;
  std::int64_t longest = 0;
  for (int i = 0; i < list.size(); ++i)
    for (std::int64_t distance : ring_distances(list[i], mesh)) {
      longest = std::max(longest, distance);
      if (distance > 0)
        ends.push_back({i, distance});
      else
        schedule.stays.push_back(i);  // on those ranks where it is one; see LocalSchedule
    }
  Legs legs(static_cast<int>(ends.size()), bits_of(longest));
  for (std::size_t w = 0; w < ends.size(); ++w) legs.add_bits(static_cast<int>(w), 0, ends[w].distance, {1});
  make_hops(legs, ends, schedule);
  return schedule;
}

}  // namespace isohalo
