#include "framework/run/simulation.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <limits>

#include "datatypes/error.hpp"
#include "datatypes/printable.hpp"
#include "framework/halo/faces.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/run/cell_text.hpp"
#include "framework/run/machine.hpp"
#include "framework/run/plan.hpp"
#include "framework/run/words.hpp"

namespace isohalo {

namespace fs = std::filesystem;

template <int D>
Simulation<D>::Simulation(const Communicator& comm, const RunRequest& request, Config& config,
                          const SolverKinds& kinds)
    : comm_(comm),
      request_(request),
      config_(config),
      in_(checked_input<D>(config, kinds, request.input, comm.size())),
      directory_(in_.output.directory) {
  domain_.emplace(comm_.get(), in_.grid.shape, in_.domain_options());
  check_memory();
  checked_topology(in_);
  if (!request_.quiet) warn_of_many_threads(comm_);
  if (!talks()) return;
  const auto& blocks = domain_->decomposition();
  fmt::print("{}: {} cells, {}, process grid {}, imbalance {:.3f}, halo depth {}\n", printable(request_.input),
             shape_string<D>(in_.grid.shape), ranks_text(comm_.size()), fmt::join(blocks.grid(), " x "),
             blocks.imbalance(), fmt::join(in_.depths(blocks), " or "));
  std::fflush(stdout);
}

template <int D>
void Simulation<D>::check_memory() const {
  const double node = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  const int depth = in_.deepest(domain_->decomposition());
  const auto memory = [&](int steps) { return in_.memory(domain_->decomposition().largest(), steps); };
  const double rank = memory(depth);
  const double need = rank * comm_.ranks_on_node();
  constexpr double gib = 1 << 30;
  // Nodes may differ: the tightest one decides for all.
  const auto permille = static_cast<std::int64_t>(std::min(need / node * 1000, 1e15));
  if (comm_.max(permille) <= 1000) return;
  const auto fits =
      comm_.min(static_cast<std::int64_t>(largest_depth(memory, depth, node / comm_.ranks_on_node())));
  throw UsageError(fmt::format(
      "the fields of a grid of {} cells need {:.1f} GiB per rank; {} on this node need {:.1f} GiB of {:.1f}: use a "
      "smaller domain.shape{} or more nodes",
      shape_string<D>(in_.grid.shape), rank / gib, counted(comm_.ranks_on_node(), "rank"), need / gib, node / gib,
      fits > 0 ? fmt::format(", parallel.halo_depth = {} at most", fits) : std::string()));
}

template <int D>
void Simulation<D>::validate() {
  in_.check_files(comm_);
  in_.model->check_coefficients(*domain_);
  if (const std::string time = time_text(in_); talks() && !time.empty()) fmt::print("{}\n", time);
  on_root(comm_, [&] { directory_.check_usable(!request_.restart.empty() || request_.overwrite); });
  if (request_.restart.empty()) return;
  physics_ = physics_text(config_);
  restart(true);
  on_root(comm_, [&] { refuse_other_line(newest_there()); });
}

template <int D>
RunResult Simulation<D>::run() {
  if (request_.watch_signals) signals_.emplace();
  on_root(comm_, [&] { directory_.claim(!request_.restart.empty() || request_.overwrite); });
  {
    const PhaseScope scope(&phases_, Phase::start);
    in_.check_files(comm_);  // before memory is taken, as all that follows
    in_.model->check_coefficients(*domain_);
    agreed(comm_, [&] { solver_ = in_.solver(*domain_); });
    solver_->time_phases(&phases_);
    fill_initial();
    if (request_.restart.empty())
      begin();
    else
      restart(false);
  }
  begin_outputs();
  const PhaseScope scope(&phases_, Phase::other);
  step_loop();
  return finish();
}

template <int D>
void Simulation<D>::fill_initial() {
  const auto fields = solver_->fields();
  for (std::size_t k = 0; k < in_.initial.size(); ++k)
    if (request_.restart.empty() || request_.restart == "auto" || in_.initial[k].from_file())
      in_.initial[k].fill(*domain_, fields[k], config_);
  if (in_.source) in_.source->fill(*domain_, *solver_->source(), config_);
  const auto coefficients = solver_->coefficients();
  for (std::size_t k = 0; k < coefficients.size(); ++k)
    in_.model->coefficients()[k]->fill(*domain_, coefficients[k], config_);
  physics_ = physics_text(config_);
  residual_ = change_sum_ = std::numeric_limits<double>::quiet_NaN();  // none yet
}

/// Before the first step, the initial fields in place: the solver forms its products, by the method that is then
/// known, if it is a checkpoint's.
template <int D>
void Simulation<D>::begin() {
  solver_->reduce_by(in_.parallel.reduction);
  solver_->set_time(0, in_.model->dt());
  solver_->start();
}

template <int D>
std::int64_t Simulation<D>::next_event() const {
  std::int64_t next = in_.run.steps;
  const std::array<std::int64_t, 4> all{in_.run.residual_every, in_.output.checkpoint_every,
                                        in_.output.picture_every, in_.output.digest_every};
  for (const std::int64_t every : all)  // (nvcc 13.0 loses such a list within the loop of a template)
    if (every > 0) next = std::min(next, (step_ / every + 1) * every);
  return next;
}

template <int D>
void Simulation<D>::step_loop() {
  loop_began_ = Clock::now();
  progress_.emplace(talks(), step_, in_.run.steps, static_cast<double>(domain_->global().cells()),
                    in_.run.stop_residual > 0);
  bool stop = step_ > 0 && converged();  // a restart from the state in which the run stopped
  while (step_ < in_.run.steps && !stop) {
    evaluate(advance_to(next_event()));
    const bool limit = over_time_ || stop_signal_ != 0;
    stop = converged() || limit;
    show_progress();
    outputs(stop || step_ == in_.run.steps, limit || checkpoint_wanted_);
    checkpoint_wanted_ = false;
  }
  progress_->close();
  stepped_s_ = stepping_s();
  if (step_ != first_step_) return;
  on_root(comm_, [&] { directory_.refuse_if_lost(); });
  if (step_ == 0 && in_.output.picture_every > 0) picture();  // of run.steps = 0, to see the initial field
  if (in_.output.final_checkpoint) checkpoint();              // so that the directory has it
}

/// Steps on to `next`, in portions between which signals and the time limit are looked for; ends earlier, after a
/// step with a residual, when there is a reason. Returns the change sum of the last step.
template <int D>
double Simulation<D>::advance_to(std::int64_t next) {
  for (;;) {
    const bool early = over_time_ || stop_signal_ != 0 || checkpoint_wanted_;
    const std::int64_t to = early ? step_ + 1 : std::min(next, std::max(next_poll_, step_ + 1));
    const bool last = early || to == next;
    const double sum = solver_->advance(to - step_, last);
    step_ = to;
    progress_->stepped(step_, stepping_s());
    if (step_ >= next_poll_) poll();
    if (last) return sum;
  }
}

/// All ranks agree on what any of them was asked for, and on the step after which they look again, about a
/// twentieth of a second away.
template <int D>
void Simulation<D>::poll() {
  const double each = stepping_s() / static_cast<double>(std::max<std::int64_t>(1, step_ - first_step_));
  const double affordable = std::min(0.05 / std::max(each, 1e-9), 1e9);
  const bool over = in_.run.time_limit_s > 0 && wall_s() >= in_.run.time_limit_s;
  std::int64_t most[4] = {over, signals_ ? signals_->stop_signal() : 0,
                          signals_ && signals_->take_checkpoint_request(), -static_cast<std::int64_t>(affordable)};
  comm_.allreduce(most, 4, MPI_INT64_T, MPI_MAX);
  over_time_ = over_time_ || most[0] != 0;
  stop_signal_ = static_cast<int>(most[1]);
  checkpoint_wanted_ = checkpoint_wanted_ || most[2] != 0;
  // Not between the steps of a time tile, or there would be none on large grids.
  const std::int64_t together = std::min(in_.deepest(domain_->decomposition()), 16);
  poll_steps_ = std::clamp<std::int64_t>(-most[3], together, std::max(together, 2 * poll_steps_));
  poll_steps_ -= poll_steps_ % together;
  next_poll_ = step_ + poll_steps_;
}

template <int D>
bool Simulation<D>::converged() {
  const bool tested = step_ == in_.run.steps || (in_.run.residual_every > 0 && step_ % in_.run.residual_every == 0);
  stop_test_.reset();
  if (tested && in_.run.stop_residual > 0) stop_test_ = solver_->stop_test(in_.run.stop_residual, residual_);
  return stop_test_ && stop_test_->reached;
}

/// Time in the stepping loop so far, without checkpoints and pictures, nor the wait for whoever reads the progress.
template <int D>
double Simulation<D>::stepping_s() const {
  double seconds = std::chrono::duration<double>(Clock::now() - loop_began_).count();
  for (const Phase p : {Phase::checkpoint, Phase::picture, Phase::progress}) seconds -= phases_.seconds(p);
  return seconds;
}

/// What the checkpoints and pictures from this step on will take, by what those before took.
template <int D>
double Simulation<D>::outputs_left_s() const {
  const auto times = [&](std::int64_t every) {
    return every > 0 ? in_.run.steps / every - (step_ - 1) / every : 0;
  };
  const std::int64_t every = in_.output.checkpoint_every;
  const bool one_more = in_.output.final_checkpoint && (every == 0 || in_.run.steps % every != 0);
  return static_cast<double>(times(every) + one_more) * phases_.seconds_each(Phase::checkpoint) +
         static_cast<double>(times(in_.output.picture_every)) * phases_.seconds_each(Phase::picture);
}

template <int D>
void Simulation<D>::show_progress() {
  const double dt = in_.model->dt();
  Progress p{.step = step_,
             .time = static_cast<double>(step_) * dt,
             .dt = dt,
             .residual = residual_,
             .measure{},
             .stepping_s = stepping_s(),
             .outputs_left_s = outputs_left_s(),
             .limit_left_s = std::numeric_limits<double>::infinity()};
  if (stop_test_ && stop_test_->name != StopTest().name)
    p.measure = fmt::format("{} = {:.6e}", stop_test_->name, stop_test_->value);
  if (in_.run.time_limit_s > 0) p.limit_left_s = in_.run.time_limit_s - wall_s();
  const PhaseScope scope(&phases_, Phase::progress);
  progress_->show(p);
}

template <int D>
void Simulation<D>::evaluate(double sum) {
  change_sum_ = sum;
  residual_ = std::sqrt(sum / static_cast<double>(domain_->global().cells()));
  residual_step_ = step_;
  // A NaN or infinity in a field that was finite always shows in the change sum.
  if (std::isfinite(sum)) return;
  for (const auto& f : solver_->fields()) {
    const std::int64_t at = field_statistics(*domain_, f.array, f.face).first_not_finite;
    if (at < 0) continue;
    progress_->close();
    std::string advice = in_.model->advice_not_finite();
    if (in_.grid.has_boundary_expression()) {
      const std::string look = "look whether the expressions of domain.boundary are finite";
      const bool step_first = advice.starts_with("use a smaller step");  // the likelier cause
      advice = advice.empty() ? look : step_first ? advice + ", or " + look : look + ", or " + advice;
    }
    throw RunError(fmt::format(
        "field \"{}\" is NaN or infinite, found at step {}, first at {}{}{}{}", f.name, step_,
        cell_text<D>(field_domain(*domain_, f.face).global(), at, f.face), advice.empty() ? "" : ": ", advice,
        written_step_ >= 0 || first_step_ > 0 ? "; checkpoints of earlier steps are intact" : ""));
  }
}

template <int D>
RunResult Simulation<D>::finish() {
  RunResult r{step_, change_sum_, residual_, residual_step_, {}, stop_signal_, 0};
  const double updates = static_cast<double>(domain_->global().cells()) * static_cast<double>(step_ - first_step_);
  double seconds = comm_.rank() == 0 ? stepped_s_ : 0;  // the others wait for the printing of rank 0
  comm_.allreduce(&seconds, 1, MPI_DOUBLE, MPI_MAX);
  r.rate = seconds > 0 ? updates / seconds / 1e6 : 0;
  {
    const PhaseScope scope(&phases_, Phase::digest);
    for (const auto& f : solver_->fields())
      r.digests.emplace_back(f.name, hex_digest(field_statistics(*domain_, f.array, f.face).digest));
  }
  if (in_.run.stop_residual == 0 && step_ > first_step_) stop_test_ = solver_->stop_test(0, residual_);
  const auto table = phases_.table(comm_);
  if (!talks()) return r;
  report_end();
  fmt::print("{}", phase_table_text(table));
  if (written_step_ == step_) fmt::print("checkpoint = {}\n", printable(directory_.checkpoint(step_).string()));
  if (in_.output.picture_every > 0 && step_ % in_.output.picture_every == 0 && (step_ > first_step_ || step_ == 0))
    fmt::print("picture = {}\n", printable(directory_.picture(in_.output.picture_field, step_).string()));
  if (step_ > first_step_) {
    const std::string sweeps = solver_->sweeps();
    fmt::print("sweeps = {} an exchange{}\n", counted(solver_->depth(), "step"),
               sweeps.empty() ? sweeps : ", " + sweeps);
    fmt::print("exchange = {}\n", solver_->exchange().text());
  }
  fmt::print("rate = {:.1f} M updates/s\nresidual = {:.17g}\n", r.rate, r.residual);
  for (const auto& [name, digest] : r.digests) fmt::print("digest {} = {}\n", name, digest);
  std::fflush(stdout);
  return r;
}

/// Why the run ends where it does, and what its residual is.
template <int D>
void Simulation<D>::report_end() const {
  if (step_ == first_step_) fmt::print("nothing to do: step {} of {} is reached\n", step_, in_.run.steps);
  if (step_ < in_.run.steps && (stop_signal_ || over_time_))
    fmt::print("stopped by {} at step {} of {}\n", stop_signal_ ? signal_name(stop_signal_) : "the time limit",
               step_, in_.run.steps);
  if (residual_step_ > 0)
    fmt::print("the residual of step {} is the root mean square over the cells of {}\n", residual_step_,
               solver_->residual_of());
  if (!stop_test_) return;
  if (in_.run.stop_residual > 0)
    fmt::print("{}: {} = {} is {} run.stop_residual = {}\n",
               stop_test_->reached ? fmt::format("converged at step {}", step_)
                                   : fmt::format("not converged after {} steps", step_),
               stop_test_->name, stop_test_->value, stop_test_->reached ? "at most" : "above",
               in_.run.stop_residual);
  else if (stop_test_->name != StopTest().name)
    fmt::print("{} = {}\n", stop_test_->name, stop_test_->value);
}

#define ISOHALO_INSTANTIATE(D) template class Simulation<D>;
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
