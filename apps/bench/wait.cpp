/// `isohalo bench wait`: the same messages, waited for by our progress loop and by MPI_Waitall. With more ranks
/// than cores MPICH's blocking calls poll on a core that the awaited rank needs.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/timing.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/communicator.hpp"
#include "framework/run/machine.hpp"

namespace isohalo {

namespace {

/// One exchange of 4 KiB with both neighbors in a ring.
void exchange(const Communicator& comm, std::vector<double>& data, bool ours) {
  constexpr int n = 512;
  const int up = (comm.rank() + 1) % comm.size(), down = (comm.rank() + comm.size() - 1) % comm.size();
  MPI_Request r[4];
  mpi_check(MPI_Irecv(data.data(), n, MPI_DOUBLE, down, 0, comm.get(), &r[0]), "MPI_Irecv", comm.get());
  mpi_check(MPI_Irecv(data.data() + n, n, MPI_DOUBLE, up, 1, comm.get(), &r[1]), "MPI_Irecv", comm.get());
  mpi_check(MPI_Isend(data.data() + 2 * n, n, MPI_DOUBLE, up, 0, comm.get(), &r[2]), "MPI_Isend", comm.get());
  mpi_check(MPI_Isend(data.data() + 3 * n, n, MPI_DOUBLE, down, 1, comm.get(), &r[3]), "MPI_Isend", comm.get());
  if (ours)
    comm.wait(r, "bench wait");
  else
    mpi_check(MPI_Waitall(4, r, MPI_STATUSES_IGNORE), "MPI_Waitall", comm.get());
}

/// Microseconds per exchange, of the slowest rank.
double microseconds(const Communicator& comm, std::vector<double>& data, bool ours, int count) {
  return timed(comm,
               [&] {
                 for (int k = 0; k < count; ++k) exchange(comm, data, ours);
               }) *
         1e6 / count;
}

}  // namespace

ExitCode bench_wait(MPI_Comm user, bool json) {
  const Communicator comm = Communicator::of(user);
  std::vector<double> data(4 * 512, comm.rank()), ours, theirs, ratio;
  exchange(comm, data, true);
  const double down = (comm.rank() + comm.size() - 1) % comm.size();
  const bool right = comm.min(data[0] == down && data[511] == down) == 1;
  for (int k = 0; k < 7; ++k) {
    ours.push_back(microseconds(comm, data, true, 200));
    theirs.push_back(microseconds(comm, data, false, 20));
    ratio.push_back(theirs.back() / ours.back());
  }
  if (comm.rank() == 0 && json)
    fmt::print("{}\n", nlohmann::ordered_json({{"benchmark", "wait"},
                                               {"machine", machine_text()},
                                               {"ranks", comm.size()},
                                               {"isohalo_us", median(ours)},
                                               {"mpi_waitall_us", median(theirs)},
                                               {"ratio", median(ratio)}})
                           .dump(2));
  else if (comm.rank() == 0)
    fmt::print("{}\n{} ranks: {:.1f} us per exchange, {:.1f} us with MPI_Waitall, ratio {:.1f}\n", machine_text(),
               comm.size(), median(ours), median(theirs), median(ratio));
  return right ? ExitCode::fine : ExitCode::different;
}

}  // namespace isohalo
