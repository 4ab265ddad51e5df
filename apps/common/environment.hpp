#pragma once
/// What the environment says before MPI does.

namespace isohalo {

/// To be called before MPI_Init: one line on standard error, from the lowest rank of a node, when /dev/shm has less
/// room than MPI_Init takes.
void warn_of_little_shared_memory();

/// Throws UsageError when a launcher of another MPI started this program, so that every process believes to be
/// alone.
void refuse_foreign_launcher(int world_size);

}  // namespace isohalo
