/// What a run takes from the files of another and what it writes: restarts, checkpoints with their companions,
/// pictures, the digest log.

#include <fmt/format.h>
#include <hdf5.h>

#include <Kokkos_Core.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "datatypes/error.hpp"
#include "datatypes/printable.hpp"
#include "framework/halo/faces.hpp"
#include "framework/io/compare.hpp"
#include "framework/io/picture.hpp"
#include "framework/io/readable.hpp"
#include "framework/io/xdmf.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/mpi/fault_point.hpp"
#include "framework/mpi/whole_file.hpp"
#include "framework/run/machine.hpp"
#include "framework/run/simulation.hpp"
#include "framework/run/verify.hpp"
#include "framework/run/version.hpp"
#include "framework/run/words.hpp"

namespace isohalo {

namespace fs = std::filesystem;

namespace {

/// A checkpoint under the name of another step is not believed.
void refuse_other_step(const fs::path& file, std::int64_t of_name, const StoredCheckpoint& stored) {
  if (stored.meta.step != of_name)
    throw UsageError(file.string() + " holds step " + std::to_string(stored.meta.step) + ", not that of its name");
}

void refuse_damaged(const fs::path& file, const StoredCheckpoint& stored) {
  for (const auto& f : stored.fields)
    if (stored.minor <= kFormatMinor && !is_role(f.role))
      throw UsageError(file.string() + ": field " + f.name + ": its role is \"" + f.role +
                       "\": it is damaged (see isohalo verify)");
  if (const auto problems = meta_problems(stored.meta); !problems.empty())
    throw UsageError(file.string() + ": " + problems.front() + ": it is damaged (see isohalo verify)");
}

}  // namespace

/// Continues from the checkpoint of --restart, of "auto" the newest one that is good; without any from step 0. With
/// `check` only finds out whether that would be refused, and reads no data. Collective.
template <int D>
void Simulation<D>::restart(bool check) {
  const bool any = request_.restart == "auto";
  const ReductionMethod given = in_.parallel.reduction.method;
  std::vector<std::int64_t> steps{-1};  // of a file that was named
  on_root(comm_, [&] {
    if (any) steps = directory_.named_steps();
  });
  comm_.broadcast(steps, 0);
  for (const std::int64_t s : steps) {
    const fs::path file = any ? directory_.checkpoint(s) : pinned(request_.restart, comm_);
    StoredCheckpoint stored;
    const auto read = [&] {
      stored = read_checkpoint_meta(file, comm_);
      if (any) refuse_other_step(file, s, stored);
    };
    const auto take = [&] {
      refuse_damaged(file, stored);
      if (check)
        for (std::size_t k = 0; const auto& name : in_.model->field_names()) {
          const int face = in_.model->face_of(k++);
          const Index<D> shape = in_.grid.on_faces(face).shape;
          refuse_other_field(file, stored, name, type_name(in_.grid.type), {shape.begin(), shape.end()}, face);
        }
      else
        restore(file, stored);
    };
    if (!usable(s, read)) continue;
    refuse_other(file, stored.meta);
    in_.parallel.reduction.method = in_.parallel.reduction_is_auto ? reduction_method(stored.meta.method) : given;
    if (!check) begin();
    if (usable(s, take)) return;
    if (!check) fill_initial();
  }
  in_.parallel.reduction.method = given;
  if (check) return;
  begin();
  if (talks())
    fmt::print("no usable checkpoint in {}: starting at step 0\n", printable(directory_.path().string()));
}

/// Does `work` succeed with the checkpoint of this step? When it does not, and need not, that is a warning.
template <int D>
bool Simulation<D>::usable(std::int64_t step, const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const MpiError&) {
    throw;
  } catch (const Error& e) {
    if (request_.restart != "auto") throw;
    unusable_.insert(step);
    if (comm_.rank() == 0)
      fmt::print(stderr, "isohalo: warning: skipping a checkpoint that cannot be used: {}\n", printable(e.what()));
    return false;
  }
}

template <int D>
std::string Simulation<D>::other_keys(const std::string& stored) const {
  std::string keys;
  std::map<std::string, std::pair<std::string, std::string>> values;
  for (const auto& [key, value] : config_lines(stored)) values[key] = {value, "absent"};
  for (const auto& [key, value] : config_lines(physics_))
    values.try_emplace(key, "absent", "").first->second.second = value;
  for (const auto& [key, value] : values) {
    const bool of_fields = key.starts_with("initial.") || key.starts_with("source.") || key.ends_with(".data");
    // --validate does not read the data that they may name.
    if (value.first == value.second || (of_fields && request_.validate_only && in_.from_files())) continue;
    keys += fmt::format("{}{} ({} in the file, {} here)", keys.empty() ? "" : ", ", key, value.first, value.second);
  }
  return keys;
}

/// Throws UsageError for a checkpoint of other physics, or of residuals formed by another method. Tree and binary
/// tree give the same bits; exact sums are others.
template <int D>
void Simulation<D>::refuse_other(const fs::path& file, const CheckpointMeta& m) const {
  if (const std::string keys = other_keys(m.config); !keys.empty())
    throw UsageError("cannot restart from " + file.string() + ": it was computed with other " + keys);
  if (m.method != "tree" && m.method != "exact")
    throw UsageError(file.string() + ": its residuals were formed by the unknown method \"" + m.method + "\"");
  const ReductionMethod method = in_.parallel.reduction.method;
  if (!in_.parallel.reduction_is_auto && m.method != method_name(method))
    throw UsageError(fmt::format(
        "cannot restart from {}: its residuals were formed by parallel.reduction = \"{}\", here it is \"{}\": use "
        "\"{}\" or \"auto\"",
        file.string(), m.method, to_text(method), m.method));
}

/// Of the right physics and method; by that method `begin` was called.
template <int D>
void Simulation<D>::restore(const fs::path& file, const StoredCheckpoint& stored) {
  read_checkpoint_fields(file, stored, *domain_, solver_->fields());
  solver_->set_time(stored.meta.step, in_.model->dt());
  solver_->fields_changed();
  step_ = first_step_ = next_poll_ = stored.meta.step;
  change_sum_ = stored.meta.change_sum;
  residual_ = stored.meta.residual;
  residual_step_ = stored.meta.residual_step;
  std::error_code ignored;
  if (fs::equivalent(file, directory_.checkpoint(step_), ignored)) written_step_ = step_;
  if (talks()) fmt::print("restarting at step {} from {}\n", step_, printable(file.string()));
}

/// What the newest checkpoint in the directory says that can be read, if there is one; those that cannot are noted.
/// On one rank.
template <int D>
std::optional<StoredCheckpoint> Simulation<D>::newest_there() {
  for (const std::int64_t s : directory_.steps()) try {
      if (unusable_.contains(s)) continue;
      auto stored = read_checkpoint_meta(directory_.checkpoint(s));
      refuse_other_step(directory_.checkpoint(s), s, stored);
      return stored;
    } catch (const Error&) {
      unusable_.insert(s);
    }
  return std::nullopt;
}

/// Checkpoints of another run must not come to lie between this one's. On one rank.
template <int D>
void Simulation<D>::refuse_other_line(const std::optional<StoredCheckpoint>& newest) const {
  if (!newest) return;
  const CheckpointMeta& m = newest->meta;
  const std::string method = method_name(in_.parallel.reduction.method);
  std::string keys = other_keys(m.config);
  if (m.method != method)
    keys +=
        fmt::format("{}parallel.reduction ({} in the file, {} here)", keys.empty() ? "" : ", ", m.method, method);
  if (!keys.empty())
    throw UsageError(
        fmt::format("output.directory {} holds checkpoints of another run: {} was computed with other {}: "
                    "choose another directory",
                    directory_.path().string(), directory_.checkpoint(m.step).string(), keys));
}

/// The first change to what the directory holds, after the last reason to refuse it.
template <int D>
void Simulation<D>::begin_outputs() {
  const bool continued = !request_.restart.empty();
  on_root(comm_, [&] {
    const auto newest = continued ? newest_there() : std::nullopt;
    if (continued) refuse_other_line(newest);
    directory_.remove_leftovers();
    if (continued) {
      report_newer();
      if (written_step_ >= 0) accompany(meta());
    } else if (request_.overwrite) {
      directory_.remove_outputs();
    }
    // Nothing vouches for the lines of a log without any checkpoint.
    if (step_ >= in_.run.steps) return;
    digest_log_.emplace(directory_.digest_log(), newest.has_value());
    if (!digest_log_->damage().empty())
      fmt::print(stderr, "isohalo: warning: left out of the log: {}\n", printable(digest_log_->damage()));
  });
}

template <int D>
void Simulation<D>::report_newer() const {
  auto newer = directory_.steps();
  std::erase_if(newer, [&](std::int64_t s) { return s <= step_ || unusable_.contains(s); });
  if (newer.empty() || request_.quiet) return;
  const bool one = newer.size() == 1;
  fmt::print("{} {} in {} ({}): steps that are done again replace {}\n",
             counted(std::ssize(newer), "newer checkpoint"), one ? "is" : "are",
             printable(directory_.path().string()),
             one ? fmt::format("step {}", newer[0]) : fmt::format("steps {} to {}", newer.back(), newer.front()),
             one ? "it" : "them");
}

template <int D>
void Simulation<D>::outputs(bool last, bool wanted) {
  const auto due = [&](std::int64_t every) { return every > 0 && step_ % every == 0; };
  const bool stored = due(in_.output.checkpoint_every) || (last && in_.output.final_checkpoint) || wanted;
  if (stored || due(in_.output.digest_every) || due(in_.output.picture_every))
    on_root(comm_, [&] { directory_.refuse_if_lost(); });
  if (due(in_.output.digest_every)) append_digests();
  if (due(in_.output.picture_every)) picture();
  // The checkpoint last: a run that is continued from it does not come by this step again.
  if (stored) checkpoint();
}

template <int D>
CheckpointMeta Simulation<D>::meta() const {
  CheckpointMeta m;
  const Index<D> tile = solver_->tile();
  m.boundary_low = config_.effective().at("domain.boundary.low");
  m.boundary_high = config_.effective().at("domain.boundary.high");
  for (int j = 0; j < D; ++j) {
    m.shape.push_back(in_.grid.shape[j]);
    m.origin.push_back(in_.grid.origin[j]);
    m.spacing.push_back(in_.grid.spacing[j]);
    m.periodic.push_back(domain_->periodic(j));
    m.tile.push_back(tile[j]);
  }
  m.step = step_;
  m.dt = in_.model->dt();
  m.time = static_cast<double>(step_) * m.dt;
  for (const auto& i : in_.initial)
    if (m.random_seed == 0) m.random_seed = i.seed();
  m.tree_version = kTreeVersion;
  m.method = method_name(in_.parallel.reduction.method);
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
    write_checkpoint(directory_.checkpoint(step_), *domain_, m, solver_->fields());
  }
  written_step_ = step_;
  unusable_.erase(step_);
  const auto phases = phases_.table(comm_);  // this checkpoint's time is in it, but for the small files that follow
  const PhaseScope scope(&phases_, Phase::checkpoint);
  on_root(comm_, [&] {
    detail::fault_point("metadata");
    write_whole(directory_.file(step_, ".json"), run_metadata(phases));
    detail::fault_point("xmf");
    accompany(m);
  });
}

/// What comes after a checkpoint and its run metadata. Also after a restart: the run before may have ended in
/// between.
template <int D>
void Simulation<D>::accompany(const CheckpointMeta& m) const {
  if (in_.output.xdmf) {
    std::vector<StoredField> stored;
    for (const auto& f : solver_->fields()) {
      const Index<D> shape = in_.grid.on_faces(f.face).shape;
      stored.push_back({.name = f.name,
                        .units{},
                        .role{},
                        .type = type_name(in_.grid.type),
                        .shape{shape.begin(), shape.end()},
                        .face = f.face});
    }
    const std::string text = xdmf_text(directory_.checkpoint(step_).filename().string(), m, stored);
    if (!text.empty()) write_whole(directory_.file(step_, ".xmf"), text);
  }
  directory_.set_latest(unusable_);
  detail::fault_point("delete");
  directory_.delete_beyond(in_.output.keep, step_);
}

/// The JSON beside a checkpoint: everything that may differ between runs with the same bits.
template <int D>
std::string Simulation<D>::run_metadata(const std::vector<PhaseTime>& phases) const {
  using Json = nlohmann::ordered_json;
  const Decomposition<D>& blocks = domain_->decomposition();
  const ExchangeChoice exchange = solver_->exchange();
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  Json j{
      {"isohalo", kVersion},
      {"hdf5", fmt::format("{}.{}.{}", major, minor, release)},
      {"mpi", mpi_library_name()},
      {"kokkos", fmt::format("{}.{}.{}", KOKKOS_VERSION / 10000, KOKKOS_VERSION / 100 % 100, KOKKOS_VERSION % 100)},
      {"kokkos_host_space", Kokkos::DefaultHostExecutionSpace::name()},
      {"host", host_name()},
      {"ranks", comm_.size()},
      {"process_grid", blocks.grid()}};
  for (int k = 0; k < D; ++k) {
    Json cuts;
    for (int c = 0; c <= blocks.blocks(k); ++c) cuts.push_back(blocks.cut(k, c));
    j["cuts"].push_back(cuts);
  }
  j["halo_depth"] = solver_->depth();
  if (const std::string sweeps = solver_->sweeps(); !sweeps.empty()) j["sweeps"] = sweeps;
  j["exchange"] = exchange_name(exchange.used);
  for (const auto& [way, seconds] : exchange.seconds) j["exchange_seconds"][exchange_name(way)] = seconds;
  j["wall_s"] = wall_s();
  for (const auto& t : phases)
    j["phases"][t.name] = {
        {"min_s", t.min_s}, {"avg_s", t.avg_s}, {"max_s", t.max_s}, {"slowest_rank", t.slowest}, {"slow", t.slow}};
  j["command_line"] = request_.command_line;
  j["config"] = repeatable(config_);
  // Host names and arguments may hold any bytes, and terminals show the file: plain ASCII.
  return j.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

template <int D>
void Simulation<D>::picture() {
  const PhaseScope scope(&phases_, Phase::picture);
  for (const auto& f : solver_->fields())
    if (f.name == in_.output.picture_field)
      write_picture(directory_.picture(f.name, step_), field_domain(*domain_, f.face), f.array);
}

template <int D>
void Simulation<D>::append_digests() {
  const PhaseScope scope(&phases_, Phase::digest);
  std::string line = fmt::format("{}", step_);
  for (const auto& f : solver_->fields())
    line += fmt::format(" {}={}", f.name, hex_digest(field_statistics(*domain_, f.array, f.face).digest));
  line += fmt::format(" residual={:.17g}", residual_);
  on_root(comm_, [&] {
    detail::fault_point("digest_log");
    if (const auto former = digest_log_->add(step_, line + "\n"))
      fmt::print(
          stderr,
          "isohalo: warning: {}: step {} was done before with other digests, and is replaced: \"{}\" against "
          "\"{}\": the files there are not of this run\n",
          printable(directory_.digest_log().string()), step_, printable(former->substr(0, former->size() - 1)),
          line);
  });
}

#define ISOHALO_INSTANTIATE(D)                                                                  \
  template void Simulation<D>::restart(bool);                                                   \
  template std::optional<StoredCheckpoint> Simulation<D>::newest_there();                       \
  template void Simulation<D>::refuse_other_line(const std::optional<StoredCheckpoint>&) const; \
  template void Simulation<D>::begin_outputs();                                                 \
  template void Simulation<D>::outputs(bool, bool);                                             \
  template void Simulation<D>::checkpoint();
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
