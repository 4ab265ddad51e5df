#pragma once
/// What an isomorphic collective is asked to do: its blocks in memory, checked, before any algorithm is chosen.

#include <mpi.h>

#include <cstdint>
#include <span>
#include <vector>

#include "datatypes/error.hpp"
#include "framework/neighborhood/isomorphic.hpp"
#include "framework/neighborhood/neighbor_schedule.hpp"

namespace isohalo {

/// A bad argument of a collective; `mpi_class` is what the C interface returns for it (MPI_ERR_COUNT, ..).
class ArgumentError : public UsageError {
 public:
  ArgumentError(int mpi_class, const std::string& text) : UsageError(text), mpi_class_(mpi_class) {}
  int mpi_class() const noexcept { return mpi_class_; }

 private:
  int mpi_class_;
};

/// In a handler: what has been thrown, as an error of a call. Of other errors the class is that of MPI (MpiError),
/// MPI_ERR_ARG (UsageError), MPI_ERR_NO_MEM (std::bad_alloc) or MPI_ERR_OTHER.
ArgumentError current_argument_error();

/// `count` elements of `type` at `address`, which may be MPI_BOTTOM plus an absolute displacement.
struct Block {
  std::byte* address = nullptr;
  std::int64_t count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  bool operator==(const Block&) const = default;
};

/// One isomorphic collective with its arguments. Blocks of absent neighbors are never read, written or checked.
///
/// Counts are in elements. Displacements of the `v` forms are in extents of the type, those of the `w` forms and of
/// scatter_reduce in bytes. Memory: host. The arrays of arguments are copied; buffers are read when an operation
/// starts. Sections 4 and 6 of the paper (isomorphic.hpp). All throw ArgumentError, naming the function, the block
/// and the value.
class NeighborCall {
 public:
  using Counts = std::span<const int>;
  using Places = std::span<const int>;              ///< in extents
  using Displacements = std::span<const MPI_Aint>;  ///< in bytes
  using Types = std::span<const MPI_Datatype>;

  static NeighborCall alltoall(const IsomorphicNeighborhood& n, const void* send, std::int64_t send_count,
                               MPI_Datatype send_type, void* receive, std::int64_t receive_count,
                               MPI_Datatype receive_type);
  static NeighborCall alltoallv(const IsomorphicNeighborhood& n, const void* send, Counts send_counts,
                                Places send_places, MPI_Datatype send_type, void* receive, Counts receive_counts,
                                Places receive_places, MPI_Datatype receive_type);
  static NeighborCall alltoallw(const IsomorphicNeighborhood& n, const void* send, Counts send_counts,
                                Displacements send_displacements, Types send_types, void* receive,
                                Counts receive_counts, Displacements receive_displacements, Types receive_types);
  static NeighborCall allgather(const IsomorphicNeighborhood& n, const void* send, std::int64_t send_count,
                                MPI_Datatype send_type, void* receive, std::int64_t receive_count,
                                MPI_Datatype receive_type);
  static NeighborCall allgatherv(const IsomorphicNeighborhood& n, const void* send, std::int64_t send_count,
                                 MPI_Datatype send_type, void* receive, Counts receive_counts,
                                 Places receive_places, MPI_Datatype receive_type);
  static NeighborCall allgatherw(const IsomorphicNeighborhood& n, const void* send, std::int64_t send_count,
                                 MPI_Datatype send_type, void* receive, Counts receive_counts,
                                 Displacements receive_displacements, Types receive_types);
  /// receive = v_a op v_b op .., the sources' vectors in list order from the left; untouched without sources.
  static NeighborCall reduce(const IsomorphicNeighborhood& n, const void* send, void* receive, std::int64_t count,
                             MPI_Datatype type, MPI_Op op);
  /// The same of a vector of its own for each target.
  static NeighborCall scatter_reduce(const IsomorphicNeighborhood& n, const void* send, Counts send_counts,
                                     Displacements send_displacements, Types send_types, void* receive,
                                     std::int64_t count, MPI_Datatype type, MPI_Op op);

  Pattern pattern = Pattern::personal;
  /// All blocks have one size on all ranks by the meaning of the call; otherwise forwarded messages carry sizes.
  bool one_size = true;
  std::vector<Block> send;     ///< per offset, or one when the pattern is shared
  std::vector<Block> receive;  ///< per offset; empty for reductions, whose operands need storage of their own
  struct Fold {
    Block into;
    MPI_Op op = MPI_OP_NULL;
    bool operator==(const Fold&) const = default;
  };
  Fold fold;
  bool is_reduction() const { return fold.op != MPI_OP_NULL; }
  bool operator==(const NeighborCall&) const = default;
};

/// How one datatype lies in memory.
struct TypeLayout {
  std::int64_t size = 0, extent = 0, true_low = 0, true_extent = 0;
  bool predefined = false;
  /// A predefined type without gaps: blocks of it can be copied as bytes.
  bool dense() const { return predefined && size == extent; }
};

TypeLayout layout_of(MPI_Datatype type);

}  // namespace isohalo
