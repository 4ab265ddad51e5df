/// What a run writes: checkpoints with their companions, pictures, the digest trail.

#include <fmt/format.h>

#include <fstream>

#include "datatypes/error.hpp"
#include "framework/io/picture.hpp"
#include "framework/io/trail.hpp"
#include "framework/io/xdmf.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/mpi/fault_point.hpp"
#include "framework/mpi/whole_file.hpp"
#include "framework/reduce/tiles.hpp"
#include "framework/run/sidecar.hpp"
#include "framework/run/simulation.hpp"

namespace isohalo {

namespace fs = std::filesystem;

/// Fields that pictures may be of: those of this run and of the newest checkpoint that is there. On one rank.
template <int D>
std::set<std::string> Simulation<D>::pictured_fields() const {
  const auto own = model_->field_names();
  std::set<std::string> names(own.begin(), own.end());
  for (const std::int64_t s : directory_->steps()) try {
      for (const auto& f : read_checkpoint_meta(directory_->checkpoint(s)).fields) names.insert(f.name);
      break;
    } catch (const Error&) {  // a damaged one is removed all the same
    }
  return names;
}

/// The first change to what the directory holds.
template <int D>
void Simulation<D>::begin_outputs() {
  agreed(comm_, [&] {
    if (comm_.rank() != 0) return;
    directory_->remove_leftovers();
    if (written_step_ >= 0) accompany(meta());
    if (request_.overwrite && request_.restart.empty()) directory_->remove_outputs(pictured_fields());
    if (step_ < run_.steps) cut_trail();
  });
}

template <int D>
void Simulation<D>::outputs(bool last, bool wanted) {
  const auto due = [&](std::int64_t every) { return every > 0 && step_ % every == 0; };
  if (due(output_.digest_every)) {
    const PhaseScope scope(&phases_, Phase::digest);
    std::vector<FieldStatistics> statistics;
    for (const auto& f : solver_->fields()) statistics.push_back(field_statistics(*domain_, f.array));
    append_trail(statistics);
  }
  if (due(output_.picture_every)) picture();
  // The checkpoint last: a run that is continued from it does not come by this step again.
  if (due(output_.checkpoint_every) || (last && output_.final_checkpoint) || wanted) checkpoint();
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
  const PhaseScope scope(&phases_, Phase::checkpoint);
  const fs::path file = directory_->checkpoint(step_);
  const CheckpointMeta m = meta();
  const auto fields = solver_->fields();
  const auto statistics = write_checkpoint(file, *domain_, m, fields);
  written_step_ = step_;
  const auto phases = phases_.table(comm_);
  const std::string sidecar = comm_.rank() == 0 ? sidecar_text(phases) : "";
  agreed(comm_, [&] {
    if (comm_.rank() != 0) return;
    detail::fault_point("sidecar");
    write_whole(directory_->file(step_, ".json"), sidecar);
    detail::fault_point("xmf");
    accompany(m);
  });
}

/// What comes after a checkpoint and its sidecar. Also after a restart: the run before may have ended in between.
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
  directory_->set_latest();
  detail::fault_point("delete");
  directory_->delete_beyond(output_.keep, step_);
}

template <int D>
std::string Simulation<D>::sidecar_text(const std::vector<PhaseTime>& phases) const {
  SidecarFacts facts;
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
  return sidecar_json(facts);
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
void Simulation<D>::append_trail(const std::vector<FieldStatistics>& statistics) {
  agreed(comm_, [&] {
    if (comm_.rank() != 0) return;
    std::string line = fmt::format("{}", step_);
    const auto fields = solver_->fields();
    for (std::size_t k = 0; k < fields.size(); ++k)
      line += fmt::format(" {}={}", fields[k].name, hex_digest(statistics[k].digest));
    line += fmt::format(" residual={:.17g}\n", residual_);
    detail::fault_point("trail");
    append_whole(directory_->trail(), line);
  });
}

/// A restarted run continues the trail where its checkpoint stands, without lines that were cut short when an
/// earlier run was; a fresh one begins it anew.
template <int D>
void Simulation<D>::cut_trail() const {
  std::ifstream in(directory_->trail());
  if (!in) return;
  std::string kept;
  for (std::string line; std::getline(in, line) && !in.eof();)  // without an end of line it is not whole
    if (const auto s = trail_step(line); s && *s <= first_step_) kept += line + "\n";
  write_whole(directory_->trail(), kept);
}

#define ISOHALO_INSTANTIATE(D)                                                           \
  template std::set<std::string> Simulation<D>::pictured_fields() const;                 \
  template void Simulation<D>::begin_outputs();                                          \
  template void Simulation<D>::outputs(bool, bool);                                      \
  template CheckpointMeta Simulation<D>::meta() const;                                   \
  template void Simulation<D>::checkpoint();                                             \
  template void Simulation<D>::accompany(const CheckpointMeta&) const;                   \
  template std::string Simulation<D>::sidecar_text(const std::vector<PhaseTime>&) const; \
  template void Simulation<D>::picture();                                                \
  template void Simulation<D>::append_trail(const std::vector<FieldStatistics>&);        \
  template void Simulation<D>::cut_trail() const;
ISOHALO_INSTANTIATE(1)
ISOHALO_INSTANTIATE(2)
ISOHALO_INSTANTIATE(3)
ISOHALO_INSTANTIATE(4)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
