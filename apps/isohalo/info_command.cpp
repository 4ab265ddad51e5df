#include <fmt/format.h>

#include <sstream>

#include "apps/isohalo/commands.hpp"
#include "framework/io/checkpoint.hpp"

namespace isohalo {

ExitCode info_command(MPI_Comm comm, const std::string& file) {
  const Communicator c = Communicator::of(comm);
  const StoredCheckpoint s = read_checkpoint_meta(file, c);
  if (c.rank() != 0) return ExitCode::fine;
  const auto list = [](const auto& v) {
    std::string text;
    for (const auto& x : v) text += (text.empty() ? "" : " x ") + fmt::format("{}", x);
    return text;
  };
  const CheckpointMeta& m = s.meta;
  fmt::print("file            {}\nformat          isohalo {}.{}, complete\n", file, s.major, s.minor);
  fmt::print("grid            {} cells, spacing {}, origin {}\n", list(m.shape), list(m.spacing), list(m.origin));
  fmt::print("boundary        low {}, high {}\n", m.boundary_low, m.boundary_high);
  fmt::print("time            step {}, t = {:.17g}, dt = {:.17g}\n", m.step, m.time, m.dt);
  fmt::print("residual        {:.17g} (S = {:.17g}, step {}, method {}, tree {}, tile {})\n", m.residual,
             m.change_sum, m.residual_step, m.method, m.tree_version, list(m.tile));
  for (const auto& f : s.fields)
    fmt::print("field           {}: {} {}, {}, digest {}, min {:.17g}, max {:.17g}, NaN {}\n", f.name, f.type,
               list(f.shape), f.role, hex_digest(f.digest), f.min, f.max, f.nan_count);
  std::istringstream config(m.config);
  for (std::string line; std::getline(config, line);) fmt::print("config          {}\n", line);
  return ExitCode::fine;
}

}  // namespace isohalo
