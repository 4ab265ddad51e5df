#include "framework/run/simulation.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "datatypes/error.hpp"
#include "datatypes/printable.hpp"
#include "framework/halo/halo_regions.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/run/cell_text.hpp"
#include "framework/run/input.hpp"
#include "framework/run/plan.hpp"

namespace isohalo {

namespace fs = std::filesystem;

template <int D>
Simulation<D>::Simulation(const Communicator& comm, const RunRequest& request, Config& config,
                          const SolverKinds& kinds)
    : comm_(comm), request_(request), config_(config) {
  read_config(kinds);
  if (request_.plan) return;
  domain_.emplace(
      comm_.get(), grid_.shape,
      DomainOptions<D>{grid_.boundary.periodic(), parallel_.process_grid, parallel_.alignment_tolerance, {}});
  depth_ = std::min(parallel_.halo_depth.value_or(1), model_->deepest());
  check_memory();
  check_depth();
  directory_.emplace(output_.directory);
  if (!request_.quiet && comm_.rank() == 0) report_plan();
}

template <int D>
int Simulation<D>::ranks() const {
  return request_.plan && request_.plan_ranks > 0 ? request_.plan_ranks : comm_.size();
}

template <int D>
void Simulation<D>::read_config(const SolverKinds& kinds) {
  Input<D> in = read_input<D>(config_, kinds, request_.input, ranks());
  config_.finish();
  grid_ = in.grid;
  parallel_ = in.parallel;
  run_ = in.run;
  output_ = in.output;
  model_ = std::move(in.model);
  initial_ = std::move(in.initial);
  source_ = std::move(in.source);
}

template <int D>
void Simulation<D>::check_depth() {
  const StencilShape<D> shape = model_->shape();
  refuse_reach_beyond_grid(shape, BoundaryTopology<D>{domain_->global(), domain_->periodic(),
                                                      grid_.boundary.mirror_low(), grid_.boundary.mirror_high()});
  refuse_unfit_exchange(parallel_.exchange, shape);
}

template <int D>
void Simulation<D>::check_memory() const {
  Index<D> largest;
  for (int j = 0; j < D; ++j) largest[j] = domain_->decomposition().largest_extent(j);
  const double node = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  const double rank = model_->memory(largest, depth_);
  const double need = rank * comm_.ranks_on_node();
  constexpr double gib = 1 << 30;
  // Nodes may differ: the tightest one decides for all.
  const auto permille = static_cast<std::int64_t>(std::min(need / node * 1000, 1e15));
  if (comm_.max(permille) > 1000)
    throw UsageError(
        fmt::format("the fields of a grid of {} cells need {:.1f} GiB per rank; {} on this node need {:.1f} "
                    "GiB of {:.1f}: use a smaller domain.shape, a smaller parallel.halo_depth or more nodes",
                    shape_string<D>(grid_.shape), rank / gib,
                    comm_.ranks_on_node() == 1 ? "1 rank" : fmt::format("{} ranks", comm_.ranks_on_node()),
                    need / gib, node / gib));
}

template <int D>
void Simulation<D>::report_plan() const {
  std::string grid;
  for (int n : domain_->decomposition().grid()) grid += (grid.empty() ? "" : " x ") + std::to_string(n);
  fmt::print("{}: {} cells, {}, process grid {}, imbalance {:.3f}, halo depth {}\n", printable(request_.input),
             shape_string<D>(grid_.shape), comm_.size() == 1 ? "1 rank" : fmt::format("{} ranks", comm_.size()),
             grid, domain_->decomposition().imbalance(), depth_);
  std::fflush(stdout);
}

template <int D>
std::string Simulation<D>::plan() const {
  check_files();
  return plan_text<D>(grid_, parallel_, *model_, ranks());
}

template <int D>
std::vector<HaloTraffic> Simulation<D>::halos() const {
  return halo_traffic<D>(grid_, parallel_, *model_, ranks());
}

template <int D>
RunResult Simulation<D>::run() {
  if (request_.watch_signals) signals_.emplace();
  prepare_directory();
  {
    const PhaseScope scope(&phases_, Phase::start);
    agreed(comm_, [&] { solver_ = model_->create(*domain_, depth_, parallel_.exchange); });
    solver_->time_phases(&phases_);
    fill_initial();
    if (request_.restart.empty())
      begin(parallel_.reduction.method);
    else
      restart();
  }
  begin_outputs();
  const PhaseScope scope(&phases_, Phase::other);
  step_loop();
  return finish();
}

template <int D>
void Simulation<D>::prepare_directory() {
  agreed(comm_, [&] {
    if (comm_.rank() == 0) directory_->claim(!request_.restart.empty() || request_.overwrite);
  });
}

template <int D>
void Simulation<D>::fill_initial() {
  const auto fields = solver_->fields();
  for (std::size_t k = 0; k < initial_.size(); ++k)
    if (request_.restart.empty() || request_.restart == "auto" || initial_[k].from_file())
      initial_[k].fill(*domain_, fields[k], config_);
  if (source_) source_->fill(*domain_, *solver_->source(), config_);
  physics_ = physics_text(config_);
  residual_ = change_sum_ = std::numeric_limits<double>::quiet_NaN();  // none yet
}

/// Before the first step, the initial fields in place: the solver forms its products, by this method. A
/// checkpoint's method must be known by then.
template <int D>
void Simulation<D>::begin(ReductionMethod method) {
  parallel_.reduction.method = method;
  solver_->reduce_by(parallel_.reduction);
  solver_->start();
}

template <int D>
std::int64_t Simulation<D>::next_event(std::int64_t last) const {
  std::int64_t next = last;
  for (std::int64_t every :
       {run_.residual_every, output_.checkpoint_every, output_.picture_every, output_.digest_every})
    if (every > 0) next = std::min(next, (step_ / every + 1) * every);
  return next;
}

template <int D>
void Simulation<D>::step_loop() {
  loop_began_ = Clock::now();
  progress_.emplace(comm_.rank() == 0 && !request_.quiet, step_, run_.steps,
                    static_cast<double>(domain_->global().cells()), run_.stop_residual > 0);
  bool stop = step_ > 0 && converged();  // a restart from the state in which the run stopped
  while (step_ < run_.steps && !stop) {
    const std::int64_t next = next_event(run_.steps);
    const double sum = advance_to(next);
    evaluate(step_, sum);
    const bool limit = over_time_ || stop_signal_ != 0;
    stop = converged() || limit;
    show_progress();
    outputs(stop || step_ == run_.steps, limit || checkpoint_wanted_);
    checkpoint_wanted_ = false;
  }
  progress_->close();
  stepped_s_ = stepping_s();
  if (step_ == first_step_ && step_ > 0 && output_.final_checkpoint) checkpoint();  // so that the directory has it
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
  const bool over =
      run_.time_limit_s > 0 && std::chrono::duration<double>(Clock::now() - began_).count() >= run_.time_limit_s;
  std::int64_t most[4] = {over, signals_ ? signals_->stop_signal() : 0,
                          signals_ && signals_->take_checkpoint_request(), -static_cast<std::int64_t>(affordable)};
  comm_.allreduce(most, 4, MPI_INT64_T, MPI_MAX);
  over_time_ = over_time_ || most[0] != 0;
  stop_signal_ = static_cast<int>(most[1]);
  checkpoint_wanted_ = checkpoint_wanted_ || most[2] != 0;
  poll_steps_ = std::clamp<std::int64_t>(-most[3], 1, 2 * poll_steps_);
  next_poll_ = step_ + poll_steps_;
}

template <int D>
bool Simulation<D>::converged() {
  const bool tested = step_ == run_.steps || (run_.residual_every > 0 && step_ % run_.residual_every == 0);
  stop_test_.reset();
  if (tested && run_.stop_residual > 0) stop_test_ = solver_->stop_test(run_.stop_residual, residual_);
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
  const auto times = [&](std::int64_t every) { return every > 0 ? run_.steps / every - (step_ - 1) / every : 0; };
  const std::int64_t every = output_.checkpoint_every;
  const bool one_more = output_.final_checkpoint && (every == 0 || run_.steps % every != 0);
  return static_cast<double>(times(every) + one_more) * phases_.seconds_each(Phase::checkpoint) +
         static_cast<double>(times(output_.picture_every)) * phases_.seconds_each(Phase::picture);
}

template <int D>
void Simulation<D>::show_progress() {
  Progress p;
  p.step = step_;
  p.dt = model_->dt();
  p.time = static_cast<double>(step_) * p.dt;
  p.residual = residual_;
  if (stop_test_ && stop_test_->name != StopTest().name)
    p.measure = fmt::format("{} = {:.6e}", stop_test_->name, stop_test_->value);
  p.stepping_s = stepping_s();
  p.outputs_left_s = outputs_left_s();
  p.limit_left_s = std::numeric_limits<double>::infinity();
  if (run_.time_limit_s > 0)
    p.limit_left_s = run_.time_limit_s - std::chrono::duration<double>(Clock::now() - began_).count();
  const PhaseScope scope(&phases_, Phase::progress);
  progress_->show(p);
}

template <int D>
void Simulation<D>::evaluate(std::int64_t step, double sum) {
  change_sum_ = sum;
  residual_ = std::sqrt(sum / static_cast<double>(domain_->global().cells()));
  residual_step_ = step;
  // A NaN or infinity in a field that was finite always shows in the change sum, so only then the field is
  // searched.
  if (!std::isfinite(sum)) check_finite(step);
}

template <int D>
void Simulation<D>::check_finite(std::int64_t step) {
  for (const auto& f : solver_->fields()) {
    const std::int64_t at = field_statistics(*domain_, f.array).first_not_finite;
    if (at < 0) continue;
    progress_->close();
    const std::string advice = model_->advice_not_finite();
    throw RunError(
        fmt::format("field \"{}\" is NaN or infinite, found at step {}, first at {}{}{}; checkpoints of earlier "
                    "steps are intact",
                    f.name, step, cell_text<D>(domain_->global(), at), advice.empty() ? "" : ": ", advice));
  }
}

template <int D>
RunResult Simulation<D>::finish() {
  RunResult r;
  r.step = step_;
  r.change_sum = change_sum_;
  r.residual = residual_;
  r.residual_step = residual_step_;
  const double updates = static_cast<double>(domain_->global().cells()) * static_cast<double>(step_ - first_step_);
  double seconds = comm_.rank() == 0 ? stepped_s_ : 0;  // the others wait for the printing of rank 0
  comm_.allreduce(&seconds, 1, MPI_DOUBLE, MPI_MAX);
  r.rate = seconds > 0 ? updates / seconds / 1e6 : 0;
  {
    const PhaseScope scope(&phases_, Phase::digest);
    for (const auto& f : solver_->fields())
      r.digests.emplace_back(f.name, hex_digest(field_statistics(*domain_, f.array).digest));
  }
  r.stop_signal = stop_signal_;
  if (run_.stop_residual == 0 && step_ > first_step_) stop_test_ = solver_->stop_test(0, residual_);
  const auto table = phases_.table(comm_);
  if (request_.quiet || comm_.rank() != 0) return r;
  report_end();
  fmt::print("{}", phase_table_text(table));
  if (written_step_ == step_) fmt::print("checkpoint = {}\n", printable(directory_->checkpoint(step_).string()));
  if (output_.picture_every > 0 && step_ % output_.picture_every == 0 && step_ > first_step_)
    fmt::print("picture = {}\n", printable(directory_->picture(output_.picture_field, step_).string()));
  if (step_ > first_step_) fmt::print("exchange = {}\n", solver_->exchange().text());
  fmt::print("rate = {:.1f} M updates/s\nresidual = {:.17g}\n", r.rate, r.residual);
  for (const auto& [name, digest] : r.digests) fmt::print("digest {} = {}\n", name, digest);
  std::fflush(stdout);
  return r;
}

/// Why the run ends where it does, and what its residual is.
template <int D>
void Simulation<D>::report_end() const {
  if (step_ == first_step_) fmt::print("nothing to do: step {} of {} is reached\n", step_, run_.steps);
  if (step_ < run_.steps && (stop_signal_ || over_time_))
    fmt::print("stopped by {} at step {} of {}\n", stop_signal_ ? signal_name(stop_signal_) : "the time limit",
               step_, run_.steps);
  if (residual_step_ > 0)
    fmt::print("the residual of step {} is the root mean square over the cells of {}\n", residual_step_,
               solver_->residual_of());
  if (stop_test_ && run_.stop_residual > 0 && stop_test_->reached)
    fmt::print("converged at step {}: {} = {} is at most run.stop_residual = {}\n", step_, stop_test_->name,
               stop_test_->value, run_.stop_residual);
  else if (stop_test_ && run_.stop_residual > 0)
    fmt::print("not converged after {} steps: {} = {} is above run.stop_residual = {}\n", step_, stop_test_->name,
               stop_test_->value, run_.stop_residual);
  else if (stop_test_ && stop_test_->name != StopTest().name)
    fmt::print("{} = {}\n", stop_test_->name, stop_test_->value);
}

template class Simulation<1>;
template class Simulation<2>;
template class Simulation<3>;
template class Simulation<4>;

}  // namespace isohalo
