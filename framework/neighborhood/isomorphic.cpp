#include "framework/neighborhood/isomorphic.hpp"

#include <algorithm>
#include <array>
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

  /// The coordinate that far away; outside of the mesh where it ends.
  std::int64_t coordinate(std::int64_t far) const {
    std::int64_t x = here + far;
    if (!periodic || (x >= 0 && x < extent)) return x;
    x %= extent;
    return x < 0 ? x + extent : x;
  }
  /// What it adds to the rank; no_rank: it is outside.
  int part(std::int64_t x) const { return x < 0 || x >= extent ? Mesh::no_rank : static_cast<int>(x) * weight; }
  int step(std::int64_t far) const { return part(coordinate(far)); }
};

/// The steps by the coordinates of an offset list, computed once for each that can occur. Lists are long and their
/// coordinates few.
class Steps {
 public:
  Steps(const Axis& axis, int lowest, std::int64_t range) : lowest_(lowest) {
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

  static constexpr std::int64_t most = 64;

 private:
  int lowest_;
  std::array<int, most> to_, from_;
};

/// A list too spread out for a table.
struct EachStep {
  Axis axis;
  int to(int far) const { return axis.step(far); }
  int from(int far) const { return axis.step(-static_cast<std::int64_t>(far)); }
};

/// Ranks that leave the mesh in one dimension stay away.
void add(int& rank, int step) {
  if (step == Mesh::no_rank)
    rank = Mesh::no_rank;
  else if (rank != Mesh::no_rank)
    rank += step;
}

/// `coordinates`: the first of each offset's, which are d apart.
template <class S>
void go(const S& steps, bool periodic, const int* coordinates, int d, std::vector<int>& targets,
        std::vector<int>& sources) {
  const std::size_t s = targets.size();
  if (periodic)
    for (std::size_t i = 0; i < s; ++i, coordinates += d) {
      targets[i] += steps.to(*coordinates);
      sources[i] += steps.from(*coordinates);
    }
  else
    for (std::size_t i = 0; i < s; ++i, coordinates += d) {
      add(targets[i], steps.to(*coordinates));
      add(sources[i], steps.from(*coordinates));
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
  int lowest = 0, highest = 0;
  for (const int c : relative) lowest = std::min(lowest, c), highest = std::max(highest, c);
  if (lowest == std::numeric_limits<int>::min())
    throw UsageError(
        "neighborhood: an offset is -2147483648, which has no opposite: the limit is 2147483647 either way");
  sources_.assign(s, 0);
  targets_.assign(s, 0);
  std::vector<int> here(static_cast<std::size_t>(d));
  mesh.coordinates(rank, here);
  const std::int64_t range = std::int64_t{highest} - lowest + 1;
  for (const bool periodic : {true, false}) {  // these need not look whether the rank has left the mesh
    int weight = 1;
    for (int j = d - 1; j >= 0; weight *= mesh.extent(j), --j) {
      if (mesh.periodic(j) != periodic) continue;
      const Axis axis{here[static_cast<std::size_t>(j)], mesh.extent(j), weight, periodic};
      const int* const coordinates = relative_.data() + j;
      if (range <= std::min<std::int64_t>(Steps::most, static_cast<std::int64_t>(s)))
        go(Steps(axis, lowest, range), periodic, coordinates, d, targets_, sources_);
      else
        go(EachStep{axis}, periodic, coordinates, d, targets_, sources_);
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
