#pragma once
/// From main to the exit code: what `isohalo` and `isohalo-bench` do alike.

#include <CLI/CLI.hpp>
#include <functional>

#include "datatypes/error.hpp"

namespace isohalo {

/// Starts MPI, parses the command line into `app` on every rank (rank 0 prints help and usage errors), runs
/// `action` between Kokkos' start and end, and ends all ranks with one exit code, which it returns. `action` may be
/// set by the callbacks of `app`.
int run_program(int argc, char** argv, CLI::App& app, const std::function<ExitCode()>& action);

}  // namespace isohalo
