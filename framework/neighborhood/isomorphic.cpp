#include "framework/neighborhood/isomorphic.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "datatypes/error.hpp"

namespace isohalo {

namespace {

/// One dimension of the mesh, from where this rank is.
struct Axis {
  std::int64_t here, extent;
  int weight;  ///< of a coordinate in the rank
  bool periodic;

  /// What the coordinate that far away adds to the rank; no_rank where the mesh ends.
  int part(std::int64_t far) const {
    std::int64_t x = here + far;
    if (periodic) {
      x += x < 0 ? extent : 0;
      x -= x >= extent ? extent : 0;
      if (x < 0 || x >= extent) x = (x % extent + extent) % extent;  // more than once round
    }
    return x < 0 || x >= extent ? Mesh::no_rank : static_cast<int>(x) * weight;
  }
};

/// Adds what one dimension adds to every rank. `coordinate`: the first of each offset's, which are d apart. Without
/// branches, which a list in no order would mispredict: no_rank is all ones, so what has left the mesh stays
/// outside.
template <class Part>
void add(std::vector<int>& ranks, const int* coordinate, int d, const Part& part) {
  static_assert(Mesh::no_rank == -1);
  for (int& rank : ranks) {
    const int more = part(*coordinate);
    rank = (rank | more) < 0 ? Mesh::no_rank : rank + more;
    coordinate += d;
  }
}

}  // namespace

IsomorphicNeighborhood::IsomorphicNeighborhood(const Mesh& mesh, int rank, std::span<const int> relative)
    : IsomorphicNeighborhood(std::make_shared<const Mesh>(mesh), rank, relative) {}

IsomorphicNeighborhood::IsomorphicNeighborhood(std::shared_ptr<const Mesh> shared, int rank,
                                               std::span<const int> relative)
    : mesh_(std::move(shared)), rank_(rank), relative_(relative.begin(), relative.end()) {
  const Mesh& mesh = *mesh_;
  const int d = mesh.dimensions();
  if (d == 0 || relative.size() % static_cast<std::size_t>(d))
    throw UsageError("neighborhood: " + std::to_string(relative.size()) +
                     " coordinates are no list of offsets in " + std::to_string(d) + " dimensions");
  const std::size_t s = relative.size() / static_cast<std::size_t>(d);
  if (s == 0) return;
  const auto [lowest, highest] = std::minmax_element(relative.begin(), relative.end());
  if (*lowest == std::numeric_limits<int>::min())
    throw UsageError(
        "neighborhood: an offset is -2147483648, which has no opposite: the limit is 2147483647 either way");
  sources_.assign(s, 0);
  targets_.assign(s, 0);
  std::vector<int> here(static_cast<std::size_t>(d));
  mesh.coordinates(rank, here);
  // Lists are long, and their coordinates few: what each adds is computed once where it pays.
  constexpr std::int64_t most = 64;
  const std::int64_t least = *lowest, range = *highest - least + 1, few = std::min(most, std::ssize(relative) / d);
  int to[most], from[most];
  int weight = 1;
  for (int j = d - 1; j >= 0; weight *= mesh.extent(j), --j) {
    const Axis axis{here[static_cast<std::size_t>(j)], mesh.extent(j), weight, mesh.periodic(j)};
    const int* const first = relative_.data() + j;
    if (range > few) {
      add(targets_, first, d, [=](int far) { return axis.part(far); });
      add(sources_, first, d, [=](int far) { return axis.part(-std::int64_t{far}); });
      continue;
    }
    for (std::int64_t k = 0; k < range; ++k) to[k] = axis.part(least + k), from[k] = axis.part(-least - k);
    add(targets_, first, d, [&to, least](int far) { return to[far - least]; });
    add(sources_, first, d, [&from, least](int far) { return from[far - least]; });
  }
  const auto there = [](int r) { return r != Mesh::no_rank; };
  outdegree_ = static_cast<int>(std::count_if(targets_.begin(), targets_.end(), there));
  indegree_ = static_cast<int>(std::count_if(sources_.begin(), sources_.end(), there));
}

std::vector<int> IsomorphicNeighborhood::present(std::span<const int> ranks) {
  std::vector<int> list;
  for (int r : ranks)
    if (r != Mesh::no_rank) list.push_back(r);
  return list;
}

}  // namespace isohalo
