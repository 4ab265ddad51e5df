/// `isohalo bench compare`: two files with the same data, read in full, against h5diff in the same run.

#include "framework/io/compare.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/files.hpp"
#include "apps/bench/report.hpp"
#include "apps/bench/timing.hpp"

namespace isohalo {

namespace {

/// Starts a program of the search path, by no shell, which would take names apart; true when it ends with 0.
bool succeeds(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  if (posix_spawn_file_actions_init(&actions) != 0) return false;
  pid_t child = -1;
  int status = -1;
  const bool started = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
                       posix_spawnp(&child, arguments.front(), &actions, nullptr, arguments.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  if (!started) return false;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// The same on rank 0; all learn how it ended.
bool h5diff(const Communicator& comm, std::vector<std::string> arguments) {
  std::int64_t good = 0;
  arguments.insert(arguments.begin(), "h5diff");
  if (comm.rank() == 0) good = succeeds(std::move(arguments));
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
  CompareOptions read;
  read.read_data = true;
  const bool opponent = h5diff(comm, {"--version"});
  bool right = compare_checkpoints(a, b, comm, read).same();
  std::vector<std::function<double()>> ways{
      [&] { return timed(comm, [&] { right = compare_checkpoints(a, b, comm, read).same() && right; }); }};
  if (opponent)
    ways.push_back([&] { return timed(comm, [&] { right = h5diff(comm, {a.string(), b.string()}) && right; }); });
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
