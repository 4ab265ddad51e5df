#pragma once
/// Named errors. An `Error` that leaves a collective call is the same on every rank of it; `main` prints it once.

#include <stdexcept>
#include <string>

namespace isohalo {

/// The exit codes of the command, agreed by all ranks.
enum class ExitCode : int {
  fine = 0,       ///< also a signal or time limit that ended in a checkpoint
  different = 1,  ///< compared and found different, or a check that failed
  usage = 2,      ///< bad usage, bad input, unreadable file
  failure = 3,    ///< run-time failure: NaN, I/O, MPI
};

class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// Bad usage, input or file: exit code 2.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& text) : Error(ExitCode::usage, text) {}
};

/// Something failed while running: exit code 3.
class RunError : public Error {
 public:
  explicit RunError(const std::string& text) : Error(ExitCode::failure, text) {}
};

/// An MPI call that failed on this rank; not agreed, so `main` prints it and aborts.
class MpiError : public Error {
 public:
  MpiError(int mpi_code, const std::string& text) : Error(ExitCode::failure, text), mpi_code_(mpi_code) {}
  int mpi_code() const noexcept { return mpi_code_; }

 private:
  int mpi_code_;
};

}  // namespace isohalo
