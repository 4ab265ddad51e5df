/// What a run writes: checkpoints with their companions, pictures, the digest log.

#include <fmt/format.h>

#include <set>

#include "datatypes/error.hpp"
#include "datatypes/printable.hpp"
#include "framework/io/picture.hpp"
#include "framework/io/xdmf.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/mpi/fault_point.hpp"
#include "framework/mpi/whole_file.hpp"
#include "framework/reduce/tiles.hpp"
#include "framework/run/run_metadata.hpp"
#include "framework/run/simulation.hpp"

namespace isohalo {

namespace fs = std::filesystem;

/// What the newest checkpoint in the directory says that can be read, if there is one; those that cannot are noted.
/// On one rank.
template <int D>
std::optional<StoredCheckpoint> Simulation<D>::newest_there() {
  for (const std::int64_t s : directory_->steps()) try {
      if (unusable_.contains(s)) continue;
      auto stored = read_checkpoint_meta(directory_->checkpoint(s));
      refuse_other_step(directory_->checkpoint(s), s, stored);
      return stored;
    } catch (const Error&) {
      unusable_.insert(s);
    }
  return std::nullopt;
}

/// Checkpoints of another run must not come to lie between this one's. On one rank.
template <int D>
void Simulation<D>::refuse_other_line(const CheckpointMeta& newest, bool but_of_fields) const {
  const std::string method = method_name(parallel_.reduction.method);
  std::string keys = other_keys(newest.config, but_of_fields);
  if (newest.method != method)
    keys += fmt::format("{}parallel.reduction ({} in the file, {} here)", keys.empty() ? "" : ", ", newest.method,
                        method);
  if (!keys.empty())
    throw UsageError(
        fmt::format("output.directory {} holds checkpoints of another run: {} was computed with other {}: "
                    "choose another directory",
                    directory_->path().string(), directory_->checkpoint(newest.step).string(), keys));
}

/// The first change to what the directory holds, after the last reason to refuse it.
template <int D>
void Simulation<D>::begin_outputs() {
  const bool continued = !request_.restart.empty();
  agreed(comm_, [&] {
    if (comm_.rank() != 0) return;
    const auto newest = continued || request_.overwrite ? newest_there() : std::nullopt;
    if (continued && newest) refuse_other_line(newest->meta);
    directory_->remove_leftovers();
    if (continued) {
      report_newer();
      if (written_step_ >= 0) accompany(meta());
    } else if (request_.overwrite) {
      const auto own = model_->field_names();
      std::set<std::string> pictured(own.begin(), own.end());
      if (newest)
        for (const auto& f : newest->fields) pictured.insert(f.name);
      directory_->remove_outputs(pictured);
    }
    // Nothing vouches for the lines of a log without any checkpoint.
    if (step_ < run_.steps) digest_log_.emplace(directory_->digest_log(), continued && newest);
  });
}

template <int D>
void Simulation<D>::report_newer() const {
  auto newer = directory_->steps();
  std::erase_if(newer, [&](std::int64_t s) { return s <= step_ || unusable_.contains(s); });
  if (newer.empty() || request_.quiet) return;
  fmt::print("{} newer checkpoint{} in {} ({}): steps that are done again replace {}\n", newer.size(),
             newer.size() == 1 ? " is" : "s are", printable(directory_->path().string()),
             newer.size() == 1 ? fmt::format("step {}", newer[0])
                               : fmt::format("steps {} to {}", newer.back(), newer.front()),
             newer.size() == 1 ? "it" : "them");
}

template <int D>
void Simulation<D>::outputs(bool last, bool wanted) {
  const auto due = [&](std::int64_t every) { return every > 0 && step_ % every == 0; };
  const bool stored = due(output_.checkpoint_every) || (last && output_.final_checkpoint) || wanted;
  if (stored || due(output_.digest_every) || due(output_.picture_every))
    agreed(comm_, [&] {
      if (comm_.rank() == 0) directory_->refuse_if_lost();
    });
  if (due(output_.digest_every)) {
    const PhaseScope scope(&phases_, Phase::digest);
    std::vector<FieldStatistics> statistics;
    for (const auto& f : solver_->fields()) statistics.push_back(field_statistics(*domain_, f.array));
    append_digests(statistics);
  }
  if (due(output_.picture_every)) picture();
  // The checkpoint last: a run that is continued from it does not come by this step again.
  if (stored) checkpoint();
}

template <int D>
CheckpointMeta Simulation<D>::meta() const {
  CheckpointMeta m;
  const Index<D> tile = solver_->tile();
  std::string* const texts[2] = {&m.boundary_low, &m.boundary_high};
  const PerDim<BoundaryRule, D>* const rules[2] = {&grid_.boundary.low, &grid_.boundary.high};
  for (int side = 0; side < 2; ++side) {
    for (int j = 0; j < D; ++j) *texts[side] += (j ? ", " : "[") + canonical((*rules[side])[j]);
    *texts[side] += "]";
  }
  for (int j = 0; j < D; ++j) {
    m.shape.push_back(grid_.shape[j]);
    m.origin.push_back(grid_.origin[j]);
    m.spacing.push_back(grid_.spacing[j]);
    m.periodic.push_back(domain_->periodic(j));
    m.tile.push_back(tile[j]);
  }
  m.step = step_;
  m.dt = model_->dt();
  m.time = static_cast<double>(step_) * m.dt;
  for (const auto& i : initial_)
    if (m.random_seed == 0) m.random_seed = i.seed();
  m.tree_version = kTreeVersion;
  m.method = method_name(parallel_.reduction.method);
  m.change_sum = change_sum_;
  m.residual = residual_;
  m.residual_step = residual_step_;
  m.config = physics_;
  return m;
}

template <int D>
void Simulation<D>::checkpoint() {
  if (written_step_ == step_) return;
  const CheckpointMeta m = meta();
  {
    const PhaseScope scope(&phases_, Phase::checkpoint);
    write_checkpoint(directory_->checkpoint(step_), *domain_, m, solver_->fields());
  }
  written_step_ = step_;
  unusable_.erase(step_);
  const auto phases = phases_.table(comm_);  // this checkpoint's time is in it, but for the small files that follow
  const std::string metadata = comm_.rank() == 0 ? run_metadata_text(phases) : "";
  const PhaseScope scope(&phases_, Phase::checkpoint);
  agreed(comm_, [&] {
    if (comm_.rank() != 0) return;
    detail::fault_point("metadata");
    write_whole(directory_->file(step_, ".json"), metadata);
    detail::fault_point("xmf");
    accompany(m);
  });
}

/// What comes after a checkpoint and its run metadata. Also after a restart: the run before may have ended in
/// between.
template <int D>
void Simulation<D>::accompany(const CheckpointMeta& m) const {
  if (output_.xdmf) {
    std::vector<StoredField> stored;
    for (const auto& f : solver_->fields()) {
      StoredField s;
      s.name = f.name;
      s.type = type_name(grid_.type);
      s.shape = m.shape;
      stored.push_back(s);
    }
    const std::string text = xdmf_text(directory_->checkpoint(step_).filename().string(), m, stored);
    if (!text.empty()) write_whole(directory_->file(step_, ".xmf"), text);
  }
  directory_->set_latest(unusable_);
  detail::fault_point("delete");
  directory_->delete_beyond(output_.keep, step_);
}

template <int D>
std::string Simulation<D>::run_metadata_text(const std::vector<PhaseTime>& phases) const {
  RunMetadata facts;
  facts.config = repeatable(config_);
  facts.ranks = comm_.size();
  for (int j = 0; j < D; ++j) {
    std::vector<std::int64_t> cuts;
    for (int c = 0; c <= domain_->decomposition().blocks(j); ++c)
      cuts.push_back(domain_->decomposition().cut(j, c));
    facts.process_grid.push_back(domain_->decomposition().blocks(j));
    facts.cuts.push_back(cuts);
  }
  facts.halo_depth = depth_;
  facts.exchange = solver_->exchange();
  facts.wall_s = std::chrono::duration<double>(Clock::now() - began_).count();
  facts.phases = phases;
  facts.command_line = request_.command_line;
  return run_metadata_json(facts);
}

template <int D>
void Simulation<D>::picture() {
  const PhaseScope scope(&phases_, Phase::picture);
  for (const auto& f : solver_->fields()) {
    if (f.name != output_.picture_field) continue;
    const fs::path file = directory_->picture(f.name, step_);
    write_picture(file, *domain_, f.array);
  }
}

template <int D>
void Simulation<D>::append_digests(const std::vector<FieldStatistics>& statistics) {
  agreed(comm_, [&] {
    if (comm_.rank() != 0) return;
    std::string line = fmt::format("{}", step_);
    const auto fields = solver_->fields();
    for (std::size_t k = 0; k < fields.size(); ++k)
      line += fmt::format(" {}={}", fields[k].name, hex_digest(statistics[k].digest));
    line += fmt::format(" residual={:.17g}\n", residual_);
    detail::fault_point("digest_log");
    if (const auto former = digest_log_->add(step_, line))
      fmt::print(
          stderr,
          "isohalo: warning: {}: step {} was done before with other digests, and is replaced: \"{}\" against "
          "\"{}\": the files there are not of this run\n",
          printable(directory_->digest_log().string()), step_, printable(former->substr(0, former->size() - 1)),
          line.substr(0, line.size() - 1));
  });
}

#define ISOHALO_INSTANTIATE(D)                                                                \
  template std::optional<StoredCheckpoint> Simulation<D>::newest_there();                     \
  template void Simulation<D>::refuse_other_line(const CheckpointMeta&, bool) const;          \
  template void Simulation<D>::report_newer() const;                                          \
  template void Simulation<D>::begin_outputs();                                               \
  template void Simulation<D>::outputs(bool, bool);                                           \
  template CheckpointMeta Simulation<D>::meta() const;                                        \
  template void Simulation<D>::checkpoint();                                                  \
  template void Simulation<D>::accompany(const CheckpointMeta&) const;                        \
  template std::string Simulation<D>::run_metadata_text(const std::vector<PhaseTime>&) const; \
  template void Simulation<D>::picture();                                                     \
  template void Simulation<D>::append_digests(const std::vector<FieldStatistics>&);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
