#pragma once
/// What the environment says before MPI does.

namespace isohalo {

/// To be called before Kokkos is initialised: a rank has one thread unless OMP_NUM_THREADS or KOKKOS_NUM_THREADS
/// says otherwise, so that ranks that know nothing of each other do not each take all cores of a node. Throws
/// UsageError for a KOKKOS_NUM_THREADS that is no number.
void choose_threads();

/// To be called before MPI_Init: one line on standard error, from the lowest rank of a node, when /dev/shm has less
/// room than MPI_Init takes.
void warn_of_little_shared_memory();

/// Throws UsageError when a launcher of another MPI started this program, so that every process believes to be
/// alone.
void refuse_foreign_launcher(int world_size);

}  // namespace isohalo
