#pragma once
/// The arithmetic of reductions over the ranks of a compute node: one tree for each number of ranks.

#include <mpi.h>

#include <cstddef>
#include <optional>
#include <span>

namespace isohalo::detail {

/// How two vectors of one MPI type are combined by one MPI operation. Local.
class Combine {
 public:
  /// Nothing for what MPI does not define (MPI_SUM of MPI_BYTE) and for derived types. User-defined operations are
  /// taken on predefined types.
  static std::optional<Combine> of(MPI_Datatype type, MPI_Op op);

  std::size_t element_bytes() const { return bytes_; }

  /// out = a op b, `count` elements of each. `out` may be `a` or `b`.
  void operator()(const std::byte* a, const std::byte* b, std::byte* out, std::size_t count) const;

  /// out = the vectors combined: of p = 2^k + r ranks the first r pairs are joined, then the 2^k vectors that are
  /// left in a balanced binary tree. Over the order of `vectors`, so the operation need not commute. The same order
  /// of operations for each element wherever it is done and however the vectors are cut: the same bits. `out` may
  /// be one of `vectors`.
  void all(std::span<const std::byte* const> vectors, std::byte* out, std::size_t count) const;

 private:
  using Loop = void (*)(const std::byte* a, const std::byte* b, std::byte* out, std::size_t count);
  class Tree;
  Combine(MPI_Datatype type, MPI_Op op, std::size_t bytes, Loop loop)
      : type_(type), op_(op), bytes_(bytes), loop_(loop) {}

  MPI_Datatype type_;
  MPI_Op op_;
  std::size_t bytes_;
  Loop loop_;  ///< null: MPI_Reduce_local
};

}  // namespace isohalo::detail
