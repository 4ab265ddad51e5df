#include "framework/neighborhood/isomorphic.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "datatypes/error.hpp"
#include "framework/mpi/fingerprint.hpp"

namespace isohalo {

namespace {

/// Both coordinates that `c` cells up and down from x mean in a dimension of n ranks; false where one is off the
/// mesh. Divides only for offsets longer than the mesh.
inline bool wrap(std::int64_t& x, std::int64_t n, bool periodic) {
  if (x >= 0 && x < n) return true;
  if (!periodic) return false;
  x += x < 0 ? n : -n;
  if (x < 0 || x >= n) {
    x %= n;
    if (x < 0) x += n;
  }
  return true;
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
  if (std::find(relative.begin(), relative.end(), std::numeric_limits<int>::min()) != relative.end())
    throw UsageError(
        "neighborhood: an offset is -2147483648, which has no opposite: the limit is 2147483647 either way");
  const std::size_t s = relative.size() / static_cast<std::size_t>(d);
  sources_.assign(s, 0);
  targets_.assign(s, 0);
  // One dimension after the other: its coordinate, extent and weight stay in registers.
  std::vector<int> here(static_cast<std::size_t>(d));
  mesh.coordinates(rank, here);
  int weight = 1;
  for (int j = d - 1; j >= 0; --j) {
    const std::int64_t n = mesh.extent(j), x = here[static_cast<std::size_t>(j)];
    const bool periodic = mesh.periodic(j);
    const int* c = relative_.data() + j;
    for (std::size_t i = 0; i < s; ++i, c += d) {
      std::int64_t to = x + *c, from = x - *c;
      if (!wrap(to, n, periodic))
        targets_[i] = Mesh::no_rank;
      else if (targets_[i] != Mesh::no_rank)
        targets_[i] += static_cast<int>(to) * weight;
      if (!wrap(from, n, periodic))
        sources_[i] = Mesh::no_rank;
      else if (sources_[i] != Mesh::no_rank)
        sources_[i] += static_cast<int>(from) * weight;
    }
    weight *= static_cast<int>(n);
  }
  for (std::size_t i = 0; i < s; ++i) {
    outdegree_ += targets_[i] != Mesh::no_rank;
    indegree_ += sources_[i] != Mesh::no_rank;
  }
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
