#pragma once
/// How the command ends on all of its ranks.

#include <mpi.h>

#include <functional>
#include <string>

#include "datatypes/error.hpp"

namespace isohalo {

/// Runs `action` and ends it on all ranks with one exit code, the largest of any rank. Errors are printed once, by
/// the lowest rank that has one, and with its number when other ranks have none. A rank that failed alone while
/// others wait for it cannot end them otherwise: after some seconds it prints its error and ends the job with
/// MPI_Abort. So does a rank on which MPI itself failed, at once. Collective.
ExitCode end_together(MPI_Comm comm, const std::function<ExitCode()>& action);

/// Prints one error, which must be printable, and ends the job, whatever the other ranks do. Local.
[[noreturn]] void end_alone(MPI_Comm comm, ExitCode code, const std::string& error);

}  // namespace isohalo
