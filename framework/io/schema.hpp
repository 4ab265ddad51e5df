#pragma once
/// The metadata of a checkpoint as one list, which writing, reading, comparison and checks all walk. Private to
/// framework/io. What each means is in docs/checkpoints.md.

#include "framework/io/checkpoint.hpp"

namespace isohalo::detail {

struct SchemaAttribute {
  const char *group, *name;  ///< in the file
  const char* shown;         ///< in the report of a comparison
  const char* part;          ///< its name in `metadata_names`; empty where it must match
};

/// Calls `f(attribute, member of CheckpointMeta)` for every attribute of the groups but /config and /fields, in the
/// order in which files have them. /grid has `dim` as well, before all others.
template <class F>
void for_each_attribute(F&& f) {
  using M = CheckpointMeta;
  const auto in = [&](const char* group, const char* name, const char* shown, const char* part, auto member) {
    f(SchemaAttribute{group, name, shown, part}, member);
  };
  in("grid", "shape", "grid shape", "", &M::shape);
  in("grid", "origin", "grid origin", "grid", &M::origin);
  in("grid", "spacing", "grid spacing", "grid", &M::spacing);
  in("grid", "periodic", "grid periodic", "boundary", &M::periodic);
  in("grid", "boundary_low", "boundary low", "boundary", &M::boundary_low);
  in("grid", "boundary_high", "boundary high", "boundary", &M::boundary_high);
  in("time", "step", "step", "step", &M::step);
  in("time", "time", "time", "time", &M::time);
  in("time", "dt", "dt", "time", &M::dt);
  in("time", "random_seed", "random seed", "random", &M::random_seed);
  in("time", "random_counter", "random counter", "random", &M::random_counter);
  in("reduction", "tree_version", "reduction tree version", "reduction", &M::tree_version);
  in("reduction", "tile", "reduction tile", "reduction", &M::tile);
  in("reduction", "method", "reduction method", "reduction", &M::method);
  in("reduction", "change_sum", "change sum", "residual", &M::change_sum);
  in("reduction", "residual", "residual", "residual", &M::residual);
  in("reduction", "residual_step", "residual step", "step", &M::residual_step);
}

}  // namespace isohalo::detail
