#include <fmt/format.h>

#include "apps/isohalo/commands.hpp"
#include "framework/io/verify.hpp"

namespace isohalo {

ExitCode verify_command(MPI_Comm comm, const std::string& file) {
  const Communicator c = Communicator::of(comm);
  const Verification v = verify_checkpoint(file, c);
  if (c.rank() == 0) {
    for (std::size_t k = 0; k < v.found.size(); ++k)
      fmt::print("field {}: digest {}, min {:.17g}, max {:.17g}, NaN {}\n", v.stored.fields[k].name,
                 hex_digest(v.found[k].digest), v.found[k].min, v.found[k].max, v.found[k].nan_count);
    for (const auto& p : v.problems) fmt::print("{}: {}\n", file, p);
    fmt::print("{}\n", v.problems.empty() ? "good" : "not good");
  }
  return v.problems.empty() ? ExitCode::fine : ExitCode::different;
}

}  // namespace isohalo
