#include <fmt/format.h>

#include "apps/isohalo/commands.hpp"
#include "framework/io/compare.hpp"

namespace isohalo {

namespace {

std::string index_text(const std::vector<std::int64_t>& i) {
  std::string s = "(";
  for (std::size_t j = 0; j < i.size(); ++j) s += (j ? ", " : "") + std::to_string(i[j]);
  return s + ")";
}

}  // namespace

ExitCode compare_command(MPI_Comm comm, const std::string& a, const std::string& b) {
  const Communicator c = Communicator::of(comm);
  const Comparison result = compare_checkpoints(a, b, c);
  if (c.rank() == 0) {
    for (const auto& line : result.warnings) fmt::print(stderr, "isohalo: warning: {}\n", line);
    for (const auto& line : result.metadata) fmt::print("{}\n", line);
    for (const auto& f : result.fields) {
      if (f.cells_different == 0)
        fmt::print("field {}: all {} cells have the same bits\n", f.name, f.cells);
      else
        fmt::print("field {}: {} of {} cells differ, first at {}: {:.17g} ({:#x}) against {:.17g} ({:#x})\n",
                   f.name, f.cells_different, f.cells, index_text(f.first), f.value_a, f.bits_a, f.value_b,
                   f.bits_b);
    }
    fmt::print("{}\n", result.same() ? "same" : "different");
  }
  return result.same() ? ExitCode::fine : ExitCode::different;
}

}  // namespace isohalo
