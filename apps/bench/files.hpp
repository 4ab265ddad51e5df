#pragma once
/// What the benchmarks of files share: a directory that goes away, and a field to put into them.

#include <unistd.h>

#include <filesystem>
#include <string>

#include "apps/bench/timing.hpp"
#include "framework/halo/field.hpp"
#include "framework/io/checkpoint.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/reduce/tiles.hpp"

namespace isohalo {

/// A directory of its own below `parent`, removed with everything in it at the end. Collective; throws RunError.
class BenchDirectory {
 public:
  BenchDirectory(const Communicator& comm, const std::string& parent) : comm_(comm) {
    std::string name;
    on_root(comm, [&] {
      std::filesystem::create_directories(parent);
      name = (std::filesystem::path(parent) / ("isohalo_bench_" + std::to_string(getpid()))).string();
      if (!std::filesystem::create_directory(name)) throw RunError("cannot make " + name);
    });
    comm.broadcast(name, 0);
    path_ = name;
  }
  BenchDirectory(const BenchDirectory&) = delete;
  BenchDirectory& operator=(const BenchDirectory&) = delete;
  ~BenchDirectory() {
    std::error_code ignored;
    if (comm_.rank() == 0) std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path file(const std::string& name) const { return path_ / name; }

 private:
  Communicator comm_;
  std::filesystem::path path_;
};

/// A field of random values in [0, 1) with a layer of ghosts, as a solver has it.
inline Field<double, 2> random_field(const CartesianDomain<2>& domain) {
  Field<double, 2> u("u", domain.owned(), {1, 1}, {1, 1});
  for_each_cell(domain.owned(), [&](const Index<2>& i) {
    u.at(i) = number_of(static_cast<std::uint64_t>(linear_index(domain.global(), i)) * kGolden);
  });
  return u;
}

/// The metadata of a checkpoint of such a field.
inline CheckpointMeta bench_meta(const CartesianDomain<2>& domain) {
  CheckpointMeta m;
  for (int j = 0; j < 2; ++j) {
    m.shape.push_back(domain.global().extent(j));
    m.origin.push_back(0);
    m.spacing.push_back(1);
    m.periodic.push_back(0);
    m.tile.push_back(default_tile<2>()[j]);
  }
  m.boundary_low = m.boundary_high = "[\"neumann\", \"neumann\"]";
  m.tree_version = kTreeVersion;
  m.config = "solver.kind = \"bench\"\n";
  return m;
}

}  // namespace isohalo
