#include "apps/common/ending.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <thread>

#include "datatypes/printable.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo {

namespace {

/// How long a rank with an error waits for the others to end as well. An error that they have too reaches all of
/// them within moments.
constexpr std::chrono::seconds kPatience{3};

struct Ending {
  ExitCode code = ExitCode::fine;
  std::optional<std::string> error;
};

[[noreturn]] void abandon(MPI_Comm comm, int rank, const Ending& own) {
  end_alone(comm, own.code, fmt::format("rank {}: {}", rank, *own.error));
}

/// Runs the action; an error's text is printable, whatever text of others it quotes.
Ending ending_of(MPI_Comm comm, int rank, const std::function<ExitCode()>& action) {
  Ending own;
  try {
    own.code = action();
    return own;
  } catch (const MpiError& e) {
    std::string text = e.what();
    std::replace(text.begin(), text.end(), '\n', ' ');  // MPI's reasons have several lines
    own = {ExitCode::failure, printable(text)};
    abandon(comm, rank, own);
  } catch (const ErrorList& e) {  // is printable
    own = {e.code(), e.what()};
  } catch (const std::bad_alloc&) {
    own = {ExitCode::failure, "out of memory: use a smaller domain.shape, fewer ranks per node or more nodes"};
  } catch (const std::exception&) {
    const auto error = error_of([] { throw; });
    own = {error->code(), printable(error->what())};
  }
  return own;
}

}  // namespace

void end_alone(MPI_Comm comm, ExitCode code, const std::string& error) {
  fmt::print(stderr, "isohalo: error: {}\n", error);
  std::fflush(stderr);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // launchers drop what they have not read by then
  MPI_Abort(comm, static_cast<int>(code));
  std::abort();
}

ExitCode end_together(MPI_Comm comm, const std::function<ExitCode()>& action) {
  constexpr int spins = 20;
  MPI_Comm meeting = duplicate(comm, spins);  // of its own: others may be in the middle of anything else
  int rank = 0, size = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const Ending own = ending_of(comm, rank, action);

  // The lowest rank with an error; minus the largest code; is there one without an error?
  int least[3] = {own.error ? rank : INT_MAX, -static_cast<int>(own.code), own.error ? 1 : 0};
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(MPI_IN_PLACE, least, 3, MPI_INT, MPI_MIN, meeting, &request);
  const auto start = std::chrono::steady_clock::now();
  Backoff backoff(spins);
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) break;
    if (own.error && std::chrono::steady_clock::now() - start > kPatience) abandon(comm, rank, own);
    backoff.pause();
  }
  MPI_Comm_free(&meeting);
  if (least[0] == rank)
    fmt::print(stderr, "isohalo: error: {}{}\n", least[2] ? std::string() : fmt::format("rank {}: ", rank),
               *own.error);
  return static_cast<ExitCode>(-least[1]);
}

}  // namespace isohalo
