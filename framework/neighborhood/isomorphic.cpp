#include "framework/neighborhood/isomorphic.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "datatypes/error.hpp"
#include "framework/mpi/fingerprint.hpp"

namespace isohalo {

namespace {

/// Adds coordinate `x` of a dimension, times its weight, to a rank that has not left the mesh before.
inline void move(int& rank, std::int64_t x, std::int64_t n, int weight) {
  if (x < 0 || x >= n)
    rank = Mesh::no_rank;
  else if (rank != Mesh::no_rank)
    rank += static_cast<int>(x) * weight;
}

/// The same in a periodic dimension, for -n < x < 2 n.
inline void wrap(int& rank, std::int64_t x, std::int64_t n, int weight) {
  x += x < 0 ? n : 0;
  x -= x >= n ? n : 0;
  if (rank != Mesh::no_rank) rank += static_cast<int>(x) * weight;
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
      int far = *c;
      if (!periodic) {
        move(targets_[i], x + far, n, weight);
        move(sources_[i], x - far, n, weight);
        continue;
      }
      if (far >= n || far <= -n) far %= static_cast<int>(n);
      wrap(targets_[i], x + far, n, weight);
      wrap(sources_[i], x - far, n, weight);
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
