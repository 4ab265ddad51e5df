#include "framework/domain/mesh.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include "datatypes/error.hpp"

namespace isohalo {

Mesh::Mesh(std::vector<int> extents, std::vector<bool> periodic)
    : extents_(std::move(extents)), periodic_(std::move(periodic)) {
  if (extents_.size() != periodic_.size())
    throw UsageError("mesh: " + std::to_string(extents_.size()) + " extents but " +
                     std::to_string(periodic_.size()) + " periodicities");
  std::int64_t n = 1;
  for (int e : extents_) {
    if (e < 1) throw UsageError("mesh: an extent is " + std::to_string(e) + "; the least is 1");
    n *= e;
    if (n > std::numeric_limits<int>::max()) throw UsageError("mesh: more ranks than an int can number");
  }
  size_ = static_cast<int>(n);
}

void Mesh::coordinates(int rank, std::span<int> coords) const {
  for (int j = dimensions() - 1; j >= 0; --j) {
    coords[static_cast<std::size_t>(j)] = rank % extent(j);
    rank /= extent(j);
  }
}

int Mesh::rank_at(std::span<const int> coords) const {
  int rank = 0;
  for (int j = 0; j < dimensions(); ++j) rank = rank * extent(j) + coords[static_cast<std::size_t>(j)];
  return rank;
}

int Mesh::relative_rank(int from, std::span<const int> relative) const {
  // Digits of `from` are peeled off fastest dimension first, so no array of coordinates is needed.
  int rank = 0;
  int weight = 1;
  for (int j = dimensions() - 1; j >= 0; --j) {
    const std::int64_t n = extent(j);
    std::int64_t c = from % n + static_cast<std::int64_t>(relative[static_cast<std::size_t>(j)]);
    from /= static_cast<int>(n);
    if (c < 0 || c >= n) {
      if (!periodic(j)) return no_rank;
      c %= n;
      if (c < 0) c += n;
    }
    rank += static_cast<int>(c) * weight;
    weight *= static_cast<int>(n);
  }
  return rank;
}

void Mesh::relative_coordinates(int from, int to, std::span<int> relative) const {
  for (int j = dimensions() - 1; j >= 0; --j) {
    const int n = extent(j);
    int c = to % n - from % n;
    from /= n;
    to /= n;
    if (periodic(j)) {
      if (c < 0) c += n;      // 0 .. n-1
      if (2 * c > n) c -= n;  // the shorter way round; exactly half stays positive
    }
    relative[static_cast<std::size_t>(j)] = c;
  }
}

}  // namespace isohalo
