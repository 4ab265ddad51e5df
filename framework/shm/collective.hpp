#pragma once
/// One collective of ranks, as NodeCollectives and ClusterCollectives take it.

#include <cstddef>

#include "framework/shm/combine.hpp"

namespace isohalo {

/// What it is called with, made by the functions below, the same on all ranks but for addresses. These, and the
/// combination, are used until it has ended; of a request until that goes.
struct Collective {
  enum class Kind { barrier, allgather, allreduce, broadcast, gather, scatter, reduce };
  Kind kind;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t count = 0;  ///< elements that `combine` knows, or bytes
  int root = -1;          ///< -1: none
  const Combine* combine = nullptr;

  bool has_root() const { return kind >= Kind::broadcast; }

  static Collective barrier() { return {Kind::barrier}; }
  /// `bytes` at `data`, from the root to all others.
  static Collective broadcast(std::byte* data, std::size_t bytes, int root) {
    return {Kind::broadcast, data, data, bytes, root};
  }
  /// `count` elements of each rank to `result`, which may be `mine`: on each node in the order of its
  /// CombiningTree, over the ranks' own order where the operation does not commute; then the nodes', in the order
  /// of their lowest ranks.
  static Collective allreduce(const std::byte* mine, std::byte* result, std::size_t count, const Combine& combine) {
    return {Kind::allreduce, mine, result, count, -1, &combine};
  }
  /// The same to the root alone; elsewhere `result` is not used.
  static Collective reduce(const std::byte* mine, std::byte* result, std::size_t count, const Combine& combine,
                           int root) {
    return {Kind::reduce, mine, result, count, root, &combine};
  }
  /// `bytes` of each rank to `all` of the root, in the order of ranks. The root's `mine` may be null: its block is
  /// in its place of `all` already.
  static Collective gather(const std::byte* mine, std::size_t bytes, std::byte* all, int root) {
    return {Kind::gather, mine, all, bytes, root};
  }
  /// As gather, to all ranks. `mine` may be its place of `all`.
  static Collective allgather(const std::byte* mine, std::size_t bytes, std::byte* all) {
    return {Kind::allgather, mine, all, bytes};
  }
  /// `bytes` from `all` of the root to each rank. The root's `mine` may be null: it keeps its block.
  static Collective scatter(const std::byte* all, std::size_t bytes, std::byte* mine, int root) {
    return {Kind::scatter, all, mine, bytes, root};
  }
};

}  // namespace isohalo
