#pragma once
/// The life of one run. Private to framework/run: use `run_input`.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>

#include "datatypes/error.hpp"
#include "framework/io/checkpoint.hpp"
#include "framework/io/digest_log.hpp"
#include "framework/run/input.hpp"
#include "framework/run/output_directory.hpp"
#include "framework/run/progress_display.hpp"
#include "framework/run/run.hpp"
#include "framework/run/signals.hpp"

namespace isohalo {

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

 private:
  using Clock = std::chrono::steady_clock;

  void check_memory() const;
  bool talks() const { return comm_.rank() == 0 && !request_.quiet; }

  double wall_s() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

  void fill_initial();
  void begin();
  void restart(bool check);
  bool usable(std::int64_t step, const std::function<void()>& work);
  void restore(const std::filesystem::path& file, const StoredCheckpoint& stored);
  std::string other_keys(const std::string& stored) const;
  void refuse_other(const std::filesystem::path& file, const CheckpointMeta& m) const;
  std::optional<StoredCheckpoint> newest_there();
  void refuse_other_line(const std::optional<StoredCheckpoint>& newest) const;
  void begin_outputs();
  void report_newer() const;

  void step_loop();
  double advance_to(std::int64_t next);
  bool converged();
  std::int64_t next_event() const;
  double stepping_s() const;
  double outputs_left_s() const;
  void show_progress();
  void evaluate(double sum);
  void poll();
  void outputs(bool last, bool wanted);
  void checkpoint();
  void accompany(const CheckpointMeta& m) const;
  void picture();
  void append_digests();
  CheckpointMeta meta() const;
  std::string run_metadata(const std::vector<PhaseTime>& phases) const;
  RunResult finish();
  void report_end() const;

  Communicator comm_;
  const RunRequest& request_;
  Config& config_;
  Input<D> in_;
  std::optional<CartesianDomain<D>> domain_;
  OutputDirectory directory_;
  std::set<std::int64_t> unusable_;            ///< checkpoints there that were found to be damaged; on rank 0
  std::optional<DigestLogWriter> digest_log_;  ///< on rank 0, when there are steps to do

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
