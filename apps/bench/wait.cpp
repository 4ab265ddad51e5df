/// `isohalo bench wait`: the same messages, waited for by our progress loop and by MPI_Waitall. With more ranks
/// than cores MPICH's blocking calls poll on a core that the awaited rank needs.

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/timing.hpp"
#include "apps/common/report.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/communicator.hpp"

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

}  // namespace

ExitCode bench_wait(MPI_Comm user, const BenchOptions& options) {
  const Communicator comm = Communicator::of(user);
  std::vector<double> data(4 * 512, comm.rank());
  exchange(comm, data, true);
  const double down = (comm.rank() + comm.size() - 1) % comm.size();
  const bool right = comm.min(data[0] == down && data[511] == down) == 1;
  const Turns turns(7, {[&] { return 1e6 * timed_calls(comm, 200, [&] { exchange(comm, data, true); }); },
                        [&] { return 1e6 * timed_calls(comm, 20, [&] { exchange(comm, data, false); }); }});
  const double ours = turns.middle(0), theirs = turns.middle(1), ratio = turns.ratio(1, 0);
  Json report = report_of("wait");
  report.update({{"ranks", comm.size()}, {"isohalo_us", ours}, {"mpi_waitall_us", theirs}, {"ratio", ratio}});
  return print_report(user, options.json, report, right);
}

}  // namespace isohalo
