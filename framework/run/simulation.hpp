#pragma once
/// The life of one run. Private to framework/run: use `run_input`.

#include <chrono>
#include <memory>
#include <optional>
#include <set>

#include "datatypes/error.hpp"
#include "framework/io/checkpoint.hpp"
#include "framework/io/digest_log.hpp"
#include "framework/run/initial.hpp"
#include "framework/run/output_directory.hpp"
#include "framework/run/progress_display.hpp"
#include "framework/run/run.hpp"
#include "framework/run/settings.hpp"
#include "framework/run/signals.hpp"

namespace isohalo {

/// Throws UsageError: a checkpoint under the name of another step is not believed.
void refuse_other_step(const std::filesystem::path& file, std::int64_t of_name, const StoredCheckpoint& stored);

template <int D>
class Simulation {
 public:
  /// Reads the whole configuration and cuts the grid; all errors of the input come from here, before memory is
  /// taken.
  Simulation(const Communicator& comm, const RunRequest& request, Config& config, const SolverKinds& kinds);
  RunResult run();
  /// Throws for whatever `run` would refuse before its first step, but for the values of fields: files of initial
  /// fields, the output directory, the checkpoint of a restart. Writes nothing and takes no memory. Collective.
  void validate();
  /// The text of `--plan`; such a simulation cannot run. Collective.
  std::string plan() const;
  /// Its halo exchanges, on as many ranks; as `plan`.
  std::vector<HaloTraffic> halos() const;

 private:
  using Clock = std::chrono::steady_clock;

  int ranks() const;  ///< of the run, or of the plan for one
  void read_config(const SolverKinds& kinds);
  void check_depth();
  void check_memory() const;
  void report_plan() const;
  void check_files() const;
  void check_restart();

  void prepare_directory();
  void begin_outputs();
  std::optional<StoredCheckpoint> newest_there();
  void refuse_other_line(const CheckpointMeta& newest, bool but_of_fields = false) const;
  void report_newer() const;
  std::string other_keys(const std::string& stored, bool but_of_fields = false) const;
  void fill_initial();
  void restart();
  void begin(ReductionMethod method);
  void restore(const std::filesystem::path& file, const StoredCheckpoint& stored);
  void skip(std::int64_t step, const Error& e);
  void refuse_other_physics(const std::filesystem::path& file, const std::string& stored,
                            bool but_of_fields = false) const;
  static void refuse_damaged(const std::filesystem::path& file, const CheckpointMeta& m);
  void refuse_other_method(const std::filesystem::path& file, const std::string& stored) const;

  void step_loop();
  double advance_to(std::int64_t next);
  bool converged();
  std::int64_t next_event(std::int64_t last) const;
  double stepping_s() const;
  double outputs_left_s() const;
  void show_progress();
  void evaluate(std::int64_t step, double sum);
  void check_finite(std::int64_t step);
  void poll();
  void outputs(bool last, bool wanted);
  void checkpoint();
  void accompany(const CheckpointMeta& m) const;
  void picture();
  void append_digests(const std::vector<FieldStatistics>& statistics);
  CheckpointMeta meta() const;
  std::string run_metadata_text(const std::vector<PhaseTime>& phases) const;
  RunResult finish();
  void report_end() const;

  Communicator comm_;
  const RunRequest& request_;
  Config& config_;
  GridSettings<D> grid_;
  ParallelSettings<D> parallel_;
  RunSettings run_;
  OutputSettings output_;
  std::unique_ptr<SolverModel<D>> model_;
  std::vector<InitialField<D>> initial_;
  std::optional<InitialField<D>> source_;
  std::optional<CartesianDomain<D>> domain_;
  std::optional<OutputDirectory> directory_;
  std::set<std::int64_t> unusable_;            ///< checkpoints there that were found to be damaged; on rank 0
  std::optional<DigestLogWriter> digest_log_;  ///< on rank 0, when there are steps to do
  int depth_ = 1;

  std::unique_ptr<Solver<D>> solver_;
  std::string physics_;
  std::int64_t step_ = 0, first_step_ = 0;
  double change_sum_ = 0, residual_ = 0;
  std::int64_t residual_step_ = 0;
  std::int64_t written_step_ = -1;
  std::optional<StopTest> stop_test_;  ///< of the latest step, if it was tested
  Clock::time_point began_ = Clock::now(), loop_began_ = began_;
  double stepped_s_ = 0;  ///< in the whole stepping loop, without checkpoints and pictures
  bool over_time_ = false, checkpoint_wanted_ = false;  // agreed by all ranks, as what follows
  int stop_signal_ = 0;
  std::int64_t next_poll_ = 0, poll_steps_ = 1;
  std::optional<SignalWatch> signals_;
  PhaseClock phases_;
  std::optional<ProgressDisplay> progress_;
};

}  // namespace isohalo
