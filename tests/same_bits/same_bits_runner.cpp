/// Runs the inputs of the same-bits test inside one launch and compares the files they leave, byte by byte.
///
///   same_bits_runner reference CASES DIRECTORY      one rank: leaves reference files and results
///   same_bits_runner compare CASES DIRECTORY TAG [KEY=VALUE ..]
///                                                   any ranks: process grids, depths, tolerances, restart; with
///                                                   these keys, which must not change a bit

#include <fmt/format.h>
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <Kokkos_Core.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "datatypes/error.hpp"
#include "framework/domain/decomposition.hpp"
#include "framework/mpi/communicator.hpp"
#include "framework/run/run.hpp"
#include "stencils/solvers.hpp"

namespace isohalo {
namespace {

namespace fs = std::filesystem;

struct TestCase {
  std::string name, input, extent;
  std::vector<std::string> overrides;
};

std::vector<TestCase> read_cases(const fs::path& file) {
  std::vector<TestCase> cases;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    TestCase c;
    words >> c.name >> c.input >> c.extent;
    for (std::string w; words >> w;) c.overrides.push_back(w);
    cases.push_back(c);
  }
  if (cases.empty()) throw UsageError("no cases in " + file.string());
  return cases;
}

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw RunError("missing file " + file.string());
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

std::string result_text(const RunResult& r) {
  std::string text =
      fmt::format("step {} S {:a} residual {:a} at {}", r.step, r.change_sum, r.residual, r.residual_step);
  for (const auto& [name, digest] : r.digests) text += fmt::format(" {}={}", name, digest);
  return text + "\n";
}

std::int64_t changed_at(const fs::path& file) {
  struct stat s {};
  stat(file.c_str(), &s);
  return static_cast<std::int64_t>(s.st_mtime);
}

/// The steps of the checkpoints in a directory, in order.
std::vector<std::string> checkpoints(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& e : fs::directory_iterator(directory))
    if (e.path().extension() == ".h5" && !e.is_symlink()) names.push_back(e.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class Runner {
 public:
  Runner(fs::path directory, std::string tag, std::vector<std::string> keys)
      : directory_(std::move(directory)),
        tag_(std::move(tag)),
        keys_(std::move(keys)),
        comm_(Communicator::of(MPI_COMM_WORLD)) {}

  void reference(const TestCase& c) {
    const fs::path out = directory_ / "reference" / c.name;
    const RunResult r = run(c, out, {}, "");
    std::ofstream(out / "result.txt") << result_text(r);
  }

  void compare(const TestCase& c) {
    reference_ = directory_ / "reference" / c.name;
    expected_ = bytes_of(reference_ / "result.txt");
    if (c.extent == "alone") {
      attempt(c, {}, "");
    } else {
      int turn = 0;
      // HDF5 waits in MPI's own way, up to a second per checkpoint where ranks share cores: there every fourth run
      // leaves files, and the others must give the same steps, sums and digests.
      const bool crowded = comm_.oversubscribed();
      const char* const tolerances[] = {"0.0", "0.02", "0.35"};
      for (const std::string& grid : process_grids(c)) {
        const int first = c.extent == "full" ? 1 : turn % 4 + 1, last = c.extent == "full" ? 4 : first;
        for (int depth = first; depth <= last; ++depth, ++turn) {
          std::vector<std::string> more{"parallel.process_grid=" + grid,
                                        fmt::format("parallel.halo_depth={}", depth),
                                        fmt::format("parallel.alignment_tolerance={}", tolerances[turn % 3])};
          if (turn % 2 && !exact(c)) more.push_back("parallel.reduction=binary_tree");
          if (turn % 3 == 1) more.push_back("parallel.tile=" + small_tile(c));
          with_files_ = !crowded || (turn + turn / 4) % 4 == 0;  // each depth in turn
          attempt(c, more, "");
          with_files_ = true;
        }
      }
    }
    restart_half_way(c);
  }

  int failures() const { return failures_; }
  int runs() const { return runs_; }
  int refused() const { return refused_; }
  /// Runs whose files were compared; on rank 0.
  int compared() const { return compared_; }

 private:
  RunResult run(const TestCase& c, const fs::path& out, const std::vector<std::string>& more,
                const std::string& restart) {
    RunRequest request;
    request.input = c.input;
    request.overrides = c.overrides;
    request.overrides.insert(request.overrides.end(), more.begin(), more.end());
    request.overrides.insert(request.overrides.end(), keys_.begin(), keys_.end());
    request.overrides.push_back("output.directory=" + out.string());
    request.overrides.push_back("output.picture_every=0");
    request.overwrite = true;
    request.quiet = true;
    request.restart = restart;
    ++runs_;
    return run_input(MPI_COMM_WORLD, request, shipped_solvers());
  }

  static bool exact(const TestCase& c) {
    return std::find(c.overrides.begin(), c.overrides.end(), "parallel.reduction=\"exact\"") != c.overrides.end();
  }

  static std::vector<std::int64_t> shape_of(const TestCase& c) {
    return Config(bytes_of(c.input), c.input, c.overrides).integers("domain.shape", {});
  }
  /// For steps that follow an exchange together: some cells of each dimension.
  static std::string small_tile(const TestCase& c) {
    std::string text;
    for (const std::int64_t n : shape_of(c))
      text += (text.empty() ? "[" : ",") + std::to_string(std::min<std::int64_t>(n, 3));
    return text + "]";
  }
  /// Every process grid that the case's shape and this rank count allow.
  std::vector<std::string> process_grids(const TestCase& c) const {
    const auto shape = shape_of(c);
    std::vector<std::string> texts;
    const auto collect = [&]<int D>() {
      Index<D> n;
      for (int j = 0; j < D; ++j) n[j] = shape[static_cast<std::size_t>(j)];
      for (const auto& g : all_process_grids<D>(n, comm_.size())) {
        std::string text = "[";
        for (int j = 0; j < D; ++j) text += (j ? "," : "") + std::to_string(g[j]);
        texts.push_back(text + "]");
      }
    };
    switch (shape.size()) {
      case 1:
        collect.operator()<1>();
        break;
      case 2:
        collect.operator()<2>();
        break;
      case 3:
        collect.operator()<3>();
        break;
      default:
        collect.operator()<4>();
    }
    return texts;
  }

  void attempt(const TestCase& c, std::vector<std::string> more, const std::string& restart) {
    if (!with_files_) more.insert(more.end(), {"output.checkpoint_every=0", "output.final_checkpoint=false"});
    const fs::path out = directory_ / tag_ / fmt::format("{}_{}", c.name, runs_);
    std::string what = c.name + (restart.empty() ? "" : " restarted");
    for (const auto& m : more) what += " " + m;
    try {
      const RunResult r = run(c, out, more, restart);
      if (comm_.rank() == 0) check(what, out, result_text(r));
    } catch (const Error& e) {
      // A depth that reaches beyond the adjacent rank is refused by name; the geometry tests cover it.
      if (std::string(e.what()).rfind("halo depth", 0) == 0 && e.code() == ExitCode::usage) {
        ++refused_;
        return;
      }
      fail(what + ": " + e.what());
    }
    if (comm_.rank() == 0) fs::remove_all(out);
    comm_.barrier();
  }

  void check(const std::string& what, const fs::path& out, const std::string& result) {
    if (result != expected_) fail(what + ": result " + result + "  expected " + expected_);
    if (!with_files_) return;
    ++compared_;
    auto expected_files = checkpoints(reference_);
    if (restarted_) expected_files.erase(expected_files.begin());
    if (checkpoints(out) != expected_files) fail(what + ": other files than the reference has");
    for (const auto& name : checkpoints(out)) {
      if (bytes_of(out / name) != bytes_of(reference_ / name))
        fail(what + ": " + name + " differs from the reference");
      if (changed_at(out / name) <= changed_at(reference_ / name))
        fail(what + ": written in the same second as the reference");
    }
  }

  /// Continues the one-rank reference from its first checkpoint on these ranks.
  void restart_half_way(const TestCase& c) {
    restarted_ = true;
    const bool stops = std::any_of(c.overrides.begin(), c.overrides.end(),
                                   [](const auto& o) { return o.rfind("run.stop_residual", 0) == 0; });
    std::vector<std::string> more{"output.digest_every=5"};
    if (!stops) more.push_back("run.residual_every=3");  // it decides where a run can stop
    attempt(c, more, (reference_ / checkpoints(reference_).front()).string());
    restarted_ = false;
  }

  void fail(const std::string& text) {
    if (comm_.rank() != 0) return;
    fmt::print(stderr, "FAILED: {}\n", text);
    ++failures_;
  }

  fs::path directory_, reference_;
  std::string tag_, expected_;
  std::vector<std::string> keys_;
  Communicator comm_;
  int failures_ = 0, runs_ = 0, refused_ = 0, compared_ = 0;
  bool restarted_ = false, with_files_ = true;
};

int run_all(int argc, char** argv) {
  if (argc < 4) throw UsageError("usage: same_bits_runner reference|compare CASES DIRECTORY [TAG [KEY=VALUE ..]]");
  const std::string mode = argv[1];
  Runner runner(argv[3], argc > 4 ? argv[4] : "", {argv + std::min(argc, 5), argv + argc});
  for (const TestCase& c : read_cases(argv[2])) mode == "reference" ? runner.reference(c) : runner.compare(c);
  if (mode == "reference") sleep(2);  // what follows is written in another second
  const std::int64_t failures = Communicator::of(MPI_COMM_WORLD).max(runner.failures());
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0)
    fmt::print("{} runs, {} with files, {} refused as too deep, {} failed\n", runner.runs(), runner.compared(),
               runner.refused(), failures);
  return failures || 2 * runner.refused() > runner.runs() ? 1 : 0;  // most must really have run
}

}  // namespace
}  // namespace isohalo

int main(int argc, char** argv) {
  int threads = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
  int no_arguments = 0;
  Kokkos::initialize(no_arguments, nullptr);
  int code = 2;
  try {
    code = isohalo::run_all(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "FAILED: {}\n", e.what());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  Kokkos::finalize();
  MPI_Finalize();
  return code;
}
