#pragma once
/// What the machine is, in a line, for benchmarks.

#include <string>

namespace isohalo {

/// "PROCESSOR, n cores, MPI library, Kokkos version". Local.
std::string machine_text();

}  // namespace isohalo
