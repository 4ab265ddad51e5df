/// How a run goes on where another one stopped.

#include <fmt/format.h>

#include <sstream>

#include "datatypes/error.hpp"
#include "datatypes/printable.hpp"
#include "framework/io/compare.hpp"
#include "framework/io/readable.hpp"
#include "framework/io/verify.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/reduce/tiles.hpp"
#include "framework/run/simulation.hpp"

namespace isohalo {

namespace fs = std::filesystem;

void refuse_other_step(const fs::path& file, std::int64_t of_name, const StoredCheckpoint& stored) {
  if (stored.meta.step != of_name)
    throw UsageError(file.string() + " holds step " + std::to_string(stored.meta.step) + ", not that of its name");
}

template <int D>
void Simulation<D>::restart() {
  const ReductionMethod given = parallel_.reduction.method;
  const auto method_of = [&](const StoredCheckpoint& stored) {
    return parallel_.reduction_is_auto ? reduction_method(stored.meta.method) : given;
  };
  if (request_.restart != "auto") {
    const fs::path file = pinned(request_.restart, comm_);
    const StoredCheckpoint stored = read_checkpoint_meta(file, comm_);
    refuse_other_physics(file, stored.meta.config);
    refuse_other_method(file, stored.meta.method);
    begin(method_of(stored));
    restore(file, stored);
    return;
  }
  std::vector<std::int64_t> steps;
  std::string listing;
  if (comm_.rank() == 0)  // does not throw
    for (std::int64_t s : directory_->steps()) listing += std::to_string(s) + " ";
  comm_.broadcast(listing, 0);
  std::istringstream in(listing);
  for (std::int64_t s; in >> s;) steps.push_back(s);
  for (std::int64_t s : steps) {
    StoredCheckpoint stored;
    try {
      stored = read_checkpoint_meta(directory_->checkpoint(s), comm_);
      refuse_other_step(directory_->checkpoint(s), s, stored);
    } catch (const MpiError&) {
      throw;
    } catch (const Error& e) {
      skip(s, e);
      continue;
    }
    refuse_other_physics(directory_->checkpoint(s), stored.meta.config);
    refuse_other_method(directory_->checkpoint(s), stored.meta.method);
    begin(method_of(stored));
    try {
      restore(directory_->checkpoint(s), stored);
      return;
    } catch (const MpiError&) {
      throw;
    } catch (const Error& e) {
      skip(s, e);
    }
    fill_initial();
  }
  begin(given);
  if (!request_.quiet && comm_.rank() == 0)
    fmt::print("no usable checkpoint in {}: starting at step 0\n", printable(directory_->path().string()));
}

template <int D>
void Simulation<D>::skip(std::int64_t step, const Error& e) {
  unusable_.insert(step);
  if (comm_.rank() == 0)
    fmt::print(stderr, "isohalo: warning: skipping a checkpoint that cannot be used: {}\n", printable(e.what()));
}

template <int D>
std::string Simulation<D>::other_keys(const std::string& stored, bool but_of_fields) const {
  std::string keys;
  if (stored == physics_) return keys;
  const auto theirs = config_lines(stored), ours = config_lines(physics_);
  const auto note = [&](const std::string& key, const std::string& a, const std::string& b) {
    // They may name data that was not read yet.
    if (but_of_fields && (key.starts_with("initial.") || key.starts_with("source."))) return;
    keys += fmt::format("{}{} ({} in the file, {} here)", keys.empty() ? "" : ", ", key, a, b);
  };
  for (const auto& [key, value] : theirs)
    if (!ours.contains(key))
      note(key, value, "absent");
    else if (ours.at(key) != value)
      note(key, value, ours.at(key));
  for (const auto& [key, value] : ours)
    if (!theirs.contains(key)) note(key, "absent", value);
  return keys;
}

template <int D>
void Simulation<D>::refuse_other_physics(const fs::path& file, const std::string& stored,
                                         bool but_of_fields) const {
  const std::string keys = other_keys(stored, but_of_fields);
  if (keys.empty()) return;
  throw UsageError("cannot restart from " + file.string() + ": it was computed with other " + keys);
}

/// Tree and binary tree give the same bits; exact sums are others.
template <int D>
void Simulation<D>::refuse_other_method(const fs::path& file, const std::string& stored) const {
  if (stored != "tree" && stored != "exact")
    throw UsageError(file.string() + ": its residuals were formed by the unknown method \"" + stored + "\"");
  if (parallel_.reduction_is_auto || stored == method_name(parallel_.reduction.method)) return;
  throw UsageError(fmt::format(
      "cannot restart from {}: its residuals were formed by parallel.reduction = \"{}\", here it is \"{}\": use "
      "\"{}\" or \"auto\"",
      file.string(), stored, to_text(parallel_.reduction.method), stored));
}

template <int D>
void Simulation<D>::refuse_damaged(const fs::path& file, const CheckpointMeta& m) {
  if (const auto problems = meta_problems(m); !problems.empty())
    throw UsageError(file.string() + ": " + problems.front() + ": it is damaged (see isohalo verify)");
  constexpr Index<D> tile = default_tile<D>();
  if (m.tree_version != kTreeVersion || !std::equal(m.tile.begin(), m.tile.end(), tile.begin(), tile.end()))
    throw UsageError(file.string() + ": its residuals were summed over another reduction tree");
}

/// Of the right physics and method; by that method `begin` was called.
template <int D>
void Simulation<D>::restore(const fs::path& file, const StoredCheckpoint& stored) {
  refuse_damaged(file, stored.meta);
  read_checkpoint_fields(file, stored, *domain_, solver_->fields());
  solver_->fields_changed();
  step_ = first_step_ = next_poll_ = stored.meta.step;
  change_sum_ = stored.meta.change_sum;
  residual_ = stored.meta.residual;
  residual_step_ = stored.meta.residual_step;
  std::error_code ignored;
  if (fs::equivalent(file, directory_->checkpoint(step_), ignored)) written_step_ = step_;
  if (!request_.quiet && comm_.rank() == 0)
    fmt::print("restarting at step {} from {}\n", step_, printable(file.string()));
}

#define ISOHALO_INSTANTIATE(D)                                                                        \
  template void Simulation<D>::restart();                                                             \
  template void Simulation<D>::skip(std::int64_t, const Error&);                                      \
  template std::string Simulation<D>::other_keys(const std::string&, bool) const;                     \
  template void Simulation<D>::refuse_other_physics(const fs::path&, const std::string&, bool) const; \
  template void Simulation<D>::refuse_other_method(const fs::path&, const std::string&) const;        \
  template void Simulation<D>::refuse_damaged(const fs::path&, const CheckpointMeta&);                \
  template void Simulation<D>::restore(const fs::path&, const StoredCheckpoint&);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
