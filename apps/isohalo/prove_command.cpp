/// `isohalo prove DECK --ranks 1,2,3,6`: runs the deck on each number of ranks and compares residuals, digests and
/// checkpoints.

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>
#include <utility>

#include "apps/isohalo/commands.hpp"
#include "apps/isohalo/compare_report.hpp"
#include "framework/mpi/communicator.hpp"
#include "framework/run/signals.hpp"

namespace isohalo {

namespace {

namespace fs = std::filesystem;

/// Runs a program with its output in `log`; its wait status. When a signal asks this one to end, that one ends
/// first.
int launch(const std::vector<std::string>& words, const fs::path& log, const SignalWatch& signals) {
  std::vector<char*> arguments;
  for (const std::string& w : words) arguments.push_back(const_cast<char*>(w.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int failure = posix_spawnp(&child, arguments.front(), &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failure != 0)
    throw UsageError(fmt::format("cannot start {} with its output in {}: {}", words.front(), log.string(),
                                 std::strerror(failure)));
  int status = 0;
  bool passed_on = false;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (signals.stop_signal() && !std::exchange(passed_on, true)) kill(child, SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (signals.stop_signal()) throw RunError(fmt::format("ended by {}", signal_name(signals.stop_signal())));
  return status;
}

struct Outcome {
  int ranks = 1;
  fs::path directory, log;
  double seconds = 0;
  std::string process_grid, verdict;
  std::string results;                          ///< the lines "residual = ", "digest NAME = "
  std::map<std::string, fs::path> checkpoints;  ///< by file name
};

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

bool same_bytes(const fs::path& a, const fs::path& b) {
  std::ifstream x(a, std::ios::binary), y(b, std::ios::binary);
  std::vector<char> p(1 << 20), q(1 << 20);
  while (x && y) {
    x.read(p.data(), static_cast<std::streamsize>(p.size()));
    y.read(q.data(), static_cast<std::streamsize>(q.size()));
    if (x.gcount() != y.gcount() || !std::equal(p.begin(), p.begin() + x.gcount(), q.begin())) return false;
  }
  return x.eof() && y.eof();
}

/// Is this one of the lines with which a run ends, "residual = .." or "digest NAME = .."? The table of phases has a
/// line "digest" as well, of times.
bool is_result(const std::string& line) {
  return line.rfind("residual = ", 0) == 0 || (line.rfind("digest ", 0) == 0 && line.find(" = ") != line.npos);
}

/// Runs the deck; throws RunError with the end of its output when it fails.
Outcome run_on(int ranks, const ProveRequest& request, const fs::path& below, const SignalWatch& signals) {
  Outcome o;
  o.ranks = ranks;
  o.directory = below / fmt::format("ranks_{}", ranks);
  o.log = below / fmt::format("ranks_{}.log", ranks);
  std::vector<std::string> words{
      request.mpiexec, "-n",        std::to_string(ranks), fs::read_symlink("/proc/self/exe").string(),
      "run",           request.deck};
  words.insert(words.end(), request.overrides.begin(), request.overrides.end());
  // A limit of time would end the runs at different steps.
  words.insert(words.end(), {"run.time_limit_s=0", "output.directory=" + o.directory.string(), "--overwrite"});
  const auto start = std::chrono::steady_clock::now();
  const int status = launch(words, o.log, signals);
  o.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::string log = text_of(o.log);
  if (status != 0) {
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 3;
    throw Error(code == 2 ? ExitCode::usage : ExitCode::failure,
                fmt::format("the run on {} ranks ended with exit code {}: {}", ranks, code,
                            log.substr(log.size() > 1000 ? log.size() - 1000 : 0)));
  }
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (is_result(line)) o.results += line + "\n";
    if (line.rfind("stopped by ", 0) == 0) throw RunError(fmt::format("the run on {} ranks was {}", ranks, line));
    const auto at = line.find("process grid ");
    if (at != std::string::npos && o.process_grid.empty())
      o.process_grid = line.substr(at + 13, line.find(',', at) - at - 13);
  }
  if (o.results.empty()) throw RunError(fmt::format("the run on {} ranks printed no results", ranks));
  for (const auto& entry : fs::directory_iterator(o.directory))
    if (entry.path().extension() == ".h5" && !entry.is_symlink())
      o.checkpoints[entry.path().filename().string()] = entry.path();
  return o;
}

/// What of `b` differs from `a`; "same" if nothing does. `details` gets the comparison of the first file that
/// differs.
std::string difference(const Outcome& a, const Outcome& b, const Communicator& comm, std::string& details) {
  if (a.results != b.results)
    details += fmt::format("on {} ranks:\n{}on {} ranks:\n{}", a.ranks, a.results, b.ranks, b.results);
  std::string verdict = a.results == b.results ? "" : "other residual or digest";
  for (const auto& [name, file] : a.checkpoints) {
    const auto other = b.checkpoints.find(name);
    if (other != b.checkpoints.end() && same_bytes(file, other->second)) continue;
    if (verdict.empty()) verdict = name + (other == b.checkpoints.end() ? " is missing" : " differs");
    if (other == b.checkpoints.end()) break;
    details += name + ":\n" + comparison_text(compare_checkpoints(file, other->second, comm));
    break;
  }
  if (verdict.empty() && a.checkpoints.size() != b.checkpoints.size()) verdict = "more files";
  return verdict.empty() ? "same" : verdict;
}

ExitCode report(std::vector<Outcome>& runs, const Communicator& comm) {
  std::string details;
  bool all = true;
  runs.front().verdict = "reference";
  for (std::size_t k = 1; k < runs.size(); ++k) {
    runs[k].verdict = difference(runs.front(), runs[k], comm, details);
    all = all && runs[k].verdict == "same";
  }
  fmt::print("{:>6}  {:16} {:>9}  {:>6}  {}\n", "ranks", "process grid", "seconds", "files", "against the first");
  for (const auto& o : runs)
    fmt::print("{:>6}  {:16} {:>9.2f}  {:>6}  {}\n", o.ranks, o.process_grid, o.seconds, o.checkpoints.size(),
               o.verdict);
  std::string ranks;
  for (const auto& o : runs) ranks += (ranks.empty() ? "" : ", ") + std::to_string(o.ranks);
  fmt::print("{}", all ? runs.front().results : details);
  const std::size_t files = runs.front().checkpoints.size();
  if (all)
    fmt::print("proved: the same bits on {} ranks (residual and digests{})\n", ranks,
               files ? fmt::format(", and {} checkpoint files byte by byte", files)
                     : "; these runs leave no checkpoint files to compare");
  else
    fmt::print("not proved: the runs on {} ranks differ\n", ranks);
  return all ? ExitCode::fine : ExitCode::different;
}

}  // namespace

ExitCode prove_command(MPI_Comm user, const ProveRequest& request) {
  const Communicator comm = Communicator::of(user);
  if (comm.size() != 1) throw UsageError("isohalo prove starts the ranks itself: run it without mpiexec");
  if (request.ranks.size() < 2) throw UsageError("--ranks: give at least two numbers of ranks to compare");
  for (std::size_t k = 0; k < request.ranks.size(); ++k)
    if (std::count(request.ranks.begin(), request.ranks.end(), request.ranks[k]) > 1)
      throw UsageError(
          fmt::format("--ranks: {} ranks are there twice; each run is compared with the others", request.ranks[k]));
  const bool keep = !request.directory.empty();
  std::error_code failure;
  const fs::path temporary = fs::temp_directory_path(failure);
  if (!keep && failure)
    throw UsageError("there is no directory for temporary files (" + failure.message() +
                     "): name one by TMPDIR or --directory");
  const fs::path below =
      fs::absolute(keep ? fs::path(request.directory) : temporary / fmt::format("isohalo_prove_{}", getpid()));
  fs::create_directories(below, failure);
  if (failure || !fs::is_directory(below))
    throw UsageError(fmt::format("cannot make the directory {}{}: name another one by {}", below.string(),
                                 failure ? " (" + failure.message() + ")" : " (there is a file of that name)",
                                 keep ? "--directory" : "TMPDIR or --directory"));
  struct Remover {
    fs::path path;
    ~Remover() {
      std::error_code ignored;
      if (!path.empty()) fs::remove_all(path, ignored);
    }
  } const remover{keep ? fs::path() : below};
  const SignalWatch signals;  // its files go with whatever ends it
  std::vector<Outcome> runs;
  for (int n : request.ranks) runs.push_back(run_on(n, request, below, signals));
  return report(runs, comm);
}

}  // namespace isohalo
