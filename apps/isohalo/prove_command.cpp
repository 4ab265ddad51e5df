/// `isohalo prove INPUT --ranks 1,2,3,6`: runs the input on each number of ranks and compares residuals, digests
/// and every file that a run leaves.

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "apps/isohalo/commands.hpp"
#include "apps/isohalo/compare_report.hpp"
#include "datatypes/printable.hpp"
#include "framework/mpi/communicator.hpp"
#include "framework/run/directory_lock.hpp"
#include "framework/run/signals.hpp"
#include "framework/run/verify.hpp"
#include "framework/run/words.hpp"

namespace isohalo {

namespace {

namespace fs = std::filesystem;

/// The first byte that two files do not have in common, -1 when they are the same.
std::int64_t first_difference(const fs::path& a, const fs::path& b) {
  std::ifstream x(a, std::ios::binary), y(b, std::ios::binary);
  for (const auto* stream : {&x, &y})
    if (!*stream) throw RunError("cannot read " + (stream == &x ? a : b).string());
  std::vector<char> p(1 << 20), q(1 << 20);
  for (std::int64_t at = 0;;) {
    x.read(p.data(), static_cast<std::streamsize>(p.size()));
    y.read(q.data(), static_cast<std::streamsize>(q.size()));
    const auto here = std::min(x.gcount(), y.gcount());
    const auto different = std::mismatch(p.begin(), p.begin() + here, q.begin()).first - p.begin();
    if (different < here || x.gcount() != y.gcount()) return at + different;
    if (here == 0) return -1;
    at += here;
  }
}

/// What differs within two files, as text; or why that cannot be said.
std::string inside(const fs::path& a, const fs::path& b, const Communicator& comm) {
  try {
    if (a.extension() == ".h5") return comparison_text(compare_checkpoints(a, b, comm));
    if (a.extension() == ".txt")
      return digest_logs_text(compare_digest_logs(read_digest_log(a), read_digest_log(b)));
  } catch (const Error& e) {
    return printable(e.what()) + "\n";
  }
  return "";
}

std::string target_of(const fs::path& link) {
  std::error_code error;
  return fs::read_symlink(link, error).string();
}

struct FileDifference {
  std::string what;     ///< such as "step_00000006.h5 differs"
  std::string details;  ///< lines that say where
};

std::optional<FileDifference> file_difference(const std::string& name, const fs::path& a, const fs::path& b,
                                              const Communicator& comm) {
  if (fs::is_symlink(a) || fs::is_symlink(b)) {
    if (target_of(a) == target_of(b)) return std::nullopt;
    return FileDifference{name + " leads elsewhere", fmt::format("{}: to \"{}\" against \"{}\"\n", printable(name),
                                                                 printable(target_of(a)), printable(target_of(b)))};
  }
  if (a.extension() == ".json") return std::nullopt;
  const std::int64_t at = first_difference(a, b);
  if (at < 0) return std::nullopt;
  return FileDifference{name + " differs",
                        fmt::format("{}: {} against {} bytes, first different byte {}\n{}", printable(name),
                                    fs::file_size(a), fs::file_size(b), at, inside(a, b, comm))};
}

/// How the second run's files differ from the first's: none may be missing or additional, all hold the same bytes,
/// links lead to the same place. Only what run metadata (*.json) say may differ. A file that cannot be read as what
/// it should be is a difference. Throws RunError for a file that cannot be read at all.
std::vector<FileDifference> differing_files(const std::map<std::string, fs::path>& a,
                                            const std::map<std::string, fs::path>& b, const Communicator& comm) {
  std::vector<FileDifference> found;
  for (const auto& [name, file] : a) {
    const auto other = b.find(name);
    if (other == b.end())
      found.push_back({name + " is missing", ""});
    else if (const auto d = file_difference(name, file, other->second, comm))
      found.push_back(*d);
  }
  for (const auto& [name, file] : b)
    if (!a.contains(name)) found.push_back({name + " is additional", ""});
  return found;
}

/// What tells the files and links of a directory from others that replace them, by name: number and time.
using Stamps = std::map<std::string, std::string>;

Stamps stamps_of(const fs::path& directory) {
  Stamps stamps;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    struct stat s {};
    if (lstat(entry.path().c_str(), &s) == 0)
      stamps[entry.path().filename().string()] =
          fmt::format("{} {} {}", s.st_ino, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
  }
  return stamps;
}

/// The files and links of a run's directory, by name, but for those that were there before it, its user's. Hidden
/// ones are the run's own business.
std::map<std::string, fs::path> files_left(const fs::path& directory, const Stamps& former) {
  std::map<std::string, fs::path> files;
  const Stamps now = stamps_of(directory);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename().string();
    const auto before = former.find(name);
    if (before != former.end() && now.contains(name) && now.at(name) == before->second) continue;
    if (name[0] != '.' && (entry.is_symlink() || entry.is_regular_file())) files[name] = entry.path();
  }
  return files;
}

/// Runs a program with its output in `log`; its wait status. When a signal asks this one to end, that one ends
/// first.
int launch(const std::vector<std::string>& words, const fs::path& log, const SignalWatch& signals) {
  std::vector<char*> arguments;
  for (const std::string& w : words) arguments.push_back(const_cast<char*>(w.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  unlink(log.c_str());  // whatever is there: a link is not followed
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                                   0666);
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
  std::string ranks_there, process_grid, verdict;  ///< the first two as the run says, such as "2 ranks"
  std::string results;                             ///< the lines "residual = ", "digest NAME = "
  std::map<std::string, fs::path> files;           ///< that it has left, by name
  ExitCode code = ExitCode::fine;
  std::string failure;  ///< how it ended otherwise than it should; empty: it did not
};

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

/// The last lines of a log, indented, so that none looks like one of ours.
std::string end_of(const fs::path& log) {
  std::istringstream all(text_of(log));
  std::vector<std::string> lines;
  for (std::string line; std::getline(all, line);) lines.push_back(line);
  std::string text;
  for (std::size_t k = lines.size() > 20 ? lines.size() - 20 : 0; k < lines.size(); ++k)
    text += "  " + printable(lines[k]) + "\n";
  return text;
}

/// Is this one of the lines with which a run ends, "residual = .." or "digest NAME = .."? The table of phases has a
/// line "digest" as well, of times.
bool is_result(const std::string& line) {
  return line.rfind("residual = ", 0) == 0 || (line.rfind("digest ", 0) == 0 && line.find(" = ") != line.npos);
}

/// Takes from a run's log what it says of itself.
void read_log(Outcome& o) {
  std::istringstream lines(text_of(o.log));
  for (std::string line; std::getline(lines, line);) {
    if (is_result(line)) o.results += line + "\n";
    if (line.rfind("stopped by ", 0) == 0) o.failure = "was " + line;
    const std::string cells = " cells, ", before = ", process grid ", behind = ", imbalance ";
    const auto at = line.rfind(before), end = line.rfind(behind), ranks = line.rfind(cells, at);
    if (at == line.npos || end == line.npos || ranks == line.npos || at > end || !o.process_grid.empty()) continue;
    o.process_grid = line.substr(at + before.size(), end - at - before.size());
    o.ranks_there = line.substr(ranks + cells.size(), at - ranks - cells.size());
  }
  if (o.failure.empty() && o.results.empty()) o.failure = "printed no results";
  if (!o.failure.empty()) o.code = ExitCode::failure;
}

/// Runs the input. That it fails is an outcome, too.
Outcome run_on(int ranks, const ProveRequest& request, const fs::path& below, const SignalWatch& signals) {
  Outcome o;
  o.ranks = ranks;
  o.directory = below / fmt::format("ranks_{}", ranks);
  o.log = below / fmt::format("ranks_{}.log", ranks);
  if (fs::is_symlink(fs::symlink_status(o.directory)))
    throw UsageError(o.directory.string() + " is a symbolic link, which is not followed: remove it");
  std::vector<std::string> words{
      request.mpiexec, "-n",         std::to_string(ranks), fs::read_symlink("/proc/self/exe").string(),
      "run",           request.input};
  words.insert(words.end(), request.overrides.begin(), request.overrides.end());
  // A limit of time would end the runs at different steps.
  words.insert(words.end(), {"run.time_limit_s=0", "output.directory=" + o.directory.string(), "--overwrite"});
  const auto former = stamps_of(o.directory);
  const auto start = std::chrono::steady_clock::now();
  const int status = launch(words, o.log, signals);
  o.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  read_log(o);
  if (status != 0) {
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 3;
    o.code = code == 2 ? ExitCode::usage : ExitCode::failure;
    o.failure = fmt::format("ended with exit code {}", code);
  }
  const bool says = !o.ranks_there.empty();
  const std::string asked = counted(ranks, "rank");  // perhaps "2 ranks x 3 threads"
  if (says ? o.ranks_there != asked && !o.ranks_there.starts_with(asked + " x ") : o.failure.empty()) {
    o.code = ExitCode::failure;
    o.failure = says ? fmt::format("had {}: {} does not start as many as -n says", o.ranks_there, request.mpiexec)
                     : "does not say how many ranks it had";
  }
  o.files = files_left(o.directory, former);
  return o;
}

/// What of `b` differs from `a`; "same" if nothing does. `details` gets where.
std::string difference(const Outcome& a, const Outcome& b, const Communicator& comm, std::string& details) {
  std::vector<std::string> found;
  if (a.results != b.results) {
    found.push_back("other residual or digest");
    details += fmt::format("on {}:\n{}on {}:\n{}", counted(a.ranks, "rank"), a.results, counted(b.ranks, "rank"),
                           b.results);
  }
  for (const FileDifference& d : differing_files(a.files, b.files, comm)) {
    found.push_back(printable(d.what));
    details += fmt::format("on {} against {}: {}\n{}", a.ranks, counted(b.ranks, "rank"), found.back(), d.details);
  }
  if (found.empty()) return "same";
  return found.front() + (found.size() > 1 ? fmt::format(", and {} more", found.size() - 1) : "");
}

void print_table(const std::vector<Outcome>& runs) {
  fmt::print("{:>6}  {:16} {:>9}  {:>6}  {}\n", "ranks", "process grid", "seconds", "files",
             "against the reference");
  for (const auto& o : runs)
    fmt::print("{:>6}  {:16} {:>9.2f}  {:>6}  {}\n", o.ranks, printable(o.process_grid), o.seconds, o.files.size(),
               o.verdict);
}

/// What is wrong with the checkpoints of a run, whose files are those of all others; empty: nothing. The same
/// damage everywhere is no proof.
std::string damage(const Outcome& o, const Communicator& comm) {
  std::string text;
  for (const auto& [name, file] : o.files) {
    if (file.extension() != ".h5" || fs::is_symlink(file)) continue;
    try {
      for (const auto& problem : verify_checkpoint(file, comm).problems)
        text += printable(name + ": " + problem) + "\n";
    } catch (const Error& e) {
      text += printable(e.what()) + "\n";
    }
  }
  return text;
}

/// What was compared byte by byte, in words.
std::string files_text(const Outcome& o) {
  std::int64_t checkpoints = 0, others = 0;
  for (const auto& [name, file] : o.files)
    if (!fs::is_symlink(file) && file.extension() != ".json") ++(file.extension() == ".h5" ? checkpoints : others);
  std::string text = checkpoints ? counted(checkpoints, "checkpoint file") : "";
  if (others) text += (text.empty() ? "" : " and ") + counted(others, "other file");
  if (!text.empty()) text = ", and " + text + " byte by byte";
  return text + (checkpoints ? "" : "; these runs leave no checkpoint files to compare");
}

ExitCode report(std::vector<Outcome>& runs, const Communicator& comm) {
  std::string details, ranks, failed;
  const Outcome *reference = nullptr, *failure = nullptr;  // the first that came to its end, that did not
  bool same = true;
  for (auto& o : runs) {
    if (o.failure.empty()) ranks += (ranks.empty() ? "" : ", ") + std::to_string(o.ranks);
    if (!o.failure.empty()) {
      o.verdict = printable(o.failure);
      failed += fmt::format("the run on {} {}:\n{}", counted(o.ranks, "rank"), o.verdict, end_of(o.log));
      if (!failure) failure = &o;
    } else if (!reference) {
      reference = &o;
      o.verdict = "reference";
    } else {
      o.verdict = difference(*reference, o, comm, details);
      same = same && o.verdict == "same";
    }
  }
  const std::string damaged = same && !failure ? damage(runs.front(), comm) : "";
  print_table(runs);
  if (!damaged.empty()) {
    fmt::print("{}not proved: the runs on {} ranks leave the same damaged checkpoints\n", damaged, ranks);
    return ExitCode::different;
  }
  if (same && !failure) {
    fmt::print("{}proved: the same bits on {} ranks (residual and digests{})\n", runs.front().results, ranks,
               files_text(runs.front()));
    return ExitCode::fine;
  }
  fmt::print("{}", details);
  std::fflush(stdout);
  fmt::print(stderr, "{}", failed);
  if (!same) {
    fmt::print("not proved: the runs on {} ranks differ\n", ranks);
    return ExitCode::different;
  }
  throw Error(failure->code,
              fmt::format("nothing is proved: {}the run on {} {}", reference ? "" : "every run failed, ",
                          counted(failure->ranks, "rank"), failure->failure));
}

/// A directory that nobody else can have made.
fs::path own_directory(const fs::path& above) {
  std::string name = fs::absolute(above / "isohalo_prove_XXXXXX").string();
  if (!mkdtemp(name.data()))
    throw UsageError("cannot make a directory in " + above.string() + " (" + std::strerror(errno) +
                     "): name one by TMPDIR or --directory");
  return name;
}

}  // namespace

ExitCode prove_command(MPI_Comm user, const ProveRequest& request) {
  const Communicator comm = Communicator::of(user);
  if (comm.size() != 1) throw UsageError("isohalo prove starts the ranks itself: run it without mpiexec");
  if (request.ranks.size() < 2) throw UsageError("--ranks: give at least two numbers of ranks to compare");
  for (std::size_t k = 0; k < request.ranks.size(); ++k)
    if (std::count(request.ranks.begin(), request.ranks.end(), request.ranks[k]) > 1)
      throw UsageError(fmt::format("--ranks: the number {} is there twice; each run is compared with the others",
                                   request.ranks[k]));
  if (access(request.input.c_str(), R_OK) != 0)  // else every run would say so
    throw UsageError("cannot read the input file " + request.input);
  const bool keep = !request.directory.empty();
  std::error_code failure;
  const fs::path temporary = fs::temp_directory_path(failure);
  if (!keep && failure)
    throw UsageError("there is no directory for temporary files (" + failure.message() +
                     "): name one by TMPDIR or --directory");
  const fs::path below = keep ? fs::absolute(request.directory) : own_directory(temporary);
  fs::create_directories(below, failure);
  if (failure || !fs::is_directory(below))
    throw UsageError(fmt::format("cannot make the directory {}{}: name another one by --directory", below.string(),
                                 failure ? " (" + failure.message() + ")" : " (there is a file of that name)"));
  struct Remover {
    fs::path path;
    ~Remover() {
      std::error_code ignored;
      if (!path.empty()) fs::remove_all(path, ignored);
    }
  } const remover{keep ? fs::path() : below};
  const DirectoryLock lock(below);  // the logs of another would be mixed with ours
  const SignalWatch signals;        // its files go with whatever ends it
  std::vector<Outcome> runs;
  for (int n : request.ranks) runs.push_back(run_on(n, request, below, signals));
  return report(runs, comm);
}

}  // namespace isohalo
