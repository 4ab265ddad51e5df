#pragma once
/// The arithmetic of reductions over the ranks of a compute node.

#include <mpi.h>

#include <cstddef>
#include <optional>
#include <span>

#include "framework/shm/combining_tree.hpp"

namespace isohalo {

/// How two vectors of one MPI type are combined by one MPI operation. Local.
class Combine {
 public:
  /// Nothing for what MPI does not define (MPI_SUM of MPI_BYTE) and for derived types. User-defined operations are
  /// taken on predefined types.
  static std::optional<Combine> of(MPI_Datatype type, MPI_Op op);

  std::size_t element_bytes() const { return bytes_; }

  /// out = a op b, `count` elements of each. `out` may be `a` or `b`.
  void operator()(const std::byte* a, const std::byte* b, std::byte* out, std::size_t count) const;

  /// out = `inputs` joined as the list says (CombiningTree::joins), the same order of operations for each element
  /// however the vectors are cut. `out` may be one of `inputs`. At least one join.
  void join(std::span<const Join> joins, std::span<const std::byte* const> inputs, std::byte* out,
            std::size_t count) const;

  /// Is it an operation of MPI's? One of a user's may be freed, and another have its handle.
  bool predefined() const { return predefined_; }
  /// May ranks be taken in another order?
  bool commutes() const { return commutes_; }
  /// Do all orders give the same bits?
  bool exact() const { return exact_; }

 private:
  using Loop = void (*)(const std::byte* a, const std::byte* b, std::byte* out, std::size_t count);
  Combine(MPI_Datatype type, MPI_Op op, std::size_t bytes, Loop loop, bool predefined, bool commutes, bool exact)
      : type_(type),
        op_(op),
        bytes_(bytes),
        loop_(loop),
        predefined_(predefined),
        commutes_(commutes),
        exact_(exact) {}

  MPI_Datatype type_;
  MPI_Op op_;
  std::size_t bytes_;
  Loop loop_;  ///< null: MPI_Reduce_local
  bool predefined_, commutes_, exact_;
};

}  // namespace isohalo
