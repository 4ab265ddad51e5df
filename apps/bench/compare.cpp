/// `isohalo bench compare`: two files with the same data, read in full, against h5diff in the same run.

#include "framework/io/compare.hpp"

#include <cstdlib>
#include <string>
#include <vector>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/files.hpp"
#include "apps/bench/timing.hpp"
#include "apps/common/report.hpp"

namespace isohalo {

namespace {

/// h5diff with these words of a shell by rank 0; true on all when it ends with 0.
bool h5diff(const Communicator& comm, const std::string& words) {
  std::int64_t good = 0;
  if (comm.rank() == 0) good = std::system(("exec h5diff " + words + " >/dev/null").c_str()) == 0;
  comm.broadcast(&good, sizeof good, 0);
  return good != 0;
}

}  // namespace

ExitCode bench_compare(MPI_Comm user, const BenchFileOptions& options) {
  const Communicator comm = Communicator::of(user);
  const CartesianDomain<2> domain(user, {options.mib * 32, 4096});
  const BenchDirectory directory(comm, options.directory);
  const auto a = absolute(directory.file("a.h5")), b = absolute(directory.file("b.h5"));  // look like no options
  {
    const Field<double, 2> u = random_field(domain);
    for (const auto& file : {a, b})
      write_checkpoint<2>(file, domain, bench_meta(domain), {{"u", "1", "state", u.ref()}});
  }
  // A shell takes no names apart that come from there.
  setenv("A", a.c_str(), 1), setenv("B", b.c_str(), 1);
  CompareOptions read;
  read.read_data = true;
  const bool opponent = h5diff(comm, "--version 2>/dev/null");
  bool right = compare_checkpoints(a, b, comm, read).same();
  std::vector<std::function<double()>> ways{
      [&] { return timed(comm, [&] { right = compare_checkpoints(a, b, comm, read).same() && right; }); }};
  if (opponent)
    ways.push_back([&] { return timed(comm, [&] { right = h5diff(comm, "\"$A\" \"$B\"") && right; }); });
  const Turns turns(options.repeats, ways);
  const double gigabytes = 2 * static_cast<double>(options.mib) * (1 << 20) / 1e9;
  const auto rate = [&](std::size_t way) { return gigabytes / turns.middle(way); };
  Json j = report_of("compare");
  j.update({{"ranks", comm.size()},
            {"mib_per_file", options.mib},
            {"repeats", options.repeats},
            {"isohalo_gb_per_s", rate(0)}});
  if (opponent)
    j.update({{"h5diff_gb_per_s", rate(1)}, {"ratio", turns.ratio(1, 0)}});
  else
    j["h5diff"] = "is not installed (package hdf5-tools): no ratio";
  j["right"] = right;
  return print_report(user, options.json, j, right);
}

}  // namespace isohalo
