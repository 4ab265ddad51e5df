/// `isohalo bench compare`: two files with the same data, read in full, against h5diff in the same run.

#include "framework/io/compare.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/files.hpp"
#include "apps/bench/timing.hpp"
#include "framework/run/machine.hpp"

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
  std::vector<double> ours, theirs, ratio;
  for (int k = 0; k < options.repeats; ++k) {  // A B A B .. so that both see the same weather
    ours.push_back(timed(comm, [&] { right = compare_checkpoints(a, b, comm, read).same() && right; }));
    if (!opponent) continue;
    theirs.push_back(timed(comm, [&] { right = h5diff(comm, {a.string(), b.string()}) && right; }));
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
