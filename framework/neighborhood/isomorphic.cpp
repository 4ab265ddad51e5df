#include "framework/neighborhood/isomorphic.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <string>

#include "datatypes/error.hpp"
#include "framework/mpi/fingerprint.hpp"

namespace isohalo {

namespace {

/// One dimension of the mesh, from where this rank is.
struct Axis {
  std::int64_t here, extent;
  int weight;  ///< of a coordinate in the rank
  bool periodic;

  /// The coordinate that far away; outside where the mesh ends.
  std::int64_t coordinate(std::int64_t far) const {
    std::int64_t x = here + far;
    if (!periodic || (x >= 0 && x < extent)) return x;
    if (x < 0 && x >= -extent) return x + extent;
    if (x >= extent && x < 2 * extent) return x - extent;
    x %= extent;
    return x < 0 ? x + extent : x;
  }
  /// What it adds to the rank; no_rank: it is outside.
  int part(std::int64_t x) const { return x < 0 || x >= extent ? Mesh::no_rank : static_cast<int>(x) * weight; }
};

/// What each coordinate of an offset adds to the ranks, computed when it occurs.
struct DirectParts {
  Axis axis;
  int to(int far) const { return axis.part(axis.coordinate(far)); }
  int from(int far) const { return axis.part(axis.coordinate(-static_cast<std::int64_t>(far))); }
};

/// The same computed once for each that can occur: lists are long, and their coordinates few.
class TabulatedParts {
 public:
  static constexpr std::int64_t most = 64;

  TabulatedParts(const Axis& axis, int lowest, std::int64_t range) : lowest_(lowest) {
    std::int64_t to = axis.coordinate(lowest), from = axis.coordinate(-static_cast<std::int64_t>(lowest));
    for (std::size_t k = 0; k < static_cast<std::size_t>(range); ++k) {
      to_[k] = axis.part(to++);
      from_[k] = axis.part(from--);
      if (!axis.periodic) continue;
      if (to == axis.extent) to = 0;
      if (from < 0) from = axis.extent - 1;
    }
  }
  int to(int far) const { return to_[static_cast<std::size_t>(far - lowest_)]; }
  int from(int far) const { return from_[static_cast<std::size_t>(far - lowest_)]; }

 private:
  int lowest_;
  std::array<int, most> to_, from_;
};

/// Without branches, which a list in no order would mispredict. no_rank is all ones: what has left the mesh stays
/// outside.
struct SumOnMesh {
  static_assert(Mesh::no_rank == -1);
  int operator()(int rank, int part) const { return (rank | part) < 0 ? Mesh::no_rank : rank + part; }
};

/// Adds one dimension's part to every rank. `coordinates`: the first of each offset's, which are d apart.
template <class Parts, class Sum>
void add(const Parts& parts, Sum sum, const int* coordinates, int d, std::vector<int>& targets,
         std::vector<int>& sources) {
  const std::size_t s = targets.size();
  for (std::size_t i = 0; i < s; ++i, coordinates += d) {
    targets[i] = sum(targets[i], parts.to(*coordinates));
    sources[i] = sum(sources[i], parts.from(*coordinates));
  }
}

struct Limits {
  int least, greatest;
  std::int64_t range() const { return std::int64_t{greatest} - least + 1; }
};

/// Of a list that is not empty.
Limits limits(std::span<const int> list) {
  Limits l{list.front(), list.front()};
  for (const int c : list) l.least = std::min(l.least, c), l.greatest = std::max(l.greatest, c);
  return l;
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
  const Limits all = limits(relative);
  if (all.least == std::numeric_limits<int>::min())
    throw UsageError(
        "neighborhood: an offset is -2147483648, which has no opposite: the limit is 2147483647 either way");
  const auto few = std::min<std::int64_t>(TabulatedParts::most, static_cast<std::int64_t>(s));
  sources_.assign(s, 0);
  targets_.assign(s, 0);
  std::vector<int> here(static_cast<std::size_t>(d));
  mesh.coordinates(rank, here);
  // Periodic ones first: while no rank has left the mesh, a plain sum will do.
  for (const bool periodic : {true, false}) {
    int weight = 1;
    for (int j = d - 1; j >= 0; weight *= mesh.extent(j), --j) {
      if (mesh.periodic(j) != periodic) continue;
      const Axis axis{here[static_cast<std::size_t>(j)], mesh.extent(j), weight, periodic};
      const int* const coordinates = relative_.data() + j;
      const auto add_all = [&](const auto& parts) {
        if (periodic)
          add(parts, std::plus<int>(), coordinates, d, targets_, sources_);
        else
          add(parts, SumOnMesh(), coordinates, d, targets_, sources_);
      };
      if (all.range() <= few)
        add_all(TabulatedParts(axis, all.least, all.range()));
      else
        add_all(DirectParts{axis});
    }
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

std::uint64_t IsomorphicNeighborhood::fingerprint() const {
  Fingerprint f;
  f.add(relative_.size());
  for (int c : relative_) f.add(c);
  return f.value();
}

}  // namespace isohalo
