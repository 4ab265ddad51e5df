#include <fmt/format.h>

#include "apps/isohalo/commands.hpp"
#include "datatypes/printable.hpp"
#include "framework/io/readable.hpp"
#include "framework/reduce/tiles.hpp"
#include "framework/run/verify.hpp"

namespace isohalo {

namespace {

template <int D>
std::vector<std::int64_t> tile_of() {
  const Index<D> tile = default_tile<D>();
  return {tile.begin(), tile.end()};
}

/// The tile of a tree version is part of it.
void check_tile(const CheckpointMeta& m, std::vector<std::string>& problems) {
  const auto known = m.shape.size() == 1   ? tile_of<1>()
                     : m.shape.size() == 2 ? tile_of<2>()
                     : m.shape.size() == 3 ? tile_of<3>()
                                           : tile_of<4>();
  if (m.tree_version == kTreeVersion && m.tile != known)
    problems.push_back(fmt::format("/reduction: tile is [{}], that of tree version {} is [{}]",
                                   fmt::join(m.tile, ", "), kTreeVersion, fmt::join(known, ", ")));
}

}  // namespace

ExitCode verify_command(MPI_Comm comm, const std::string& name) {
  const Communicator c = Communicator::of(comm);
  const std::string file = pinned(name, c).string();
  Verification v = verify_checkpoint(file, c);
  check_tile(v.stored.meta, v.problems);
  if (c.rank() == 0) {
    for (std::size_t k = 0; k < v.found.size(); ++k)
      fmt::print("field {}: digest {}, min {:.17g}, max {:.17g}, NaN {}\n", printable(v.stored.fields[k].name),
                 hex_digest(v.found[k].digest), v.found[k].min, v.found[k].max, v.found[k].nan_count);
    for (const auto& p : v.problems) fmt::print("{}\n", printable(file + ": " + p));
    fmt::print("{}\n", v.problems.empty() ? "good" : "not good");
  }
  return v.problems.empty() ? ExitCode::fine : ExitCode::different;
}

}  // namespace isohalo
