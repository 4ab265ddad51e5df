#include "framework/neighborhood/isomorphic.hpp"

#include <string>

#include "datatypes/error.hpp"

namespace isohalo {

IsomorphicNeighborhood::IsomorphicNeighborhood(const Mesh& mesh, int rank, std::span<const int> relative)
    : relative_(relative.begin(), relative.end()) {
  const auto d = static_cast<std::size_t>(mesh.dimensions());
  if (d == 0 || relative.size() % d)
    throw UsageError("neighborhood: " + std::to_string(relative.size()) +
                     " coordinates are no list of offsets in " + std::to_string(d) + " dimensions");
  const std::size_t s = relative.size() / d;
  sources_.resize(s);
  targets_.resize(s);
  std::vector<int> back(d);
  for (std::size_t i = 0; i < s; ++i) {
    const auto offset = relative.subspan(i * d, d);
    for (std::size_t j = 0; j < d; ++j) back[j] = -offset[j];
    targets_[i] = mesh.relative_rank(rank, offset);
    sources_[i] = mesh.relative_rank(rank, back);
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
  std::uint64_t h = 0xcbf29ce484222325u ^ relative_.size();
  for (int c : relative_) h = (h ^ static_cast<std::uint32_t>(c)) * 0x100000001b3u, h ^= h >> 29;
  return h;
}

}  // namespace isohalo
