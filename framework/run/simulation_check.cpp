/// What a run would refuse before its first step, found out without its memory and without writing anything.

#include "datatypes/error.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/run/simulation.hpp"

namespace isohalo {

template <int D>
void Simulation<D>::validate() {
  check_files();
  agreed(comm_, [&] {
    if (comm_.rank() != 0) return;
    directory_->check_usable(!request_.restart.empty() || request_.overwrite);
    check_restart();
  });
}

template <int D>
void Simulation<D>::check_files() const {
  for (const auto& field : initial_) field.check_file(comm_);
  if (source_) source_->check_file(comm_);
}

/// The checkpoint that a restart would begin with; its data is not read.
template <int D>
void Simulation<D>::check_restart() {
  const auto check = [&](const std::filesystem::path& file, const StoredCheckpoint& stored) {
    bool from_file = source_ && source_->from_file();
    for (const auto& field : initial_) from_file = from_file || field.from_file();
    physics_ = physics_text(config_);
    refuse_other_physics(file, stored.meta.config, from_file);
    refuse_other_method(file, stored.meta.method);
    refuse_damaged(file, stored.meta);
    if (parallel_.reduction_is_auto) parallel_.reduction.method = reduction_method(stored.meta.method);
    if (const auto newest = newest_there()) refuse_other_line(newest->meta, from_file);
  };
  if (request_.restart.empty()) return;
  if (request_.restart != "auto") {
    check(request_.restart, read_checkpoint_meta(request_.restart));
    return;
  }
  for (const std::int64_t step : directory_->steps()) {
    StoredCheckpoint stored;
    try {
      stored = read_checkpoint_meta(directory_->checkpoint(step));
      refuse_other_step(directory_->checkpoint(step), step, stored);
    } catch (const Error& e) {
      skip(step, e);
      continue;
    }
    check(directory_->checkpoint(step), stored);
    return;
  }
}

#define ISOHALO_INSTANTIATE(D)                      \
  template void Simulation<D>::validate();          \
  template void Simulation<D>::check_files() const; \
  template void Simulation<D>::check_restart();
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
