/// `isohalo bench compare`: two files with the same data, read in full, against h5diff in the same run.

#include "framework/io/compare.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/files.hpp"
#include "apps/bench/timing.hpp"
#include "framework/run/machine.hpp"

namespace isohalo {

namespace {

/// Runs a shell command on rank 0; true when it ends with 0.
bool shell(const Communicator& comm, const std::string& command) {
  std::int64_t bad = 0;
  if (comm.rank() == 0) bad = std::system(command.c_str()) != 0;
  comm.broadcast(&bad, sizeof bad, 0);
  return bad == 0;
}

}  // namespace

ExitCode bench_compare(MPI_Comm user, const BenchFileOptions& options) {
  const Communicator comm = Communicator::of(user);
  const CartesianDomain<2> domain(user, {options.mib * 32, 4096});
  const BenchDirectory directory(comm, options.directory);
  const auto a = directory.file("a.h5"), b = directory.file("b.h5");
  {
    const Field<double, 2> u = random_field(domain);
    for (const auto& file : {a, b})
      write_checkpoint<2>(file, domain, bench_meta(domain), {{"u", "1", "state", u.ref()}});
  }
  CompareOptions read;
  read.read_data = true;
  const bool opponent = shell(comm, "command -v h5diff > /dev/null 2>&1");
  bool right = compare_checkpoints(a, b, comm, read).same();
  std::vector<double> ours, theirs, ratio;
  for (int k = 0; k < options.repeats; ++k) {  // A B A B .. so that both see the same weather
    ours.push_back(timed(comm, [&] { right = compare_checkpoints(a, b, comm, read).same() && right; }));
    if (!opponent) continue;
    theirs.push_back(timed(comm, [&] {
      right = shell(comm, fmt::format("h5diff '{}' '{}' > /dev/null", a.string(), b.string())) && right;
    }));
    ratio.push_back(theirs.back() / ours.back());
  }
  const double gigabytes = 2 * static_cast<double>(options.mib) * (1 << 20) / 1e9;
  if (comm.rank() != 0) return right ? ExitCode::fine : ExitCode::different;
  if (options.json) {
    nlohmann::ordered_json j{{"benchmark", "compare"},     {"machine", machine_text()},
                             {"ranks", comm.size()},       {"mib_per_file", options.mib},
                             {"repeats", options.repeats}, {"isohalo_gb_per_s", gigabytes / median(ours)}};
    if (opponent) j["h5diff_gb_per_s"] = gigabytes / median(theirs), j["ratio"] = median(ratio);
    j["right"] = right;
    fmt::print("{}\n", j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    fmt::print("{}\ncompare of two files of {} MiB, data read, {} ranks: {:.2f} GB/s (both files)\n",
               machine_text(), options.mib, comm.size(), gigabytes / median(ours));
    if (opponent)
      fmt::print("h5diff: {:.2f} GB/s, ratio {:.2f}\n", gigabytes / median(theirs), median(ratio));
    else
      fmt::print("h5diff is not installed (package hdf5-tools): no ratio\n");
  }
  return right ? ExitCode::fine : ExitCode::different;
}

}  // namespace isohalo
