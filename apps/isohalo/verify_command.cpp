#include <fmt/format.h>

#include "apps/isohalo/commands.hpp"
#include "datatypes/printable.hpp"
#include "framework/io/readable.hpp"
#include "framework/run/verify.hpp"

namespace isohalo {

ExitCode verify_command(MPI_Comm comm, const std::string& name) {
  const Communicator c = Communicator::of(comm);
  const std::string file = pinned(name, c).string();
  const Verification v = verify_checkpoint(file, c);
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
