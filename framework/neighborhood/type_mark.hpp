#pragma once
/// Is a datatype still the one that it was?

#include <mpi.h>

#include <utility>
#include <vector>

#include "framework/neighborhood/neighbor_call.hpp"

namespace isohalo::detail {

/// The derived types of a call, each with a mark that MPI deletes with the type: a handle that was freed and given
/// to another type is told from what it was.
class TypeMarks {
 public:
  /// Marks those that have no mark.
  explicit TypeMarks(const NeighborCall& call);
  /// None has been freed.
  bool hold() const;

 private:
  void add(MPI_Datatype type);

  std::vector<std::pair<MPI_Datatype, void*>> marks_;
};

}  // namespace isohalo::detail
